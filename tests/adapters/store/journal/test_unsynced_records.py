"""Tickets that are done, and records that are still in memory."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.store.journal.record_format import RecordKind
from stablecast.store.journal.segments import JournalRecord, JournalSegment, RecordPlace
from stablecast.store.journal.unsynced_records import Pending

PLACE = JournalSegment(3, 0, Path("unused"))


def record(ticket: int, kind: RecordKind = RecordKind.STATE) -> JournalRecord:
    return JournalRecord(PLACE, 0, 10, kind, ticket, (b"{}",))


@given(st.lists(st.tuples(st.sampled_from([0, 0, 1, 2]), st.booleans()), max_size=30), st.data())
def test_a_ticket_is_done_with_its_last_record(steps: list[tuple[int, bool]], data: st.DataObject) -> None:
    """A record carries a new ticket, shares one, or has none; commits come in any portions."""
    pending, tickets, synced, current = Pending(0), [], 0, 1
    for step, commits in steps:
        current += step
        ticket = current if step else data.draw(st.sampled_from([0, current]))
        tickets.append(ticket)
        pending.add(record(ticket))
        if commits:
            count = data.draw(st.integers(0, len(tickets) - synced))
            pending.commit(count)
            synced += count
            waiting = set(tickets[synced:])
            done = [t for t in tickets[:synced] if t and t not in waiting]
            assert pending.done == max(done, default=0)
            assert pending.size == 10 * (len(tickets) - synced)
            assert (pending.added, pending.synced) == (len(tickets), synced)


def test_commit_finds_the_root() -> None:
    pending = Pending(1)
    pending.add(record(0, RecordKind.CHECKPOINT))
    assert pending.root == 1
    pending.commit(1)
    assert pending.root == 3


def test_a_block_is_here_until_it_is_synced() -> None:
    pending, place = Pending(0), RecordPlace(PLACE, 0, 10, 5, 1, 2)
    pending.add(JournalRecord(PLACE, 0, 10, RecordKind.MESSAGES, 1, (b"head", b"block")))
    assert pending.block(place) == b"block"
    pending.commit(1)
    assert pending.block(place) is None


def test_a_segment_is_synced_up_to_its_first_record_under_way() -> None:
    """The scrubber reads no further: it would take bytes that are not written yet for damage."""
    pending = Pending(0)
    full, newest, idle = (JournalSegment(number, 0, Path("unused"), end=100) for number in (1, 2, 3))
    for segment, offset in ((full, 40), (full, 70), (newest, 24), (newest, 60)):
        pending.add(JournalRecord(segment, offset, 30, RecordKind.STATE, 1, (b"{}",)))
    assert pending.synced_ends([full, newest, idle]) == {full: 40, newest: 24, idle: 100}
    pending.commit(3)
    assert pending.synced_ends([full, newest, idle]) == {full: 100, newest: 60, idle: 100}


@pytest.mark.parametrize("ticket", [0, -1, 4])
def test_ticket_out_of_order(ticket: int) -> None:
    pending = Pending(0)
    pending.issue(5)
    pending.issue(5)
    with pytest.raises(MisuseError, match="never go down"):
        pending.issue(ticket)
