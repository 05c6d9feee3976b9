"""A power cut keeps what was synced, may keep or tear the rest, and each fault does what it says."""

import errno
import os
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.lab.world.disk import BLOCK_BYTES, MILLISECOND, DiskSpeed
from stablecast.lab.world.filesystem import FileSystem
from stablecast.lab.world.page_cache import MAX_CHANGES, SECTOR_BYTES
from tests.adapters.lab.world.support import Clock, new_file_system

SEEDS = 300
"""Power cuts of a test that looks for each possible outcome."""


def restarted(system: FileSystem, seed: int) -> FileSystem:
    """The file system of a new process after a power cut."""
    system.crash(Random(seed))
    return FileSystem(system.disk)


def contents(system: FileSystem, path: str) -> bytes | None:
    with suppress(FileNotFoundError), system.open_file(path, "rb") as file:
        data: bytes = file.read()
        return data
    return None


def write(system: FileSystem, path: str, data: bytes, *, sync: bool = True) -> None:
    with system.open_file(path, "wb") as file:
        file.write(data)
        file.flush()
        if sync:
            system.fdatasync(file.fileno())


def sync_directory(system: FileSystem, path: str = "/") -> None:
    fd = system.open(path, os.O_RDONLY | os.O_DIRECTORY)
    system.fsync(fd)
    system.close(fd)


# ---------------------------------------------------------------------------------------------------- durable contents

CHANGE = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 12_000), st.integers(1, 9_000)),
    st.tuples(st.just("append"), st.just(0), st.integers(1, 2_000)),
    st.tuples(st.just("truncate"), st.integers(0, 12_000), st.just(0)),
    st.tuples(st.just("sync"), st.just(0), st.just(0)),
)


def sectors(data: bytes, size: int) -> list[bytes]:
    data = data[:size].ljust(size, b"\0")
    return [data[at : at + SECTOR_BYTES] for at in range(0, size, SECTOR_BYTES)]


@settings(max_examples=300, deadline=None)
@given(st.lists(CHANGE, max_size=12), st.integers(0, 1 << 30))
def test_each_sector_has_the_synced_or_a_later_version(changes: list[tuple[str, int, int]], seed: int) -> None:
    system = new_file_system()
    fd = system.open("/f", os.O_CREAT | os.O_RDWR)
    sync_directory(system)
    versions = [b""]
    for number, (what, offset, length) in enumerate(changes, 1):
        block = bytes([number]) * length
        match what:
            case "write":
                system.pwrite(fd, block, offset)
            case "append":
                system.pwrite(fd, block, system.fstat(fd).st_size)
            case "truncate":
                system.ftruncate(fd, offset)
            case _:
                system.fdatasync(fd)
                versions.clear()
        versions.append(system.mapped(fd))
    found = contents(restarted(system, seed), "/f")
    assert found is not None
    assert len(found) in {len(version) for version in versions}
    possible = [sectors(version, len(found)) for version in versions]
    for at, sector in enumerate(sectors(found, len(found))):
        assert sector in {version[at] for version in possible}, at


def test_every_outcome_of_unsynced_writes_comes() -> None:
    """Old, new, the first part, the last part, and a hole: each has its seed."""
    size = 8 * SECTOR_BYTES
    outcomes = set()
    for seed in range(SEEDS):
        system = new_file_system()
        write(system, "/f", b"o" * size)
        sync_directory(system)
        fd = system.open("/f", os.O_RDWR)
        system.pwrite(fd, b"n" * size, 0)
        found = contents(restarted(system, seed), "/f")
        assert found is not None
        shown = "".join(map(chr, found[::SECTOR_BYTES]))
        outcomes.add("whole" if len(set(shown)) == 1 else "first" if shown.startswith("n") else "last")
        outcomes.add(shown if len(set(shown)) == 1 else "hole" if "on" in shown and "no" in shown else "")
    assert {"whole", "first", "last", "hole", "o" * 8, "n" * 8} <= outcomes


def test_a_new_size_may_come_without_its_bytes() -> None:
    found = set()
    for seed in range(SEEDS):
        system = new_file_system()
        fd = system.open("/f", os.O_CREAT | os.O_RDWR)
        sync_directory(system)
        system.write(fd, b"x" * 2 * SECTOR_BYTES)
        found.add(contents(restarted(system, seed), "/f"))
    x, zero = b"x" * SECTOR_BYTES, bytes(SECTOR_BYTES)
    assert {b"", x + x, zero + zero, x + zero} <= found


