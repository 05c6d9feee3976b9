"""Torn, damaged and foreign files in the scan at open. The journal is written by hand, byte by byte."""

import os
from pathlib import Path

import pytest

from stablecast.store.journal import JournalError
from stablecast.store.journal.disk import Disk
from stablecast.store.journal.record_format import (
    ERASE_BODY,
    HIGHEST,
    LOWEST,
    MESSAGES_HEAD,
    RecordKind,
    file_header,
    join_states,
    seal,
)
from stablecast.store.journal.recovery import RecoveredJournal, recover
from stablecast.store.journal.segments import leave_summary, segment_path

SALT = 77


def messages(first: int, count: int = 1, tag: int = 5, stream: int = 1) -> tuple[RecordKind, bytes]:
    return RecordKind.MESSAGES, MESSAGES_HEAD.pack(stream, first, count, tag, 0) + b"block"


def erase(start: int, stop: int, segment: int, offset: int) -> tuple[RecordKind, bytes]:
    return RecordKind.ERASE, ERASE_BODY.pack(1, start, stop, segment, offset)


def state(number: int) -> tuple[RecordKind, bytes]:
    return RecordKind.STATE, b'{"n":%d}' % number


def checkpoint(*states: bytes) -> tuple[RecordKind, bytes]:
    return RecordKind.CHECKPOINT, join_states(states)


def write(directory: Path, number: int, *records: tuple[RecordKind, bytes]) -> Path:
    """Writes a segment in which every record was a batch of its own."""
    data = file_header(number, SALT)
    for kind, body in records:
        data += seal(kind, 1, len(data), (body,), SALT) + body
    path = segment_path(directory, number)
    path.write_bytes(data)
    return path


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def opened(directory: Path) -> RecoveredJournal:
    return recover(directory, Disk())


def test_empty_directory(tmp_path: Path) -> None:
    found = opened(tmp_path)
    assert (found.next_number, found.newest, found.root, found.states) == (1, None, 0, [])


def test_states_begin_at_the_newest_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, 1, checkpoint(), state(1), messages(0))
    write(tmp_path, 2, checkpoint(b'{"all":1}', b"{}"), state(2), state(3))
    found = opened(tmp_path)
    assert found.states == [b'{"all":1}', b"{}", b'{"n":2}', b'{"n":3}']
    assert (found.root, found.next_number, found.reports) == (2, 3, [])
    assert found.newest is found.segments[2]
    assert found.index.extents(1) == [(0, 1, 5)]


def test_torn_checkpoint_leaves_the_older_one(tmp_path: Path) -> None:
    write(tmp_path, 1, checkpoint(b"{}"), state(1))
    path = write(tmp_path, 2, checkpoint(b'{"all":1}'))
    os.truncate(path, path.stat().st_size - 1)
    found = opened(tmp_path)
    assert found.states == [b"{}", b'{"n":1}']
    assert found.root == 1
    assert path.stat().st_size == 24
    assert "00000002.seg ended in 42 bytes of an unfinished write at 24" in found.reports[0]


def test_the_newest_segment_is_synced_even_if_nothing_is_cut(tmp_path: Path) -> None:
    """A killed process leaves records in the page cache; without this sync a power cut could still take them."""
    path = write(tmp_path, 1, checkpoint(), messages(0))
    synced: list[str] = []
    recover(tmp_path, Disk(sync=lambda fd: synced.append(str(Path(f"/proc/self/fd/{fd}").readlink()))))
    assert synced == [str(path)]


@pytest.mark.parametrize("size", [0, 1, 23])
def test_segment_that_was_never_completed(tmp_path: Path, size: int) -> None:
    write(tmp_path, 1, checkpoint(), messages(0))
    path = write(tmp_path, 2)
    os.truncate(path, size)
    found = opened(tmp_path)
    assert not path.exists()
    assert list(found.segments) == [1]
    assert "was never completed and was removed" in found.reports[0]
    assert (found.newest, found.next_number) == (found.segments[1], 3)


@pytest.mark.parametrize("reserved", [0, 5000])
def test_segment_that_was_opened_before_the_end_of_the_one_before_it_was_synced(tmp_path: Path, reserved: int) -> None:
    torn, begun = write(tmp_path, 1, checkpoint(), messages(0), messages(1)), write(tmp_path, 2)
    os.truncate(torn, torn.stat().st_size - 1)
    os.truncate(begun, begun.stat().st_size + reserved)
    found = opened(tmp_path)
    assert not begun.exists()
    assert found.index.extents(1) == [(0, 1, 5)]
    assert (found.newest, found.next_number, found.damaged) == (found.segments[1], 3, False)
    (report,) = found.reports
    assert "00000001.seg ended in" in report


def test_first_segment_without_records_is_gone_on_with(tmp_path: Path) -> None:
    path = write(tmp_path, 1)
    found = opened(tmp_path)
    assert path.exists()
    assert (found.newest, found.reports) == (found.segments[1], [])


