"""Programs of a world act on simulated files, by all usual ways, and leave the real ones alone."""

# ruff: noqa: ASYNC240, PTH116, PTH123, PTH208, SIM115 - the functions that are tested have replacements

import asyncio
import fcntl
import io
import json
import logging
import mmap
import os
import shutil
import sqlite3
import tarfile
import tempfile
import zipfile
import zoneinfo
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stablecast.lab.world.disk import FIRST_DESCRIPTOR
from stablecast.lab.world.filesystem import FileSystem
from stablecast.lab.world.patched_files import PatchedFiles
from tests.adapters.lab.world.support import new_file_system
from tests.adapters.lab.world.test_filesystem import CALLS, Call, Caller
from tests.adapters.store.journal.support import FAST_DIRECTORY


class Program:
    """Switches between the code of a world and other code."""

    def __init__(self) -> None:
        self.system = new_file_system()
        self.running = False
        self.patches = PatchedFiles(lambda: self.system if self.running else None)

    @contextmanager
    def runs(self, system: FileSystem | None = None) -> Iterator[FileSystem]:
        self.system = system or self.system
        with self.patches:
            self.running = True
            try:
                yield self.system
            finally:
                self.running = False


@pytest.fixture
def program() -> Program:
    return Program()


def tree(path: Path) -> dict[str, bytes | None]:
    return {str(at.relative_to(path)): at.read_bytes() if at.is_file() else None for at in sorted(path.rglob("*"))}


def with_pathlib(base: Path) -> None:
    (base / "a" / "b").mkdir(parents=True)
    (base / "a" / "text").write_text("eins\nzwei\n", encoding="utf-8")
    (base / "a" / "octets").write_bytes(b"\0\1\2")
    (base / "a" / "text").rename(base / "a" / "b" / "renamed")
    (base / "a" / "octets").replace(base / "a" / "replaced")
    (base / "link").symlink_to("a/replaced")
    (base / "hard").hardlink_to(base / "a" / "replaced")
    (base / "touched").touch()
    (base / "touched").chmod(0o600)
    assert (base / "link").read_bytes() == b"\0\1\2"
    assert (base / "link").readlink() == Path("a/replaced")
    assert (base / "link").resolve() == base.resolve() / "a" / "replaced"
    assert sorted(path.name for path in base.iterdir()) == ["a", "hard", "link", "touched"]
    assert sorted(path.name for path in base.rglob("re*")) == ["renamed", "replaced"]
    assert [path.name for path in base.glob("*/b")] == ["b"]
    assert not (base / "missing").exists()
    assert (base / "touched").stat().st_mode & 0o777 == 0o600
    assert (base / "hard").samefile(base / "a" / "replaced")
    with pytest.raises(FileExistsError):
        (base / "a").mkdir()
    (base / "a").mkdir(exist_ok=True)
    (base / "touched").unlink()


def with_shutil(base: Path) -> None:
    (base / "d").mkdir()
    (base / "d" / "f").write_bytes(b"x" * 100_000)
    shutil.copy2(base / "d" / "f", base / "copy")
    shutil.copytree(base / "d", base / "tree")
    shutil.move(base / "copy", base / "moved")
    shutil.copyfile(base / "moved", base / "again")
    (base / "many" / "levels").mkdir(parents=True)
    (base / "many" / "levels" / "f").write_text("f")
    shutil.rmtree(base / "many")
    assert shutil.disk_usage(base).free > 0


