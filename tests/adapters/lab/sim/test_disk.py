"""The disk: what a sync covers, what a crash leaves."""

from random import Random

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.lab.sim.disk import DiskRecord, DiskRecordKind, Syncer, VirtualDisk
from stablecast.lab.sim.virtual_time import VirtualWorld


def messages(ticket: int, first: int, stop: int, tag: int = 7) -> DiskRecord:
    return DiskRecord(ticket, DiskRecordKind.MESSAGES, None, 1, first, stop, tag, b"." * 10 * (stop - first))


def state(ticket: int, body: bytes) -> DiskRecord:
    return DiskRecord(ticket, DiskRecordKind.STATE, lambda: body, 5)


def sound(stream: int, first: int, stop: int) -> None:
    pytest.fail(f"{first}..{stop - 1} of {stream} are bad")


def test_a_ticket_is_reported_when_all_its_records_are_synced() -> None:
    disk = VirtualDisk()
    for record in (messages(1, 0, 2), messages(1, 4, 6), messages(2, 6, 7)):
        disk.append(record)
    assert disk.commit(1) == 0
    assert disk.commit(1) == 1
    assert disk.commit(1) == 2


@pytest.mark.parametrize(("keep", "kept"), [(0.0, [(0, 3)]), (0.5, [(0, 4)]), (1.0, [(0, 5)])])
def test_a_crash_keeps_a_beginning_of_what_was_not_synced(keep: float, kept: list[tuple[int, int]]) -> None:
    disk = VirtualDisk()
    for number in range(5):
        disk.append(messages(number + 1, number, number + 1))
    disk.commit(3)
    disk.crash(keep)
    assert disk.sizes(1) == [(first, count, 10 * count) for first, count in kept]


def test_cuts_and_later_records_win() -> None:
    disk = VirtualDisk()
    for record in (messages(1, 0, 9), DiskRecord(2, DiskRecordKind.CUT, None, 1, 4), messages(3, 4, 6, tag=8)):
        disk.append(record)
    assert disk.sizes(1) == [(0, 6, 60)]
    assert [disk.contents[1][number].tag for number in (3, 4, 5)] == [7, 8, 8]
    assert disk.sizes(2) == []


def test_a_trim_lets_go_what_is_below_and_is_remembered() -> None:
    world, disk = VirtualWorld(Random(3)), VirtualDisk()
    log = Syncer(world, disk, lambda ticket: None, pytest.fail, sound)
    block = b"." * 90
    log.append_messages(1, 0, 9, 7, block, 1)
    log.append_messages(1, 4, 2, 8, block[:20], 2)
    log.trim(1, 3, 3)
    assert [log.read(1, number) for number in (2, 3, 4, 6)] == [
        None,
        (0, 4, 7, block),
        (4, 2, 8, block[:20]),
        (0, 9, 7, block),
    ]
    assert disk.trail(1) is None
    world.run(SECOND)
    assert (disk.trail(1), disk.trail(2)) == (3, None)
    log.cut(1, 2, 4)
    log.forget(2, 4)
    world.run(2 * SECOND)
    assert (disk.trail(1), disk.sizes(1)) == (2, [])
    assert log.read(1, 5) is None


def test_whether_there_is_a_memory() -> None:
    """Formal design, 7.6."""
    disk = VirtualDisk()
    found = [disk.remembers]
    disk.wipe()
    found.append(disk.remembers)
    disk.append(state(1, b"1"))
    disk.commit(1)
    assert [*found, disk.remembers] == [True, False, True]


def test_the_newest_states_are_kept() -> None:
    disk = VirtualDisk()
    for ticket in (1, 2, 3):
        disk.append(state(ticket, b"%d" % ticket))
    disk.commit(2)
    disk.crash(0)
    assert disk.states() == [b"2"]
    disk.wipe()
    assert disk.states() == []


def test_syncs_cover_what_was_there_when_they_began() -> None:
    world, disk, synced = VirtualWorld(Random(3)), VirtualDisk(), list[int]()
    syncer = Syncer(world, disk, synced.append, pytest.fail, sound)
    for ticket in (1, 2):
        syncer.append(messages(ticket, ticket, ticket + 1))
    world.run(1)
    syncer.append(messages(3, 3, 4))
    world.run(SECOND)
    assert synced == [2, 3]


