"""Holes of a source's stream: asked for, filled, given up."""

import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import LostAtStore
from stablecast.core.protocol.messages import LateJoinInfo, LateJoinRequest, RetransmitRequest
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store import gap_filling as filling_module
from stablecast.core.store.gap_filling import GapFilling
from tests.core.samples import LIFE, drain, events, sends

CONFIG = StoreConfig("store:1", 1, retry_ns=10, give_up_ns=35)


class Shop:
    def __init__(self) -> None:
        self.filling = GapFilling.create(CONFIG, 50, LIFE)
        self.held = RangeSet()
        self.out: list[fx.Effect] = []

    def learn(self, high: int, now: int = 0) -> None:
        self.filling.learn(high, self.held, 0, "source:1", now, self.out)

    def answer(self, low: int, high: int, now: int = 0) -> None:
        self.filling.on_late_join(LateJoinInfo(LIFE, 50, low, high), self.held, 0, "source:1", now, self.out)

    def asked(self) -> list[object]:
        return [message for _, message in sends(drain(self.out))]


def ranges(messages: list[object]) -> list[tuple[int, int]]:
    return [(m.first, m.last) for m in messages if isinstance(m, RetransmitRequest)]


def test_the_source_is_asked_once_and_says_what_it_still_has() -> None:
    shop = Shop()
    shop.held.add(5, 8)
    shop.learn(9)
    shop.learn(11)
    assert shop.asked() == [LateJoinRequest(LIFE, 50, "store:1")]
    shop.answer(3, 11)
    assert LostAtStore(50, 0, 2) in events(shop.out)
    assert ranges(shop.asked()) == [(3, 4), (8, 11)]
    assert (shop.filling.lost, shop.filling.losses) == (RangeSet([(0, 3)]), 3)
    shop.answer(9, 11)
    assert events(drain(shop.out)) == [LostAtStore(50, 3, 4), LostAtStore(50, 8, 8)]  # It retains less by now.
    shop.filling.got(9, 12)
    shop.answer(10, 11)
    assert events(drain(shop.out)) == []  # Nobody waits for this.


def test_a_hole_that_the_source_has_nothing_of_is_lost_whole() -> None:
    shop = Shop()
    shop.held.add(5, 8)
    shop.learn(9)
    shop.answer(8, 9)
    assert shop.filling.lost == RangeSet([(0, 5)])
    assert ranges(shop.asked()) == [(8, 9)]


def test_nothing_is_asked_where_nothing_is_missing() -> None:
    shop = Shop()
    shop.held.add(0, 5)
    shop.learn(4)
    shop.answer(0, 4)
    assert (shop.out, shop.filling.next_timeout()) == ([], None)


def test_an_arrived_message_is_requested_no_more() -> None:
    shop = Shop()
    shop.learn(9)
    shop.answer(0, 9)
    assert ranges(shop.asked()) == [(0, 9)]
    shop.filling.got(0, 10)
    shop.held.add(0, 10)
    assert not shop.filling.handle_timeout("source:1", 99, shop.out)
    shop.filling.issue("source:1", 99, shop.out)
    assert shop.out == []


def test_questions_are_repeated_and_in_the_end_given_up() -> None:
    shop = Shop()
    shop.learn(1)
    assert shop.filling.next_timeout() == 10
    shop.asked()
    assert not shop.filling.handle_timeout("source:1", 10, shop.out)
    assert shop.asked() == [LateJoinRequest(LIFE, 50, "store:1")]
    shop.answer(0, 1, now=12)
    for now in (22, 32, 42):
        assert shop.filling.next_timeout() == now
        assert not shop.filling.handle_timeout("source:1", now, shop.out)
        shop.filling.issue("source:1", now, shop.out)
    assert shop.filling.handle_timeout("source:1", 52, shop.out)
    assert events(shop.out) == [LostAtStore(50, 0, 1)]


def test_the_earlier_of_two_timers_counts() -> None:
    shop = Shop()
    shop.learn(1)
    shop.answer(0, 1)
    shop.filling.asked_at = -5
    assert shop.filling.next_timeout() == 5


@pytest.mark.rows("P-917", "P-918")
def test_a_burst_is_lost_at_once() -> None:
    """One event for it, and the account of it."""
    shop = Shop()
    shop.filling.lose_burst([(3, 9), (12, 20)], shop.out)
    assert events(shop.out) == [LostAtStore(50, 3, 19, burst=True)]
    assert (shop.filling.losses, shop.filling.bursts, shop.filling.newest_burst) == (14, 1, 19)
    shop.filling.lose(20, 22, shop.out)
    assert (shop.filling.losses, shop.filling.burst_losses) == (16, 14)


def test_while_paused_nobody_is_asked() -> None:
    shop = Shop()
    shop.learn(9)
    shop.answer(0, 9)
    shop.filling.pause()
    shop.asked()
    shop.learn(19)
    shop.answer(0, 19)
    assert (shop.out, shop.filling.next_timeout(), shop.filling.high) == ([], None, 19)
    shop.filling.paused = False
    shop.learn(19)
    assert shop.asked() == [LateJoinRequest(LIFE, 50, "store:1")]


def test_another_life_begins_with_nothing() -> None:
    shop = Shop()
    shop.learn(9)
    shop.answer(5, 9)
    shop.filling.pause()
    shop.filling.begin_life(9, 0, new=True)
    assert (shop.filling.high, shop.filling.lost, shop.filling.paused) == (None, RangeSet(), False)
    assert shop.filling.requests.incarnation == 9
    shop.answer(0, 9)
    assert ranges(shop.asked()) == [(5, 9)]


def test_a_source_that_returns_is_asked_again_for_what_was_not_passed_by() -> None:
    shop = Shop()
    shop.filling.begin_life(LIFE, 4, new=False)
    shop.filling.lose(1, 3, shop.out)
    shop.filling.lose(5, 7, shop.out)
    shop.filling.begin_life(LIFE, 4, new=False)
    assert shop.filling.lost == RangeSet([(1, 3)])


@pytest.mark.parametrize(("trail", "left"), [(0, [(0, 1), (2, 3), (4, 5)]), (9, [(0, 5)])])
def test_the_account_of_old_losses_is_kept_short(
    monkeypatch: pytest.MonkeyPatch, trail: int, left: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(filling_module, "MAX_HOLES", 2)
    filling = GapFilling.create(CONFIG, 50, LIFE)
    for first in (0, 2):
        filling.give_up(first, first + 1)
        filling.tidy(9)
    assert len(filling.lost) == 2
    filling.give_up(4, 5)
    filling.tidy(trail)
    assert list(filling.lost) == left
