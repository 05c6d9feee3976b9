"""Logs that roll, by a clock that the test controls."""

import errno
import gzip
import os
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stablecast.runtime.logs import Compression, Frequency, LineLog, RollingFile, RollingPolicy, utc_now
from tests.support.machine import replace

MILLION = 1_000_000

MIDNIGHT = datetime(2017, 8, 20, tzinfo=UTC)


class Clock:
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.now = MIDNIGHT

    def __call__(self) -> datetime:
        return self.now


def plain_log(path: Path, rolling: RollingPolicy, clock: Callable[[], datetime] = utc_now) -> LineLog:
    return LineLog(path, rolling, sys.stderr, clock)


def rolled(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"srs.log"}


def model(date: str, sequence: int) -> str:
    return f"srs.log_{os.getpid()}.{date}.{sequence}"


@pytest.mark.rows("T-502")
def test_a_file_is_appended_to(tmp_path: Path) -> None:
    """Restarts do not overwrite."""
    path = tmp_path / "srs.log"
    for line in ("first", "second", "third"):
        log = plain_log(path, RollingPolicy())
        log.write(line)
        log.close()
    assert [line[27:] for line in path.read_text().splitlines()] == ["first", "second", "third"]
    assert rolled(tmp_path) == set()


@pytest.mark.rows("T-503", "T-504", "T-506")
def test_the_worked_example(tmp_path: Path) -> None:
    """A million bytes an hour; rolls at 23:00 by size, and again at midnight by frequency."""
    path, clock = tmp_path / "srs.log", Clock()
    log = plain_log(path, RollingPolicy(Frequency.DAILY, 23 * MILLION), clock)
    for hour in range(24):
        clock.now = MIDNIGHT + timedelta(hours=hour)
        before = rolled(tmp_path)
        log.write("x" * (MILLION - 28))
        assert (rolled(tmp_path) != before) is (hour == 23)
    assert rolled(tmp_path) == {model("2017-08-20", 1)}
    clock.now = MIDNIGHT + timedelta(days=1)
    log.write("next day")
    assert rolled(tmp_path) == {model("2017-08-20", 1), model("2017-08-20", 2)}
    log.close()


@pytest.mark.rows("T-505")
def test_it_rolls_with_the_next_line_only(tmp_path: Path) -> None:
    """An hour without a line makes no file; an empty file does not roll."""
    path, clock = tmp_path / "srs.log", Clock()
    log = plain_log(path, RollingPolicy(Frequency.HOURLY), clock)
    clock.now += timedelta(hours=5)
    log.write("one")
    assert rolled(tmp_path) == set()
    log.close()
    os.utime(path, (clock.now.timestamp(),) * 2)  # As if the test's clock were the system's.
    log = plain_log(path, RollingPolicy(Frequency.HOURLY), clock)
    clock.now += timedelta(minutes=59)
    log.write("two")
    clock.now += timedelta(hours=2)
    assert rolled(tmp_path) == set()
    log.write("three")
    assert rolled(tmp_path) == {model("2017-08-20", 1)}
    log.close()


@pytest.mark.rows("T-504")
@pytest.mark.parametrize(("frequency", "hours"), [(Frequency.HOURLY, 1), (Frequency.DAILY, 24)])
def test_a_restart_does_not_forget_the_period(frequency: Frequency, hours: int, tmp_path: Path) -> None:
    """The lines of an earlier process belong to the period of the last one."""
    path, clock = tmp_path / "srs.log", Clock()
    for _ in range(3):
        log = plain_log(path, RollingPolicy(frequency), clock)
        log.write("one")
        log.write("two")
        log.close()
        os.utime(path, (clock.now.timestamp(),) * 2)  # As if the test's clock were the system's.
        clock.now += timedelta(hours=hours)
    assert len(rolled(tmp_path)) == 2
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("reopened", [True, False])
def test_a_file_that_was_moved_away_is_written_anew(reopened: bool, tmp_path: Path) -> None:
    path = tmp_path / "srs.log"
    log = plain_log(path, RollingPolicy())
    log.write("one")
    path.rename(tmp_path / "moved")
    if reopened:
        log.reopen()
        assert path.read_text() == ""
    log.write("two")
    path.unlink()
    log.write("three")
    log.close()
    assert (tmp_path / "moved").read_text().endswith("one\n")
    assert path.read_text().endswith("three\n")
    assert len(path.read_text().splitlines()) == 1


