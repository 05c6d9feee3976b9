"""Names of files that a journal has open are removed, replaced or moved: it fails, and nobody else writes there."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stablecast.runtime import machine
from stablecast.store.journal import Disk, Journal, JournalError
from stablecast.store.journal import journal as journals
from stablecast.store.journal.lock import FilesLostError
from tests.adapters.store.journal.support import Owner, done_by_fetcher, no_states, segments

SMALL = Disk(segment_bytes=100)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(journals, "LOOK_SECONDS", 0.01)
    (tmp_path / "d").mkdir()
    return tmp_path / "d"


async def filled(directory: Path, disk: Disk = SMALL, beside: tuple[Path, ...] = ()) -> Owner:
    """A running journal with five messages, each a segment of its own."""
    owner = Owner(Journal.open(directory, disk, beside), no_states)
    for number in range(5):
        owner.journal.append_messages(1, number, 1, 5, bytes(100), number + 1)
        await owner.until(number + 1)
    return owner


def files_in(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.exists() else []


def replaced(directory: Path) -> None:
    directory.rename(directory.with_name("moved"))
    directory.mkdir()


def copied(directory: Path) -> None:
    """The same files, under the same names, and none of them is the one that is open."""
    directory.rename(directory.with_name("moved"))
    shutil.copytree(directory.with_name("moved"), directory)


def newest_replaced(directory: Path) -> None:
    path = segments(directory)[-1]
    other = path.with_suffix(".copy")
    shutil.copy(path, other)
    other.rename(path)


def without(*paths: Path) -> None:
    for path in paths:
        path.unlink()


def removed(directory: Path) -> None:
    """Remove a directory, again if its journal made a file meanwhile."""
    while directory.exists():
        shutil.rmtree(directory, ignore_errors=True)


def file_instead(directory: Path) -> None:
    removed(directory)
    directory.write_bytes(b"")


WAYS: dict[str, Callable[[Path], object]] = {
    "removed": removed,
    "moved": lambda directory: directory.rename(directory.with_name("moved")),
    "replaced": replaced,
    "copied": copied,
    "without-files": lambda directory: without(*directory.iterdir()),
    "without-segments": lambda directory: without(*segments(directory)),
    "without-newest": lambda directory: without(segments(directory)[-1]),
    "without-oldest": lambda directory: without(segments(directory)[0]),
    "newest-replaced": newest_replaced,
    "without-lock": lambda directory: without(directory / "lock"),
    "a-file-in-its-place": file_instead,
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_journal_that_lost_names_fails_without_a_write(way: str, directory: Path) -> None:
    owner = await filled(directory)
    WAYS[way](directory)
    await owner.until_failed()
    assert isinstance(owner.failures[0], FilesLostError)
    with pytest.raises(FilesLostError):
        await owner.journal.close()


@pytest.mark.parametrize("way", ["removed", "without-files", "without-segments", "without-newest"])
async def test_what_is_written_to_a_removed_segment_is_never_reported(
    way: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "LOOK_SECONDS", 1000)
    owner = await filled(directory, Disk())
    WAYS[way](directory)
    owner.journal.append_messages(1, 5, 1, 5, bytes(100), 6)
    await owner.until_failed()
    assert owner.last == 5
    with pytest.raises(FilesLostError):
        await owner.journal.close()


@pytest.mark.parametrize("way", ["replaced", "moved", "without-lock"])
async def test_no_segment_begins_in_another_directory(
    way: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "LOOK_SECONDS", 1000)
    owner = await filled(directory)
    WAYS[way](directory)
    names = files_in(directory)
    owner.journal.append_messages(1, 5, 1, 5, bytes(100), 6)
    await owner.until_failed()
    assert owner.last == 5
    assert files_in(directory) == names
    with pytest.raises(FilesLostError):
        await owner.journal.close()


async def test_no_segment_is_deleted_in_another_directory(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy needs all of its files."""
    monkeypatch.setattr(journals, "LOOK_SECONDS", 1000)
    owner = await filled(directory)
    copied(directory)
    names = files_in(directory)
    owner.journal._fetcher.remove(owner.journal._segments[min(owner.journal._segments)], owner.journal._on_failed)
    await owner.until_failed()
    assert files_in(directory) == names
    owner.journal.abort()


@pytest.mark.parametrize("way", ["without-files", "without-lock"])
async def test_no_second_process_opens_a_directory_without_its_lock_file(way: str, directory: Path) -> None:
    owner = await filled(directory)
    WAYS[way](directory)
    with pytest.raises(JournalError, match="is in use by process"):
        Journal.open(directory)
    owner.journal.abort()
    Journal.open(directory).abort()


async def test_a_file_beside_the_journal_must_keep_its_name_and_may_be_replaced(directory: Path) -> None:
    beside = directory.with_name("identity.json")
    beside.write_text("{}")
    owner = await filled(directory, beside=(beside,))
    draft = beside.with_name("new")
    draft.write_text("{}")
    draft.rename(beside)
    owner.journal._look()
    owner.journal.append_messages(1, 5, 1, 5, bytes(100), 6)
    await owner.until(6)
    beside.unlink()
    await owner.until_failed()
    assert "identity.json was removed" in str(owner.failures[0])
    owner.journal.abort()


@pytest.mark.parametrize("code", [errno.ENOMEM, errno.EIO, errno.EACCES], ids=errno.errorcode.get)
async def test_a_name_that_cannot_be_looked_up_is_not_missed(
    code: int, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal goes on: only a name that leads nowhere, or elsewhere, shows that files are lost."""
    owner = await filled(directory)

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    for unknown in ("names", "stat"):  # A directory that cannot be listed proves nothing, either.
        monkeypatch.setattr(machine.files, unknown, refuse)
        owner.journal._look()
        await done_by_fetcher(owner)
    owner.journal.append_messages(1, 5, 1, 5, bytes(100), 6)
    await owner.until(6)
    await owner.journal.close()
    assert not owner.failures


async def test_segments_that_the_journal_deletes_itself_are_not_missed(directory: Path) -> None:
    owner = await filled(directory)
    for number in range(5, 60):
        owner.journal.append_messages(1, number, 1, 5, bytes(100), 2 * number)
        owner.journal.trim(1, number, 2 * number + 1)
        owner.journal._fetcher.look(
            [one for one in owner.journal._segments.values() if one.on_disk], owner.journal._on_failed
        )
        await owner.until(2 * number + 1)
    assert owner.journal.segments < 10
    await owner.journal.close()
    assert not owner.failures


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_directory_that_is_unmounted_or_mounted_over_is_another_one(directory: Path) -> None:
    """In a mount namespace of its own, so that nothing of the host changes."""
    script = f"""
import subprocess
from pathlib import Path
from stablecast.store.journal.lock import DirectoryLock, FilesLostError
def run(*words): subprocess.run(words, check=True)
place = Path({str(directory)!r})
lock = DirectoryLock(place)
lock.check()
run("mount", "-t", "tmpfs", "none", str(place))
try: lock.check()
except FilesLostError: print("covered")
above = DirectoryLock(place)
above.check()
run("umount", "-l", str(place))
lock.check()
try: above.check()
except FilesLostError: print("unmounted")
"""
    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", script]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if "permitted" in found.stderr:
        pytest.skip(found.stderr.strip())
    assert found.stdout.split() == ["covered", "unmounted"], found.stderr
