"""Proactive retransmission: what a store has not acknowledged in time is sent to it again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.quorum import GroupRules, Quorums
from stablecast.core.protocol.settings import Retention
from stablecast.core.source import retransmission
from stablecast.core.source.retransmission import ProactiveRetransmission
from stablecast.core.source.stability import StabilityWindow

TIMEOUT = 100


class Flow:
    def __init__(self, size: int = 3, timeout: int = TIMEOUT) -> None:
        self.window = StabilityWindow.create(Quorums.of(GroupRules((size,)), [0] * size), Retention(), size)
        self.window.on_stores((1 << size) - 1, False, [])
        self.machine = ProactiveRetransmission(timeout)
        self.out: list[fx.Effect] = []

    def send(self, count: int, now: int) -> None:
        first = self.window.next
        self.window.sent(count, 0, self.out)
        self.machine.sent(first, first + count, now)

    def ack(self, store: int, start: int, stop: int) -> None:
        self.window.on_acked(store, start, stop, self.out)

    def check(self, now: int) -> list[tuple[int, int, int]]:
        return self.machine.check(self.window, now)


@pytest.mark.rows("P-436")
def test_unstable_messages_go_to_the_stores_that_lack_them() -> None:
    """Not before its time, and to the stores that did not acknowledge it."""
    flow = Flow()
    flow.send(4, 0)
    flow.send(4, 1)
    flow.ack(0, 0, 8)
    assert flow.check(TIMEOUT - 1) == []
    assert flow.check(TIMEOUT) == [(1, 0, 4), (2, 0, 4)]
    assert flow.check(TIMEOUT + 1) == [(1, 4, 8), (2, 4, 8)]


def test_runs_that_are_due_together_go_as_one_range() -> None:
    flow = Flow(1)
    for _ in range(5):
        flow.send(2, 0)
    flow.ack(0, 4, 5)
    assert flow.check(TIMEOUT) == [(0, 0, 4), (0, 5, 10)]


@pytest.mark.rows("P-437")
def test_its_time_begins_anew() -> None:
    flow = Flow(1)
    flow.send(4, 0)
    assert [flow.check(now) for now in (100, 199, 200)] == [[(0, 0, 4)], [], [(0, 0, 4)]]


def test_stable_messages_are_not_sent_again() -> None:
    """Two of three have it; the third gets it when it asks."""
    flow = Flow()
    flow.send(4, 0)
    for store in (0, 1):
        flow.ack(store, 0, 4)
    assert flow.check(1) == []
    assert not flow.machine


def test_a_run_that_is_stable_above_a_hole_leaves_when_it_is_due() -> None:
    flow = Flow(1)
    flow.send(1, 0)
    flow.send(1, 0)
    flow.ack(0, 1, 2)
    assert flow.check(TIMEOUT) == [(0, 0, 1)]
    assert list(flow.machine.queue) == [(0, 1, 2 * TIMEOUT)]


@pytest.mark.rows("P-441")
def test_messages_lost_at_a_store_are_not_sent_to_it_again() -> None:
    """T16."""
    flow = Flow()
    flow.send(4, 0)
    flow.window.on_nacked(1, 0, 4, flow.out)
    assert flow.check(TIMEOUT) == [(0, 0, 4), (2, 0, 4)]


def test_stores_that_are_away_get_nothing() -> None:
    flow = Flow()
    flow.send(4, 0)
    flow.window.on_stores(0b100, False, flow.out)
    assert flow.check(TIMEOUT) == [(2, 0, 4)]


@pytest.mark.parametrize("lost", [False, True], ids=["away", "lost everywhere"])
def test_a_run_that_no_store_can_get_at_one_check_is_sent_at_a_later_one(lost: bool) -> None:
    """The stores come back, or have restarted and take what they had given up."""
    flow = Flow(2)
    flow.send(4, 0)
    if lost:
        for store in (0, 1):
            flow.window.on_nacked(store, 0, 4, flow.out)
    else:
        flow.window.on_stores(0, False, flow.out)
    assert flow.check(TIMEOUT) == []
    flow.window.on_stores(0b11, False, flow.out)
    for store in (0, 1):
        flow.window.forget_store(store, 0)
    assert flow.check(2 * TIMEOUT) == [(0, 0, 4), (1, 0, 4)]


@pytest.mark.rows("P-439")
def test_nothing_waits_without_a_timeout() -> None:
    flow = Flow(timeout=0)
    flow.send(4, 0)
    assert not flow.machine
    assert flow.check(10**12) == []


def test_a_check_sends_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retransmission, "MESSAGES_PER_CHECK", 6)
    flow = Flow(2)
    for _ in range(4):
        flow.send(2, 0)
    assert flow.check(TIMEOUT) == [(0, 0, 4), (1, 0, 4)]
    assert flow.check(TIMEOUT) == [(0, 4, 8), (1, 4, 8)]
    assert flow.check(TIMEOUT) == []


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.data())
def test_every_store_gets_what_it_lacks(counts: list[int], data: st.DataObject) -> None:
    flow = Flow()
    for count in counts:
        flow.send(count, 0)
    total = sum(counts)
    for store, start, length in data.draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, total), st.integers(1, 9)), max_size=6)
    ):
        flow.ack(store, start, start + length)
    sent = [(store, n) for store, first, stop in flow.check(TIMEOUT) for n in range(first, stop)]
    unstable = [n for n in range(flow.window.trail, total) if n not in flow.window.stable]
    assert sent == [(store, n) for store in range(3) for n in unstable if n not in flow.window.acked[store]]
