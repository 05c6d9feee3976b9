"""Missing datagrams: requests, silence after an NCF, arrival, and loss."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.reliable import gaps as module
from stablecast.transports.reliable.effects import DatagramsLost, LossReason, ReceiverEffect
from stablecast.transports.reliable.gaps import STALE_DEADLINES, Gaps
from stablecast.transports.reliable.settings import LBTRM_RECEIVER, ReceiverSettings
from stablecast.transports.reliable.statistics import ReceiverStatistics

MS = MILLISECOND


class Driven:
    def __init__(self, settings: ReceiverSettings = LBTRM_RECEIVER, high: int = -1, seed: int = 1) -> None:
        self.out: list[ReceiverEffect] = []
        self.statistics = ReceiverStatistics()
        self.gaps = Gaps(settings, Seeded(seed), self.statistics)
        self.gaps.begin(high)

    def take(self, *numbers: int, now: int = 0, again: bool = False) -> list[bool]:
        return [self.gaps.on_datagram(number, again, now, self.out) for number in numbers]

    def lost(self) -> list[tuple[int, int, LossReason]]:
        out, self.out[:] = self.out[:], []
        return [(loss.first, loss.count, loss.reason) for loss in out if isinstance(loss, DatagramsLost)]

    def asks(self, until: int) -> list[tuple[int, list[int]]]:
        """Return the requests with their instants up to an instant; old gaps are given up."""
        found = []
        while (due := self.gaps.next()) is not None and due <= until:
            self.gaps.expire(due, self.out)
            numbers = self.gaps.ask(due)
            if numbers:
                found.append((due, numbers))
        return found


def spans(times: Iterable[int]) -> list[int]:
    return [later - sooner for sooner, later in pairwise(times)]


def test_datagrams_in_order_leave_nothing_to_ask_for() -> None:
    driven = Driven()
    assert driven.take(0, 1, 2) == [True] * 3
    assert driven.gaps.next() is None
    assert driven.statistics == ReceiverStatistics()


@pytest.mark.parametrize("seed", range(5))
def test_the_first_nak_waits_half_to_one_and_a_half_backoffs_and_so_do_the_next(seed: int) -> None:
    """T29: 25 to 75 ms, then 100 to 300 ms."""
    driven = Driven(seed=seed)
    driven.take(0, 3)
    asks = driven.asks(5 * SECOND)
    assert all(numbers == [1, 2] for _, numbers in asks), "what was lost together is asked for together"
    assert 25 * MS <= asks[0][0] <= 75 * MS
    assert all(100 * MS <= span <= 300 * MS for span in spans(at for at, _ in asks))
    assert len(asks) > 16


def test_an_initial_backoff_of_0_asks_at_once() -> None:
    driven = Driven(ReceiverSettings(initial_backoff_ns=0))
    driven.take(0, 2, now=7)
    assert driven.gaps.ask(7) == [1]


def test_a_newer_loss_does_not_wait_for_an_older_one() -> None:
    """Unlike the product there is no timer for all gaps: an NCF silences its own numbers only."""
    driven = Driven()
    driven.take(0, 2)
    assert driven.asks(75 * MS)
    driven.gaps.refuse([1], 80 * MS)
    driven.take(4, now=90 * MS)
    assert [numbers for _, numbers in driven.asks(165 * MS)] == [[3]]


def test_an_ncf_replaces_the_running_backoff() -> None:
    """U22, T29: silence for 1000 ms, then the random backoff again."""
    driven = Driven()
    driven.take(0, 2)
    first = driven.asks(75 * MS)[0][0]
    driven.gaps.refuse([1, 99], first + MS)
    at, again, *_ = (at for at, _ in driven.asks(2 * SECOND))
    assert at == first + MS + SECOND
    assert 100 * MS <= again - at <= 300 * MS


def test_a_repair_or_a_late_arrival_ends_the_asking() -> None:
    driven = Driven()
    driven.take(0, 3)
    driven.asks(80 * MS)
    assert driven.take(1, now=90 * MS, again=True) == [True]
    assert driven.take(2, now=95 * MS) == [True]
    assert driven.take(2, 3, now=99 * MS) == [False, False]
    assert driven.gaps.next() is None
    found = driven.statistics
    assert (found.lost, found.out_of_order, found.duplicate_data) == (2, 1, 2)
    assert (found.nak_stm.least, found.nak_stm.most, found.nak_tx.total) == (90, 95, 2)


def test_a_datagram_that_comes_before_its_request_is_no_repair() -> None:
    driven = Driven()
    driven.take(0, 2, 1)
    assert (driven.statistics.out_of_order, driven.statistics.nak_stm.count) == (1, 0)


def test_after_the_generation_interval_it_is_given_up() -> None:
    """The last NAK is at most one backoff older; the interval counts from detection."""
    driven = Driven()
    driven.take(0, 2, 5, now=MS)
    asks = driven.asks(11 * SECOND)
    assert driven.lost() == [(1, 1, LossReason.TIME), (3, 2, LossReason.TIME)]
    assert 10 * SECOND + MS - 300 * MS <= asks[-1][0] <= 10 * SECOND + MS
    assert driven.statistics.unrecovered_tmo == 3
    assert driven.take(1, now=11 * SECOND, again=True) == [False], "too late is a duplicate"


def test_without_naks_gaps_are_sat_out() -> None:
    driven = Driven(ReceiverSettings(send_naks=False))
    driven.take(0, 2)
    driven.gaps.refuse([1], 0)
    assert driven.gaps.next() == 10 * SECOND
    assert driven.asks(10 * SECOND) == []
    assert driven.lost() == [(1, 1, LossReason.TIME)]


def test_below_the_trail_it_is_given_up_at_once_and_never_asked_for() -> None:
    """T29: datagrams at or above the trail stay."""
    driven = Driven()
    driven.gaps.advance(4, driven.out)
    driven.take(6)
    assert driven.lost() == [(0, 4, LossReason.WINDOW)]
    driven.gaps.advance(5, driven.out)
    driven.gaps.advance(3, driven.out)
    assert driven.lost() == [(4, 1, LossReason.WINDOW)]
    driven.gaps.advance(6, driven.out)
    driven.gaps.advance(100, driven.out)
    driven.take(9)
    assert driven.lost() == [(5, 1, LossReason.WINDOW), (7, 2, LossReason.WINDOW)]
    assert driven.asks(SECOND) == []
    assert driven.statistics.unrecovered_txw == driven.statistics.lost == 8


def test_the_oldest_of_too_many_gaps_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MISSING", 4)
    driven = Driven()
    driven.take(0, 4)
    driven.take(7)
    assert driven.lost() == [(1, 1, LossReason.TOO_MANY)]
    driven.take(1_000_000_000)
    assert [loss[:2] for loss in driven.lost()] == [(2, 2), (5, 2), (8, 1_000_000_000 - 12)]
    assert list(driven.gaps.missing) == list(range(999_999_996, 1_000_000_000))


def test_everything_up_to_a_lead_that_is_not_news_is_known() -> None:
    driven = Driven()
    driven.take(0)
    driven.gaps.extend(0, 0, driven.out)
    assert driven.gaps.next() is None
    driven.gaps.extend(2, 0, driven.out)
    assert list(driven.gaps.missing) == [1, 2]


def test_stale_deadlines_do_not_pile_up() -> None:
    driven = Driven()
    for number in range(0, 20 * STALE_DEADLINES, 2):
        driven.take(number, number + 1 - 2)
    driven.take(10_001)
    for _ in range(3 * STALE_DEADLINES):
        driven.gaps.refuse([10_000], 0)
        assert len(driven.gaps.deadlines) <= 2 * len(driven.gaps.missing) + STALE_DEADLINES + 1


@given(
    st.lists(
        st.tuples(st.sampled_from(["take", "again", "lead", "trail", "refuse", "wait"]), st.integers(0, 30)),
        max_size=40,
    )
)
def test_a_datagram_is_missing_until_it_arrives_or_is_given_up(steps: list[tuple[str, int]]) -> None:
    """Compared with sets of numbers."""
    driven, now = Driven(), 0
    known, heard, gone = -1, set[int](), set[int]()
    for step, number in steps:
        match step:
            case "take" | "again":
                fresh = number not in heard and number not in gone
                assert driven.take(number, now=now, again=step == "again") == [fresh]
                known = max(known, number)
                heard |= {number} if fresh else set()
            case "lead":
                driven.gaps.extend(number, now, driven.out)
                known = max(known, number)
            case "trail":
                driven.gaps.advance(number, driven.out)
            case "refuse":
                driven.gaps.refuse([number], now)
            case _:
                now += number * 100 * MS
                driven.gaps.expire(now, driven.out)
                asked = driven.gaps.ask(now)
                assert asked == sorted(asked)
                assert set(asked) <= set(driven.gaps.missing)
        for first, count, _ in driven.lost():
            gone |= set(range(first, first + count))
        assert list(driven.gaps.missing) == sorted(set(range(known + 1)) - heard - gone)
        assert min(driven.gaps.missing, default=30) >= min(driven.gaps.trail, known + 1)