def test_a_file_that_cannot_be_written_anew_gets_the_lines(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = plain_log(folder / "srs.log", RollingPolicy())
    folder.rename(tmp_path / "away")
    log.write("one")
    log.write("two")
    log.close()
    lines = (tmp_path / "away" / "srs.log").read_text().splitlines()
    assert "[WARNING] the log is not written anew: " in lines[0]
    assert [line[20:] for line in lines[1:]] == ["[INFO] one", "[INFO] two"]


@pytest.mark.rows("T-507")
@pytest.mark.parametrize(
    ("limits", "left"),
    [
        (RollingPolicy(size=MILLION, max_history=2), 2),
        (RollingPolicy(size=MILLION, total_size=3 * MILLION), 2),
        (RollingPolicy(size=MILLION), 5),
        (RollingPolicy(size=MILLION, max_history=4, total_size=5 * MILLION), 4),
        (RollingPolicy(size=MILLION, total_size=MILLION), 0),
        (RollingPolicy(size=MILLION, max_history=3, total_size=MILLION, compression=Compression.GZIP), 3),
        (RollingPolicy(size=MILLION, max_history=1, compression=Compression.ZIP), 1),
    ],
)
def test_the_oldest_are_deleted(tmp_path: Path, limits: RollingPolicy, left: int) -> None:
    """By count and by total size, until neither applies. Other files of such names stay."""
    other = tmp_path / "srs.log_backup.2017-08-20.1"
    other.touch()
    clock = Clock()
    path = tmp_path / "srs.log"
    for day in range(6):
        clock.now = MIDNIGHT + timedelta(days=day)
        log = plain_log(path, limits, clock)
        log.write("x" * MILLION)
        log.close()
        began = clock.now.timestamp()
        os.utime(path, (began, began))  # As if the days had passed.
    suffix = {Compression.NONE: "", Compression.ZIP: ".zip", Compression.GZIP: ".gz"}[limits.compression]
    expected = {model(f"2017-08-{20 + day}", 1) + suffix for day in range(5 - left, 5)}
    assert rolled(tmp_path) - {other.name} == expected


def unpacked(path: Path) -> bytes:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        (name,) = archive.namelist()
        return archive.read(name)


@pytest.mark.parametrize("compression", [Compression.ZIP, Compression.GZIP])
def test_rolled_files_are_compressed_and_nothing_of_them_is_lost(tmp_path: Path, compression: Compression) -> None:
    """tr.md, daemon/log: none, zip, gzip. Numbers count on where compressed files are."""
    log = plain_log(tmp_path / "srs.log", RollingPolicy(size=68, compression=compression), Clock())
    for number in range(7):
        log.write(f"{number} {'x' * 30}")
    log.close()
    files = sorted(path for path in tmp_path.iterdir() if path.name != "srs.log")
    assert [path.suffixes[-2] for path in files] == [".1", ".2", ".3"]
    assert [line.split()[3] for path in files for line in unpacked(path).splitlines()] == [
        str(number).encode() for number in range(6)
    ]


@pytest.mark.parametrize("compression", [Compression.ZIP, Compression.GZIP])
def test_a_compressed_file_keeps_its_time(tmp_path: Path, compression: Compression) -> None:
    """The oldest are deleted by it."""
    log = plain_log(tmp_path / "srs.log", RollingPolicy(size=34, compression=compression), Clock())
    log.write("x" * 34)
    os.utime(tmp_path / "srs.log", (MILLION, MILLION))
    log.write("1")
    log.close()
    assert [(tmp_path / name).stat().st_mtime for name in rolled(tmp_path)] == [MILLION]


class Full:
    """A file that does not take every line."""

    def __init__(self, *full: bool) -> None:
        self.full = list(full)
        self.taken: list[str] = []

    def tell(self) -> int:
        return 0

    def write(self, octets: bytes) -> None:
        if self.full.pop(0):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.taken += octets.decode().splitlines()


def test_a_full_disk_loses_lines_and_says_how_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody who writes one is disturbed."""
    log = RollingFile(tmp_path / "srs.log", RollingPolicy(), lambda _, text: f"complaint: {text}", Clock())
    disk = Full(False, True, True, False, False)
    with monkeypatch.context() as patch:
        patch.setattr(log, "_file", disk)
        for number in range(5):
            log.write(lambda _, number=number: f"line {number}")  # type: ignore[misc]  # its number, not the last one
    log.close()
    missing = "complaint: 2 lines are missing here: the disk refused them"
    assert disk.taken == ["line 0", missing, "line 3", "line 4"]


def test_a_file_that_cannot_roll_grows_on_and_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = plain_log(tmp_path / "srs.log", RollingPolicy(size=10), Clock())

    def refuse(*_: object) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patch:
        replace(patch, "files", rename=refuse)
        for number in range(4):
            log.write(f"line {number}")
    assert [line[20:] for line in (tmp_path / "srs.log").read_text().splitlines()] == [
        "[INFO] line 0",
        "[WARNING] the log does not roll: Permission denied",
        "[INFO] line 1",
        "[INFO] line 2",
        "[INFO] line 3",
    ]
    log.close()


def test_a_file_that_cannot_be_tidied_up_stays_and_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = plain_log(tmp_path / "srs.log", RollingPolicy(size=10, max_history=1), Clock())

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    replace(monkeypatch, "files", remove=refuse)
    for number in range(4):
        log.write(f"line {number}")
    log.close()
    assert len(rolled(tmp_path)) == 3
    said = "".join((tmp_path / name).read_text() for name in (*rolled(tmp_path), "srs.log"))
    assert said.count("rolled logs are not tidied up: Read-only file system") == 1


def test_a_file_that_is_opened_again_keeps_its_policy_or_gets_another(tmp_path: Path) -> None:
    file = RollingFile(tmp_path / "srs.log", RollingPolicy(), lambda _, text: text)
    for policy, rolls in ((None, 0), (RollingPolicy(size=10), 1), (None, 2)):
        file.reopen(policy)
        for _ in range(2):
            file.write(lambda _: "more than ten bytes")
        assert len(rolled(tmp_path)) >= rolls
        assert bool(rolled(tmp_path)) is bool(rolls)
    file.close()