def with_descriptors(base: Path) -> None:
    fd = os.open(base / "f", os.O_CREAT | os.O_RDWR | os.O_EXCL)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert os.write(fd, b"0123456789") == 10
        assert os.pwritev(fd, [b"ab", b"cd"], 2) == 4
        into = [bytearray(3), bytearray(3)]
        assert (os.preadv(fd, into, 1), *into) == (6, b"1ab", b"cd6")
        os.ftruncate(fd, 8)
        os.posix_fallocate(fd, 0, 12)
        os.fsync(fd)
        os.fdatasync(fd)
        assert (os.lseek(fd, 0, os.SEEK_END), os.fstat(fd).st_size, os.isatty(fd)) == (12, 12, False)
        with os.fdopen(os.dup(fd), "rb") as file:
            file.seek(0)
            assert file.read() == b"01abcd67" + bytes(4)
    finally:
        os.close(fd)
    directory = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    os.mkdir("sub", dir_fd=directory)
    os.rename("f", "g", src_dir_fd=directory, dst_dir_fd=directory)
    assert sorted(os.listdir(directory)) == ["g", "sub"]
    assert os.stat("g", dir_fd=directory).st_size == 12
    assert sorted(os.listdir(os.fsencode(base))) == [b"g", b"sub"]
    os.fsync(directory)
    os.close(directory)
    assert [(len(folders), files) for _, folders, files in os.walk(base)] == [(1, ["g"]), (0, [])]
    assert sorted((entry.name, entry.is_dir()) for entry in os.scandir(base)) == [("g", False), ("sub", True)]
    os.truncate(base / "g", 5)
    os.utime(base / "g", ns=(1_000_000_000, 2_000_000_000))
    assert os.stat(base / "g").st_mtime == 2
    assert os.access(base / "g", os.R_OK)
    os.removedirs(base / "sub")


def with_files_of_the_library(base: Path) -> None:
    with open(base / "x.json", "w", encoding="utf-8") as text:
        json.dump({"a": [1, 2]}, text)
        text.flush()
        os.fsync(text)
    with io.open(base / "x.json", encoding="utf-8") as text:  # noqa: UP020 - the name is tested
        assert json.load(text) == {"a": [1, 2]}
    with tempfile.NamedTemporaryFile(dir=base) as temporary:
        temporary.write(b"x")
        temporary.flush()
        assert Path(temporary.name).read_bytes() == b"x"
    with tempfile.TemporaryDirectory(dir=base) as directory:
        (Path(directory) / "f").write_text("f")
    with tempfile.TemporaryFile(dir=base) as nameless:
        nameless.write(b"y")
    with zipfile.ZipFile(base / "x.zip", "w") as packed:
        packed.writestr(zipfile.ZipInfo("member"), "data")
    with zipfile.ZipFile(base / "x.zip") as packed:
        assert packed.read("member") == b"data"
    with tarfile.open(base / "x.tar", "w") as tar:
        tar.add(base / "x.json", "x.json")
    with tarfile.open(base / "x.tar") as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none.
        tar.extract("x.json", base / "out")
    handler = logging.FileHandler(base / "log", encoding="utf-8")
    handler.emit(logging.makeLogRecord({"msg": "line"}))
    handler.close()
    with open(base / "x.json", "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        assert data[:] == b'{"a": [1, 2]}'
        assert isinstance(data, mmap.mmap)
    (base / "x.tar").unlink()  # It holds times.


@pytest.mark.parametrize("use", [with_pathlib, with_shutil, with_descriptors, with_files_of_the_library])
def test_the_usual_ways_have_the_same_outcome(use: Callable[[Path], None], program: Program, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    use(real)
    expected = tree(real)
    before = tree(tmp_path)
    simulated = tmp_path / "simulated"
    with program.runs():
        simulated.mkdir()
        use(simulated)
        found = tree(simulated)
    assert found == expected
    assert tree(tmp_path) == before
    assert not program.system.open_descriptors


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CALLS, max_size=25))
def test_the_same_calls_have_the_same_results(calls: list[Call]) -> None:
    program = Program()
    with tempfile.TemporaryDirectory(dir=FAST_DIRECTORY) as outer:
        base = f"{outer}/base"
        Path(base).mkdir()
        Path(base).chmod(0o755)
        real = Caller(os, open, base)
        expected = [real.call(call) for call in calls]
        real.close_all()
        program.system.disk.make_directories("/simulated")
        program.system.chdir("/simulated")
        with program.runs():
            Path("base").mkdir()
            simulated = Caller(os, open, "base")
            found = [simulated.call(call) for call in calls]
    assert [_without_path(result) for result in found] == [_without_path(result) for result in expected]