def test_a_power_cut_during_a_sync_may_keep_any_part() -> None:
    """The sync has not returned, so it promises nothing; what comes after the cut is not written."""
    found = set()
    for seed in range(SEEDS):
        clock = Clock()
        system = new_file_system(clock)
        fd = system.open("/f", os.O_CREAT | os.O_RDWR)
        sync_directory(system)
        system.write(fd, b"x" * SECTOR_BYTES)
        disk = system.disk

        def cut(system: FileSystem = system, seed: int = seed) -> None:
            system.crash(Random(seed))
            raise InterruptedError

        clock.at(clock.now + 1, cut)
        with pytest.raises(InterruptedError):
            system.fdatasync(fd)
        found.add(contents(FileSystem(disk), "/f"))
    assert {b"", b"x" * SECTOR_BYTES} <= found


def test_a_sync_covers_what_was_written_before_it_began() -> None:
    later = set()
    for seed in range(SEEDS // 4):
        clock = Clock()
        system = new_file_system(clock)
        fd = system.open("/f", os.O_CREAT | os.O_RDWR)
        sync_directory(system)
        system.write(fd, b"x" * SECTOR_BYTES)
        clock.at(clock.now + 1, lambda system=system, fd=fd: system.write(fd, b"y" * SECTOR_BYTES))  # type: ignore[misc]
        system.fdatasync(fd)
        found = contents(restarted(system, seed), "/f")
        assert found is not None
        assert found.startswith(b"x" * SECTOR_BYTES)
        later.add(found[SECTOR_BYTES:])
    assert len(later) > 1


def test_the_system_writes_back_what_is_old() -> None:
    system = new_file_system()
    fd = system.open("/f", os.O_CREAT | os.O_RDWR)
    sync_directory(system)
    for _ in range(2 * MAX_CHANGES):
        system.write(fd, b"x")
    assert len(contents(restarted(system, 1), "/f") or b"") >= MAX_CHANGES


# --------------------------------------------------------------------------------------------------------------- names


def test_a_synced_name_stays_and_others_may_go() -> None:
    outcomes = set()
    for seed in range(SEEDS):
        system = new_file_system()
        write(system, "/synced", b"s")
        sync_directory(system)
        write(system, "/unsynced", b"u")
        system.unlink("/synced")
        system.mkdir("/d")
        write(system, "/d/below", b"b")
        sync_directory(system, "/d")
        after = restarted(system, seed)
        outcomes.add((contents(after, "/synced"), contents(after, "/unsynced"), contents(after, "/d/below")))
    assert outcomes >= {
        (b"s", None, None),
        (b"s", b"u", None),
        (None, b"u", None),
        (None, b"u", b"b"),
        (b"s", None, b"b"),
    }


@pytest.mark.parametrize("synced", [True, False])
def test_a_replaced_file_is_the_old_or_the_new_one(synced: bool) -> None:
    outcomes = set()
    for seed in range(SEEDS):
        system = new_file_system()
        write(system, "/f", b"old" * 1000)
        sync_directory(system)
        write(system, "/f.new", b"new" * 1000)
        system.rename("/f.new", "/f")
        if synced:
            sync_directory(system)
        after = restarted(system, seed)
        outcomes.add((contents(after, "/f"), contents(after, "/f.new")))
    new, old = b"new" * 1000, b"old" * 1000
    assert outcomes == ({(new, None)} if synced else {(new, None), (old, new), (old, None)})


def test_a_file_that_was_renamed_without_a_sync_may_be_empty() -> None:
    """The mistake that file systems are known for: the name is there, its bytes are not."""
    outcomes = set()
    for seed in range(SEEDS):
        system = new_file_system()
        write(system, "/f", b"old" * 1000)
        sync_directory(system)
        write(system, "/f.new", b"new" * 1000, sync=False)
        system.rename("/f.new", "/f")
        sync_directory(system)
        outcomes.add(contents(restarted(system, seed), "/f"))
    assert {b"", b"new" * 1000} <= outcomes
    assert b"old" * 1000 not in outcomes


def test_a_move_between_directories_keeps_the_file() -> None:
    for seed in range(SEEDS):
        system = new_file_system()
        system.mkdir("/a")
        system.mkdir("/b")
        write(system, "/a/f", b"here")
        sync_directory(system, "/a")
        sync_directory(system)
        system.rename("/a/f", "/b/f")
        if seed % 2:
            sync_directory(system, "/b")
        after = restarted(system, seed)
        places = [contents(after, "/a/f"), contents(after, "/b/f")]
        assert sorted(places, key=str) == [None, b"here"] or places == [b"here", None]
        assert not seed % 2 or places == [None, b"here"]


def test_counts_are_right_after_a_power_cut() -> None:
    for seed in range(50):
        system = new_file_system()
        write(system, "/f", b"x" * 1000)
        sync_directory(system)
        system.link("/f", "/g")
        system.unlink("/f")
        system.mkdir("/d")
        after = restarted(system, seed)
        names = [name for name in ("/f", "/g") if after.exists(name)]
        assert names
        assert after.stat(names[0]).st_nlink == len(names)
        assert after.disk.used == 1000


# -------------------------------------------------------------------------------------------------------------- faults


def test_syncs_take_the_time_of_the_disk() -> None:
    clock = Clock()
    system = new_file_system(clock, speed=DiskSpeed(100, 200, 1000, 0.2))
    fd = system.open("/f", os.O_CREAT | os.O_RDWR)
    for _ in range(500):
        system.fdatasync(fd)
    assert min(clock.waits) >= 100
    assert max(clock.waits) > 200
    assert sum(wait > 200 for wait in clock.waits) < 200


def test_a_slow_disk_makes_each_sync_longer() -> None:
    clock = Clock()
    system = new_file_system(clock)
    fd = system.open("/f", os.O_CREAT | os.O_RDWR)
    system.disk.slow(250 * MILLISECOND)
    system.fdatasync(fd)
    assert clock.waits[-1] > 250 * MILLISECOND
    system.disk.heal()
    system.fdatasync(fd)
    assert clock.waits[-1] <= 10 * MILLISECOND


def test_a_stalled_disk_goes_on_later() -> None:
    clock = Clock()
    system = new_file_system(clock)
    fd = system.open("/f", os.O_CREAT | os.O_RDWR)
    system.disk.stall(3_000 * MILLISECOND)
    began = clock.now
    system.write(fd, b"x")
    assert clock.now == began + 3_000 * MILLISECOND
    system.write(fd, b"x")
    assert clock.now == began + 3_000 * MILLISECOND


def test_a_full_disk_takes_what_fits() -> None:
    system = new_file_system()
    fd = system.open("/f", os.O_CREAT | os.O_RDWR)
    system.write(fd, b"x" * (BLOCK_BYTES - 6) + b"before")
    system.disk.full(4)
    assert system.write(fd, b"123456") == 4
    system.disk.full()
    assert system.write(fd, b"y" * BLOCK_BYTES) == BLOCK_BYTES - 4, "the last block of a file is its own"
    for call in (lambda: system.write(fd, b"x"), lambda: system.ftruncate(fd, 3 * BLOCK_BYTES)):
        with pytest.raises(OSError, match="No space left"):
            call()
    assert system.pwrite(fd, b"BEFORE", BLOCK_BYTES - 6) == 6
    assert system.mapped(fd)[BLOCK_BYTES - 6 :] == b"BEFORE1234" + b"y" * (BLOCK_BYTES - 4)
    assert system.statvfs("/").f_bavail == 0
    system.ftruncate(fd, 2)
    assert system.write(fd, b"") == 0
    assert system.pwrite(fd, b"12345678", 2) == 8
    system.disk.heal()
    assert system.write(fd, b"more") == 4


def test_removed_files_make_room() -> None:
    system = new_file_system()
    write(system, "/f", b"x" * 100)
    system.disk.full()
    fd = system.open("/g", os.O_CREAT | os.O_RDWR)
    holder = system.open("/f", os.O_RDONLY)
    system.unlink("/f")
    with pytest.raises(OSError, match="No space left"):
        system.write(fd, b"y")
    system.close(holder)
    assert system.write(fd, b"y" * 100) == 100


def test_a_file_has_a_bound() -> None:
    system = new_file_system()
    fd = system.open("/f", os.O_CREAT | os.O_RDWR)
    with pytest.raises(OSError, match="File too large"):
        system.pwrite(fd, b"x", 1 << 40)
    assert system.fstat(fd).st_size == 0


def test_writes_fail_when_told() -> None:
    system = new_file_system()
    fd = system.open("/f", os.O_CREAT | os.O_RDWR)
    system.disk.fail_writes(after=2, count=1)
    assert [system.write(fd, b"x") for _ in range(2)] == [1, 1]
    with pytest.raises(OSError, match="Input/output error"):
        system.write(fd, b"x")
    assert system.write(fd, b"x") == 1


def test_reads_fail_when_told() -> None:
    system = new_file_system()
    write(system, "/f", b"x")
    system.disk.fail_reads(count=1)
    with pytest.raises(OSError, match="Input/output error"):
        contents(system, "/f")
    assert contents(system, "/f") == b"x"


@pytest.mark.parametrize("lose", [True, False])
def test_a_failed_sync_may_lose_what_programs_still_read(lose: bool) -> None:
    """After the failure the next sync succeeds, and on Linux it says nothing about the pages that were dropped."""
    outcomes = set()
    for seed in range(50):
        system = new_file_system()
        write(system, "/f", b"o" * 8192)
        sync_directory(system)
        fd = system.open("/f", os.O_RDWR)
        system.pwrite(fd, b"n" * 4096, 0)
        system.disk.fail_syncs(count=1, lose=lose)
        with pytest.raises(OSError, match="Input/output error"):
            system.fdatasync(fd)
        system.pwrite(fd, b"n" * 4096, 4096)
        system.fdatasync(fd)
        assert system.mapped(fd) == b"n" * 8192
        outcomes.add(contents(restarted(system, seed), "/f"))
    assert outcomes == {b"o" * 4096 + b"n" * 4096 if lose else b"n" * 8192}


def test_a_lost_change_returns_with_its_page() -> None:
    system = new_file_system()
    write(system, "/f", b"o" * 4096)
    sync_directory(system)
    fd = system.open("/f", os.O_RDWR)
    system.pwrite(fd, b"n", 0)
    system.disk.fail_syncs(count=1)
    with pytest.raises(OSError, match="Input/output error"):
        system.fdatasync(fd)
    system.pwrite(fd, b"n", 100)
    system.fdatasync(fd)
    found = contents(restarted(system, 3), "/f") or b""
    assert (found[0:1], found[100:101]) == (b"n", b"n")


def test_directory_syncs_fail_too() -> None:
    system = new_file_system()
    system.disk.fail_syncs(after=1, count=1)
    sync_directory(system)
    with pytest.raises(OSError, match="Input/output error"):
        sync_directory(system)


def test_rot_flips_one_bit() -> None:
    system = new_file_system()
    system.mkdir("/d")
    write(system, "/d/f", bytes(1000))
    write(system, "/other", bytes(1000))
    assert system.disk.rot(Random(1), "/missing") is None
    sync_directory(system, "/d")
    sync_directory(system)
    place = system.disk.rot(Random(1), "/d")
    assert place is not None
    path, offset, bit = place
    expected = bytearray(1000)
    expected[offset] = 1 << bit
    after = restarted(system, 1)
    assert (path, contents(after, "/d/f")) == ("/d/f", bytes(expected))
    assert contents(after, "/other") == bytes(1000)


def test_a_read_only_disk_refuses_changes() -> None:
    system = new_file_system()
    write(system, "/f", b"x")
    fd = system.open("/f", os.O_RDWR)
    system.disk.read_only = True
    for call in (
        lambda: system.write(fd, b"x"),
        lambda: system.unlink("/f"),
        lambda: system.mkdir("/d"),
        lambda: system.rename("/f", "/g"),
        lambda: system.open("/f", os.O_WRONLY),
        lambda: system.open("/new", os.O_CREAT),
        lambda: system.chmod("/f", 0),
    ):
        with pytest.raises(OSError, match="Read-only file system"):
            call()
    assert contents(system, "/f") == b"x"
    assert not system.access("/f", os.W_OK)


def test_descriptors_run_out() -> None:
    system = new_file_system()
    system.descriptor_limit, system.reserved_descriptors = 3, 1
    first, _ = (system.open("/f", os.O_CREAT | os.O_RDWR) for _ in range(2))
    with pytest.raises(OSError, match="Too many open files") as raised:
        system.open("/new", os.O_CREAT)
    assert raised.value.errno == errno.EMFILE
    assert not system.exists("/new")
    system.close(first)
    system.open("/new", os.O_CREAT)


def test_a_wiped_disk_is_empty() -> None:
    system = new_file_system()
    system.mkdir("/d")
    write(system, "/d/f", b"x")
    write(system, "/kept", b"x")
    sync_directory(system)
    system.disk.wipe("/d")
    after = restarted(system, 1)
    assert (after.listdir("/d"), contents(after, "/kept"), after.disk.used) == ([], b"x", 1)
    after.disk.wipe()
    assert (FileSystem(after.disk).listdir("/"), after.disk.used) == ([], 0)


def test_a_backup_comes_back() -> None:
    system = new_file_system()
    system.mkdir("/d")
    system.mkdir("/d/e")
    write(system, "/d/e/f", b"then")
    system.symlink("e/f", "/d/l")
    backup = system.disk.backup("/d")
    write(system, "/d/e/f", b"now")
    write(system, "/d/new", b"now")
    system.disk.restore(backup, "/d")
    after = restarted(system, 5)
    assert sorted(after.listdir("/d")) == ["e", "l"]
    assert (contents(after, "/d/l"), after.readlink("/d/l"), after.disk.used) == (b"then", "e/f", 4)
    after.disk.restore(backup, "/elsewhere")
    assert contents(after, "/elsewhere/e/f") == b"then"


def test_a_placed_file_was_always_there() -> None:
    system = new_file_system()
    system.disk.place_file("/etc/stablecast/store.xml", b"<x/>")
    assert contents(restarted(system, 1), "/etc/stablecast/store.xml") == b"<x/>"