def test_a_full_disk_fails_for_good() -> None:
    world, disk, failed = VirtualWorld(Random(3)), VirtualDisk(), list[bool]()
    syncer = Syncer(world, disk, lambda ticket: pytest.fail("synced"), lambda: failed.append(True), sound)
    disk.full = True
    syncer.append(messages(1, 0, 1))
    world.run(SECOND)
    disk.full = False
    syncer.append(messages(2, 1, 2))
    world.run(2 * SECOND)
    assert (failed, disk.durable) == ([True], {})


def test_a_process_that_is_gone_hears_of_no_sync() -> None:
    """This holds for earlier and for later requests."""
    world, disk = VirtualWorld(Random(3)), VirtualDisk()
    syncer = Syncer(world, disk, lambda ticket: pytest.fail("synced"), lambda: pytest.fail("failed"), sound)
    syncer.append(messages(1, 0, 1))
    world.run(1)
    syncer.stopped = True
    syncer.append(messages(2, 1, 2))
    world.run(SECOND)
    early = Syncer(world, disk, lambda ticket: pytest.fail("synced"), lambda: pytest.fail("failed"), sound)
    early.append(messages(3, 2, 3))
    early.stopped = True
    world.run(2 * SECOND)
    assert disk.durable == {}


def test_a_sync_that_completes_no_ticket_reports_none() -> None:
    world, disk, reported = VirtualWorld(Random(3)), VirtualDisk(), list[int]()
    Syncer(world, disk, reported.append, pytest.fail, sound).append(messages(0, 0, 1))
    world.run(SECOND)
    assert (reported, disk.sizes(1)) == ([], [(0, 1, 10)])


def test_a_memory_ends_with_its_process() -> None:
    disk = VirtualDisk()
    disk.keep(1, 0, 2, 7)
    disk.append(DiskRecord(1, DiskRecordKind.CUT, None, 1, 1))
    assert list(disk.memory[1]) == [0]
    disk.crash(1)
    assert (disk.memory, disk.sizes(1)) == ({}, [])


def test_what_goes_bad_is_not_given_and_told_a_while_later() -> None:
    """A message that was changed is never delivered; whoever starts does not find it either."""
    world, disk, told = VirtualWorld(Random(3)), VirtualDisk(), list[tuple[int, int, int]]()
    log = Syncer(world, disk, lambda ticket: None, pytest.fail, lambda *bad: told.append(bad))
    log.append_messages(1, 0, 4, 7, b"." * 40, 1)
    log.append_messages(1, 4, 2, 7, b"." * 20, 2)
    world.run(SECOND)
    bad, good = disk.whole()
    bad.bad = True
    assert disk.whole() == [good]
    assert [log.read(1, number) for number in (1, 2, 4)] == [None, None, (4, 2, 7, b"." * 20)]
    assert (told, list(disk.durable[1])) == ([], [0, 4, 5])
    world.run(2 * SECOND)
    assert told == [(1, 1, 4)]
    disk.verify()
    assert (disk.sizes(1), list(disk.durable[1])) == ([(4, 2, 20)], [4, 5])


def test_what_came_again_since_is_not_dropped_with_what_was_bad() -> None:
    disk = VirtualDisk()
    for record in (messages(1, 0, 3), messages(2, 1, 2)):
        disk.append(record)
    disk.commit(2)
    disk.log[0].bad = True
    disk.drop(1, 0, 4)
    assert list(disk.contents[1]) == list(disk.durable[1]) == [1]


def test_what_came_again_since_is_not_told_as_bad() -> None:
    world, disk, told = VirtualWorld(Random(3)), VirtualDisk(), list[tuple[int, int, int]]()
    log = Syncer(world, disk, lambda ticket: None, pytest.fail, lambda *bad: told.append(bad))
    log.append_messages(1, 0, 4, 7, b"." * 40, 1)
    world.run(SECOND)
    disk.log[0].bad = True
    assert log.read(1, 0) is None
    log.append_messages(1, 1, 2, 7, b"." * 20, 2)
    world.run(2 * SECOND)
    assert told == [(1, 0, 1), (1, 3, 4)]


def test_a_process_that_is_gone_hears_of_no_damage() -> None:
    world, disk = VirtualWorld(Random(3)), VirtualDisk()
    log = Syncer(world, disk, lambda ticket: None, pytest.fail, lambda *bad: pytest.fail("told"))
    log.append_messages(1, 0, 4, 7, b"." * 40, 1)
    world.run(SECOND)
    disk.log[0].bad = True
    assert log.read(1, 0) is None
    log.stopped = True
    world.run(2 * SECOND)