def _without_path(result: object) -> object:
    return (
        [part for part in result if not isinstance(part, str) or "/" not in part]
        if isinstance(result, list)
        else result
    )


def test_other_code_is_untouched(program: Program, tmp_path: Path) -> None:
    functions = [open, io.open, os.open, os.stat, fcntl.flock, mmap.mmap, tarfile.bltn_open, sqlite3.connect]  # type: ignore[attr-defined]
    with program.patches:
        (tmp_path / "f").write_text("real")
        with open(tmp_path / "f") as file:
            assert file.fileno() < FIRST_DESCRIPTOR
        assert os.stat not in functions
    assert functions == [open, io.open, os.open, os.stat, fcntl.flock, mmap.mmap, tarfile.bltn_open, sqlite3.connect]  # type: ignore[attr-defined]
    assert os.stat in os.supports_dir_fd
    assert not any(getattr(function, "__wrapped__", None) for function in os.supports_dir_fd)


def test_worlds_may_be_nested() -> None:
    outer, inner = new_file_system(), new_file_system()
    with PatchedFiles(lambda: outer):
        Path("/outer").touch()
        with PatchedFiles(lambda: inner):
            assert os.listdir("/") == ["tmp"]
        assert Path("/outer").exists()
        with PatchedFiles(lambda: None):
            assert not Path("/outer").exists()
    assert not Path("/outer").exists()


def test_package_data_are_read_from_the_real_machine(program: Program) -> None:
    with program.runs():
        assert "def dumps" in Path(json.__file__).read_text(encoding="utf-8")
        assert Path(json.__file__).is_file()
        assert "decoder.py" in os.listdir(Path(json.__file__).parent)
        with os.scandir(Path(json.__file__).parent) as entries:
            assert any(entry.name == "decoder.py" for entry in entries)
        fd = os.open(json.__file__, os.O_RDONLY)
        assert fd < FIRST_DESCRIPTOR
        os.close(fd)
        zoneinfo.ZoneInfo.no_cache("Europe/Berlin")
        with open(os.devnull, "w") as nowhere:
            nowhere.write("x")


