"""The files of the machine in a world, and the journal on them: what was reported synced is never lost."""

import asyncio
import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stablecast.lab.world.disk import SimulatedDisk
from stablecast.lab.world.filesystem import FileSystem
from stablecast.lab.world.patched_files import PatchedFiles
from stablecast.runtime import machine
from stablecast.store.journal import Disk, Journal, JournalError
from tests.adapters.lab.world.support import Clock, new_file_system
from tests.adapters.store.journal.support import Owner
from tests.adapters.store.journal.test_crash import SEGMENT_BYTES, STEP, Twin, block_of, check, held, trails_of

DIRECTORY = Path("/var/lib/store")


class Host:
    """A host of which one process runs: its disk, and the process's files."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = Clock()
        self.disk = SimulatedDisk(self.clock, Random(seed), self.clock.wait)
        self.disk.make_directories(str(DIRECTORY))
        self.system = FileSystem(self.disk)

    def patched(self) -> PatchedFiles:
        """Give the files of the host to this interpreter while the context lasts."""
        return PatchedFiles(lambda: self.system)

    def restart(self) -> None:
        """Begin a process after the last one ended."""
        self.system = FileSystem(self.disk)


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    with host.patched():
        yield host


def use_files(base: Path) -> list[object]:
    """Uses every function of the machine's files; returns what they returned."""
    files = machine.files
    files.make_directories(base / "a" / "b")
    files.make_directories(base / "a" / "b")
    path = base / "a" / "f"
    fd = files.open(path, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o640)
    files.lock(fd)
    other = files.open(path, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        files.lock(other)
    files.close(other)
    done: list[object] = [files.write(fd, b"01234"), files.pwrite(fd, memoryview(b"ab"), 1)]
    done += [files.pwritev(fd, [b"x", b"yz"], 5), files.pread(fd, 4, 2), files.read(fd, 2), files.status(fd).st_size]
    files.allocate(fd, 0, 20)
    files.truncate(fd, 10)
    files.sync_data(fd)
    files.sync(fd)
    files.close(fd)
    files.sync_directory(base / "a")
    with files.map(path) as data:
        done.append(data[:])
    with files.file(path, "ab") as file:
        done += [file.write(b"more"), file.fileno() > 0]
    files.write_bytes(base / "g", b"new")
    files.copy(path, base / "copy")
    files.set_times(base / "copy", 1_000_000_000, 2_000_000_000)
    files.rename(base / "g", base / "a" / "f")
    for name in (base / "a", path, base / "copy", base / "missing"):
        done += [files.exists(name), files.is_file(name), files.is_directory(name), files.is_readable(name)]
    done += [files.read_bytes(path), files.read_bytes(base / "copy"), files.stat(base / "copy").st_mtime_ns]
    done += [sorted(files.names(base)), files.stat(path).st_size, files.free_bytes(base) > 0]
    files.remove(path)
    for wrong in (
        lambda: files.remove(path),
        lambda: files.names(path),
        lambda: files.open(base, os.O_WRONLY),
        lambda: files.make_directories(base / "copy"),
        lambda: files.file(path, "rb"),
    ):
        with pytest.raises(OSError, match=r".") as raised:
            wrong()
        done.append(raised.value.errno)
    return done


def test_files_are_the_same_on_both_machines(tmp_path: Path) -> None:
    with Host().patched():
        simulated = use_files(DIRECTORY)
    assert simulated == use_files(tmp_path)


def test_an_empty_file_cannot_be_mapped(host: Host) -> None:
    machine.files.write_bytes("/empty", b"")
    with pytest.raises(ValueError, match="cannot mmap an empty file"), machine.files.map("/empty"):
        pass


# --------------------------------------------------------------------------------------------------------- the journal


Batches = list[list[tuple[str, int, int, int]]]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.lists(STEP, min_size=1, max_size=6), min_size=1, max_size=8),
    st.integers(0, 1 << 30),
    st.integers(0, 60),
    st.booleans(),
    st.booleans(),
)
def test_synced_records_survive_power_cuts(batches: Batches, seed: int, steps: int, verify: bool, killed: bool) -> None:
    """The process is killed or its host loses power, at any step; the power goes again right after the repair."""
    host = Host(seed)
    with host.patched():
        twin = Twin()
        left = iter(range(steps))

        def end() -> None:
            if killed:
                host.system.kill()
            elif not host.system.gone:
                host.system.crash(Random(seed))

        def step(_: str) -> None:
            if next(left, None) is None:
                end()

        reported = asyncio.run(_use(Disk(segment_bytes=SEGMENT_BYTES, short_ns=-1, step=step), twin, batches))
        end()
        host.restart()
        check(DIRECTORY, twin, reported, verify=verify)
        recovered = contents()
        host.system.crash(Random(seed + 1))
        host.restart()
        check(DIRECTORY, twin, reported, verify=verify)
        assert contents() == recovered


