"""One process per journal."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from stablecast.runtime import machine
from stablecast.store.journal import JournalError
from stablecast.store.journal.lock import LOCK_NAME, DirectoryLock, shown_to_others
from tests.support.machine import replace

HOLDER = """
import sys
from pathlib import Path
from stablecast.store.journal.lock import DirectoryLock
lock = DirectoryLock(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


def test_the_error_names_directory_and_holder(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(JournalError, match=f"{tmp_path} is in use by process {holder.pid}; stop"):
            DirectoryLock(tmp_path)
        holder.stdin.close()
        holder.wait()
    DirectoryLock(tmp_path).release()


def test_where_directories_cannot_be_locked_the_file_alone_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems lock written files only."""
    real = machine.files.lock

    def lock(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        real(descriptor)

    replace(monkeypatch, "files", lock=lock)
    first = DirectoryLock(tmp_path)
    with pytest.raises(JournalError, match="is in use"):
        DirectoryLock(tmp_path)
    first.release()


def test_the_names_of_the_directory_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock file has a descriptor, too; its sync would keep no name over a power cut."""
    synced: list[int] = []
    lock = DirectoryLock(tmp_path)
    replace(monkeypatch, "files", sync=lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    lock.sync_names()
    lock.release()
    assert synced == [tmp_path.stat().st_ino]


def test_release_is_idempotent(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.release()
    lock.release()
    DirectoryLock(tmp_path).release()


def test_holder_without_a_number(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    (tmp_path / "lock").write_bytes(b"")
    with pytest.raises(JournalError, match="process of unknown number"):
        DirectoryLock(tmp_path)
    lock.release()


def test_lock_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    replace(monkeypatch, "files", pwrite=full)
    with pytest.raises(OSError, match="No space"):
        DirectoryLock(tmp_path)
    monkeypatch.undo()
    DirectoryLock(tmp_path).release()


@pytest.mark.parametrize(
    ("above", "within", "shown"), [(0o755, 0o644, True), (0o755, 0o600, False), (0o700, 0o644, False)]
)
def test_a_store_of_an_earlier_release_is_shown_to_others(above: int, within: int, shown: bool, tmp_path: Path) -> None:
    DirectoryLock(tmp_path).release()
    assert not shown_to_others(tmp_path)
    (tmp_path / LOCK_NAME).chmod(within)
    tmp_path.chmod(above)
    assert shown_to_others(tmp_path) == shown