@pytest.mark.parametrize("number", [1, 2])
def test_damaged_header_is_set_aside(tmp_path: Path, number: int) -> None:
    paths = [write(tmp_path, 1, checkpoint(), messages(0)), write(tmp_path, 2, checkpoint(), messages(1))]
    flip(paths[number - 1], 13)
    found = opened(tmp_path)
    assert list(found.segments) == [3 - number]
    assert Path(f"{paths[number - 1]}.damaged").exists()
    assert "damaged header" in found.reports[0]
    assert found.next_number == 3
    assert opened(tmp_path).next_number == 3


def test_damage_in_an_older_segment_is_copied_and_reported(tmp_path: Path) -> None:
    path = write(tmp_path, 1, checkpoint(), messages(0), messages(1), messages(2))
    write(tmp_path, 2, checkpoint())
    size = 32 + 36 + 5
    flip(path, 24 + 34 + size + 40)
    before = path.read_bytes()
    found = opened(tmp_path)
    assert found.index.extents(1) == [(0, 1, 5), (2, 1, 5)]
    assert f"damaged from {58 + size} to {58 + 2 * size} ({size} bytes)" in found.reports[0]
    assert Path(f"{path}.damaged").read_bytes() == path.read_bytes() == before
    assert len(opened(tmp_path).reports) == 1


def test_damage_before_the_newest_checkpoint_costs_no_states(tmp_path: Path) -> None:
    """The checkpoint has them all, so the store need not stay silent for what it may have forgotten."""
    flip(write(tmp_path, 1, checkpoint(), messages(0), messages(1)), 24 + 34 + 3)
    write(tmp_path, 2, checkpoint(b'{"n":1}'))
    found = opened(tmp_path)
    assert (len(found.reports), found.damaged, found.states) == (1, False, [b'{"n":1}'])


@pytest.mark.parametrize("at", [3, 33], ids=["header", "body"])
def test_damage_behind_the_newest_checkpoint_may_cost_states(tmp_path: Path, at: int) -> None:
    flip(write(tmp_path, 1, checkpoint(), state(1), state(2)), 24 + 34 + at)
    found = opened(tmp_path)
    assert found.gapped == [found.segments[1]], "no summary may hide it before a newer checkpoint is on the disk"
    assert (len(found.reports), found.damaged, found.states) == (1, True, [b'{"n":2}'])


@pytest.mark.parametrize(("cut", "states"), [(0, False), (1, True), (41, True)])
def test_an_older_segment_that_was_shortened_may_cost_states(tmp_path: Path, cut: int, states: bool) -> None:
    """Records of any kind may have followed the messages at its new end."""
    write(tmp_path, 1, checkpoint(), messages(0))
    path = write(tmp_path, 2, messages(1), messages(2))
    write(tmp_path, 3, messages(3))
    path.write_bytes(path.read_bytes()[: path.stat().st_size - cut])
    found = opened(tmp_path)
    assert (found.damaged, found.unnamed) == (states, cut > 0)


def test_the_summary_without_a_bad_state_names_all_messages(tmp_path: Path) -> None:
    """A newer checkpoint is on the disk by then. An empty summary would lose the messages without a word."""
    path = write(tmp_path, 1, checkpoint(), messages(0), state(1), messages(1))
    write(tmp_path, 2, checkpoint())
    assert opened(tmp_path).reports == []
    flip(path, 24 + 34 + (32 + 36 + 5) + 33)
    found = opened(tmp_path)
    assert (len(found.reports), found.index.extents(1)) == (1, [(0, 1, 5), (1, 1, 5)])
    [segment] = found.gapped
    leave_summary(segment)
    again = opened(tmp_path)
    assert (again.reports, again.gapped, again.index.extents(1)) == ([], [], [(0, 1, 5), (1, 1, 5)])


def test_damage_in_the_newest_segment_does_not_cost_what_follows(tmp_path: Path) -> None:
    path = write(tmp_path, 1, checkpoint(), messages(0), messages(1))
    flip(path, 24 + 34 + 3)
    found = opened(tmp_path)
    assert found.index.extents(1) == [(1, 1, 5)]
    assert "damaged from 58" in found.reports[0]


def test_erasures_are_bound_to_their_place(tmp_path: Path) -> None:
    """The repeated erasure of segment 2 kills what it looked back on, not what was written in between."""
    write(tmp_path, 1, checkpoint(), messages(0, 9, tag=1))
    write(tmp_path, 2, messages(4, 3, tag=2), erase(LOWEST, HIGHEST, 1, 1000), checkpoint(), erase(LOWEST, 5, 9, 0))
    assert opened(tmp_path).index.extents(1) == [(5, 2, 2)]


def test_newer_release(tmp_path: Path) -> None:
    path = write(tmp_path, 1, checkpoint())
    flip(path, 8)
    with pytest.raises(JournalError, match="use the newer release"):
        opened(tmp_path)