def contents() -> object:
    """Everything in the journal, which is opened once more."""
    journal = Journal.open(DIRECTORY, Disk(segment_bytes=SEGMENT_BYTES))
    found = held(journal), trails_of(journal), [*journal.recovered_states]
    journal.abort()
    return found


async def _use(disk: Disk, twin: Twin, batches: Batches) -> int:
    """Appends batches until the disk fails; returns the last ticket that was reported."""
    try:
        owner = Owner(Journal.open(DIRECTORY, disk), lambda: [*twin.states])
    except JournalError:
        return 0
    with suppress(JournalError):  # It may fail between two appends.
        for batch in batches:
            for what, stream, start, count in batch:
                twin.step(owner.journal, what, stream, start, count)
            while owner.last < twin.ticket and not owner.failures:
                owner._changed.clear()
                await owner._changed.wait()
    owner.journal.abort()
    return owner.last


async def test_a_journal_on_a_full_disk_fails_and_keeps_what_was_synced(host: Host) -> None:
    owner = Owner(Journal.open(DIRECTORY), list)
    owner.journal.append_messages(1, 0, 1, 7, b"kept", 1)
    await owner.until(1)
    host.disk.full(10)
    owner.journal.append_messages(1, 1, 1, 7, b"lost" * 2_000, 2)
    await owner.until_failed()
    assert os.strerror(errno.ENOSPC) in str(owner.failures[0])
    owner.journal.abort()
    host.system.crash(Random(1))
    host.disk.heal()
    host.restart()
    journal = Journal.open(DIRECTORY)
    assert journal.extents(1) == [(0, 1, 7)]
    journal.abort()


async def test_a_journal_finds_rot(host: Host) -> None:
    owner = Owner(Journal.open(DIRECTORY), list)
    for number in range(20):
        owner.journal.append_messages(1, number, 1, 7, block_of(1, number, 7) * 20, number + 1)
    await owner.until(20)
    await owner.journal.close()
    found = 0
    backup = host.disk.backup()
    for seed in range(30):
        host.disk.restore(backup)
        place = host.disk.rot(Random(seed), str(DIRECTORY))
        assert place is not None
        host.restart()
        journal = Journal.open(DIRECTORY)
        found += bool(journal.reports)
        assert place[0].endswith("lock") or journal.reports
        journal.abort()
    assert found > 20


async def test_a_journal_is_locked_until_its_process_ends(host: Host) -> None:
    owner = Owner(Journal.open(DIRECTORY), list)
    with pytest.raises(JournalError, match="is in use by process"):
        Journal.open(DIRECTORY)
    killed = host.system
    host.restart()
    with pytest.raises(JournalError, match="is in use by process"):
        Journal.open(DIRECTORY)
    killed.kill()
    journal = Journal.open(DIRECTORY)
    journal.abort()
    host.system = killed
    owner.journal.abort()


def test_user_code_sees_the_files_of_the_shipped_programs() -> None:
    system = new_file_system()
    with PatchedFiles(lambda: system):
        system.disk.make_directories(str(DIRECTORY))
        journal = Journal.open(DIRECTORY)
        assert {path.name for path in DIRECTORY.iterdir()} == {"lock"}
        journal.abort()