def test_a_change_never_reaches_the_real_machine(program: Program, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("real")
    (tmp_path / "d").mkdir()
    before = tree(tmp_path)
    with program.runs():
        with open(tmp_path / "f", "a") as file:
            file.write(" and more")
        assert (tmp_path / "f").read_text() == "real and more"
        with pytest.raises(FileExistsError):
            (tmp_path / "d").mkdir()
        (tmp_path / "d" / "new").write_text("new")
        (tmp_path / "d" / "new").rename(tmp_path / "moved")
        (tmp_path / "moved").chmod(0o600)
        with pytest.raises(FileNotFoundError):
            (tmp_path / "missing" / "f").write_text("x")
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.unlink(),
        lambda path: path.rename(path.parent / "other"),
        lambda path: os.link(path, f"{path}2"),
    ],
)
def test_a_real_file_stays(change: Callable[[Path], object], program: Program, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("real")
    with program.runs(), pytest.raises(OSError, match="file of the real machine"):
        change(tmp_path / "f")
    with program.runs():
        directory = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(OSError, match="directory of the real machine"):
            os.unlink("f", dir_fd=directory)
        os.close(directory)
    assert tree(tmp_path) == {"f": b"real"}


def test_a_missing_file_below_a_directory_of_the_program_is_missing(program: Program, tmp_path: Path) -> None:
    """Else the leftovers of this machine would decide what a world does."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "leftover").write_text("real")
    with program.runs() as system:
        system.disk.make_directories(str(tmp_path))
        system.mkdir(f"{tmp_path}/d")
        assert not (tmp_path / "d" / "leftover").exists()
        with pytest.raises(FileNotFoundError):
            open(tmp_path / "d" / "leftover")


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: sqlite3.connect("file:/data.db", uri=True), "the database file:/data.db cannot be opened in a world"),
        (lambda: os.mkfifo("/pipe"), "named pipes are not simulated"),
        (lambda: fcntl.lockf(open("/f", "w"), fcntl.LOCK_EX), "record locks are not simulated"),
        (lambda: mmap.mmap(open("/f", "w+b").fileno(), 10), "cannot be mapped for writing"),
    ],
)
def test_what_cannot_be_simulated_is_refused(use: Callable[[], object], message: str, program: Program) -> None:
    with program.runs(), pytest.raises(io.UnsupportedOperation, match=message):
        use()


def test_a_database_in_memory_works(program: Program) -> None:
    with program.runs():
        database = sqlite3.connect(":memory:")
        assert database.execute("select 1").fetchone() == (1,)
        database.close()


def test_a_database_in_a_file_has_what_was_committed(program: Program) -> None:
    """Another connection sees it at once, and what was not committed never; who commits second is told."""
    with program.runs():
        one, other = sqlite3.connect("/data.db", isolation_level=None), sqlite3.connect("/data.db")
        one.executescript("create table numbers (number); insert into numbers values (1)")
        assert other.execute("select * from numbers").fetchall() == [(1,)]
        other.executemany("insert into numbers values (?)", [(2,), (3,)])
        assert one.execute("select count(*) from numbers").fetchone() == (1,)
        one.execute("insert into numbers values (4)")
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            other.commit()
        other.rollback()
        with other:
            assert other.execute("select number from numbers").fetchall() == [(1,), (4,)]
        other.close()
        assert sqlite3.connect("/data.db").execute("select sum(number) from numbers").fetchone() == (5,)
        with pytest.raises(sqlite3.OperationalError, match="unable to open"):
            sqlite3.connect("/nowhere/data.db")


def test_temporary_files_have_the_same_names_in_each_run() -> None:
    def names() -> list[str]:
        program = Program()
        with program.runs():
            return [tempfile.mkdtemp(), tempfile.mkstemp()[1], tempfile.gettempdir()]

    assert names() == names()
    assert names()[2] == "/tmp"


def test_descriptors_of_a_world_are_unknown_outside(program: Program) -> None:
    with program.runs():
        fd = os.open("/f", os.O_CREAT | os.O_RDWR)
    with program.patches, pytest.raises(OSError, match="Bad file descriptor"):
        os.write(fd, b"x")


def test_files_of_a_killed_program_change_nothing(program: Program) -> None:
    """The interpreter frees its file objects later, and then they must not write what they still hold."""
    with program.runs() as system:
        file: Any = open("/f", "wb")
        file.write(b"never flushed")
        system.kill()
        del file
    again = FileSystem(system.disk)
    assert again.stat("/f").st_size == 0


def test_files_of_two_hosts_are_apart() -> None:
    systems = {"a": new_file_system(seed=1), "b": new_file_system(seed=2)}
    running = "a"

    async def write(name: str) -> None:
        nonlocal running
        running = name
        Path("/f").write_text(name)

    async def both() -> None:
        await asyncio.gather(write("a"), write("b"))

    with PatchedFiles(lambda: systems[running]):
        pass  # A loop would make its sockets inside; so it begins first.
    loop = asyncio.new_event_loop()
    try:
        with PatchedFiles(lambda: systems[running]):
            loop.run_until_complete(both())
    finally:
        loop.close()
    assert [systems[name].stat("/f").st_size for name in "ab"] == [1, 1]


def test_faults_are_seen_by_programs(program: Program) -> None:
    with program.runs() as system:
        system.disk.full()
        with pytest.raises(OSError, match="No space left"):
            Path("/f").write_text("x")
        system.disk.heal()
        system.descriptor_limit = 0
        with pytest.raises(OSError, match="Too many open files"):
            open("/f")
    assert system.disk.rot(Random(1)) is None
