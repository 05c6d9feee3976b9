"""Stability acknowledgements: at once, or so many at a time, or when the interval is over."""

import pytest

from stablecast.core.machine.serial import MODULUS
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.messages import StableAck
from stablecast.core.store.ack_batch import AckBatch
from stablecast.core.store.sync_tickets import SyncTickets
from tests.core.samples import LIFE, drain, sends


def batch(minimum: int) -> tuple[AckBatch, list[fx.Effect]]:
    return AckBatch(minimum, 100, "source:1", 2, LIFE), []


def ranges(out: list[fx.Effect]) -> list[tuple[int, int]]:
    return [(ack.first, ack.last) for _, ack in sends(drain(out)) if isinstance(ack, StableAck)]


@pytest.mark.rows("P-840")
def test_a_minimum_of_one_acknowledges_at_once() -> None:
    """The default."""
    acks, out = batch(1)
    acks.add(MODULUS - 1, MODULUS + 1, 5, out)
    assert sends(out) == [("source:1", StableAck(2, LIFE, MODULUS - 1, 0))]
    assert acks.due is None


@pytest.mark.rows("P-840")
def test_acknowledgements_are_collected_until_there_are_enough() -> None:
    """Always ranges, however many pieces they came in."""
    acks, out = batch(5)
    for first, stop in ((0, 2), (2, 4)):
        acks.add(first, stop, 7, out)
        assert ranges(out) == []
    acks.add(8, 9, 8, out)
    assert ranges(out) == [(0, 3), (8, 8)]


def test_acknowledgements_of_unwritten_messages_wait_for_the_disk() -> None:
    """T19: the newest write says that it went; another life is owed nothing."""
    acks, out = batch(1)
    tickets = SyncTickets(last=9)
    acks.owe([(0, 2), (4, 5)], 50, tickets)
    acks.add(0, 2, 5, out)
    assert (acks.due, ranges(out)) == (None, [])
    acks.add(1, 6, 5, out)
    assert ranges(out) == [(2, 3), (5, 5)]
    assert [(due.ticket, due.reg_id, due.incarnation, due.first, due.stop) for due in tickets.waiting] == [
        (9, 50, LIFE, 0, 2),
        (9, 50, LIFE, 4, 5),
    ]
    acks.address("source:1", 2, LIFE)
    assert acks.owed.total() == 3
    acks.address("source:1", 2, LIFE + 1)
    assert not acks.owed


@pytest.mark.rows("P-839")
def test_acknowledgements_do_not_wait_beyond_the_interval() -> None:
    """A minimum above the flight size makes sending stop and go, at this interval."""
    acks, out = batch(1000)
    acks.add(0, 2, 7, out)
    acks.flush(106, out)
    assert (ranges(out), acks.due) == ([], 107)
    acks.flush(107, out)
    assert ranges(out) == [(0, 1)]
    acks.flush(999, out)
    assert out == []


def test_another_life_is_not_told_of_what_the_one_before_sent() -> None:
    acks, out = batch(5)
    acks.add(0, 2, 7, out)
    acks.address("moved:1", 0, LIFE)
    acks.flush(107, out)
    assert sends(drain(out)) == [("moved:1", StableAck(0, LIFE, 0, 1))]
    acks.add(2, 4, 7, out)
    acks.address("moved:1", 0, LIFE + 1)
    acks.flush(999, out)
    assert out == []


def test_a_message_that_is_no_longer_stable_is_not_acknowledged() -> None:
    """The rest still is, in time; when nothing is left, nothing is due, and the interval begins anew."""
    acks, out = batch(1000)
    acks.add(0, 10, 7, out)
    assert acks.withdraw(3, 5) == [(3, 5)]
    assert acks.withdraw(4, 6) == [(5, 6)]
    acks.flush(107, out)
    assert ranges(out) == [(0, 2), (6, 9)]
    acks.add(0, 2, 200, out)
    assert acks.withdraw(0, 2) == [(0, 2)]
    assert acks.due is None
    acks.add(2, 3, 250, out)
    assert acks.due == 350


@pytest.mark.rows("P-441")
def test_a_lost_message_is_refused_at_once() -> None:
    acks, out = batch(5)
    acks.refuse(3, 5, out)
    assert sends(out) == [("source:1", StableAck(2, LIFE, 3, 4, nack=True))]
