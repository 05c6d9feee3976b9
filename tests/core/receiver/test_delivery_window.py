"""The receiver's window against a twin that thinks number by number."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import UnrecoverableLoss
from stablecast.core.receiver import delivery_window
from stablecast.core.receiver.delivery_window import DeliveryWindow
from tests.core.samples import drain, events
from tests.core.store.window_twin import Twin
from tests.support.abstract_states import abstract
from tests.support.invariants import check_invariants

NUMBER = st.integers(0, 30)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("run"), NUMBER, st.integers(1, 8)),
        st.tuples(st.just("run"), NUMBER, st.integers(1, 8)),
        st.tuples(st.just("next"), st.integers(1, 8)),
        st.tuples(st.just("begin"), st.integers(0, 10)),
        st.tuples(st.just("begin"), st.integers(0, 10)),
        st.tuples(st.just("lose"), NUMBER, st.integers(1, 4)),
        st.tuples(st.just("know"), NUMBER, st.integers(1, 4)),
        st.tuples(st.just("consume"), NUMBER, st.integers(1, 8)),
        st.tuples(st.just("burst"), NUMBER, st.integers(1, 8)),
        st.tuples(st.just("claim"), NUMBER, st.integers(1, 8)),
        st.tuples(st.just("acknowledge"), st.booleans()),
    ),
    max_size=30,
)


class Pair:
    """Both, and the books of the driver: which tokens are still needed."""

    def __init__(self, proximity: int, in_order: bool, leaps: bool) -> None:
        self.window, self.twin = DeliveryWindow(proximity, in_order), Twin(proximity, in_order)
        self.leaps = leaps
        self.out: list[fx.Effect] = []
        self.origins: dict[int, int] = {}
        self.delivered: list[tuple[int, int]] = []
        self.losses: list[tuple[int, bool]] = []
        self.tokens = 0

    def run(self, first: int, count: int) -> None:
        self.tokens += 1
        self.origins[self.tokens] = first
        self.window.on_run(first, first + count, self.tokens, False, self.out)
        self.twin.run(first, first + count, self.tokens)

    def step(self, name: str, arguments: list[int]) -> None:
        match name, arguments:
            case "run", [first, count]:
                self.run(first, count)
            case "next", [count]:
                self.run(self.twin.next or 0, count)
            case "begin", [low] if self.twin.next is None:
                self.window.begin(low, self.out)
                self.twin.begin(low)
            case "know", [start, count]:
                self.window.know(start, start + count, self.out)
                self.twin.know(start, start + count)
            case "consume", [start, count]:
                mine = {n for n, _ in self.twin.delivered if start <= n < start + count}
                for n in mine:
                    assert self.window.delivered(n, n + 1)
                    self.window.on_consumed(n, n + 1)
                self.twin.consumed |= mine
            case "acknowledge", [explicit]:
                ours, twins = (self.window.leap, self.twin.leap) if self.leaps else self.prefixes()
                assert ours(bool(explicit)) == twins(bool(explicit))
            case _ if self.twin.next is not None:
                self.step_begun(name, arguments)

    def prefixes(self) -> tuple[Callable[[bool], int | None], Callable[[bool], int | None]]:
        return self.window.acknowledge, self.twin.acknowledge

    def step_begun(self, name: str, arguments: list[int]) -> None:
        match name, arguments:
            case "lose", [start, count]:
                self.window.lose(start, start + count, self.out)
                self.twin.lose(start, start + count)
            case "burst", [start, count]:
                self.window.burst(start, start + count, self.out)
                self.twin.burst(start, start + count)
            case "claim", [first, count]:
                self.window.claim(first, first + count - 1)
                self.twin.claim(first, first + count - 1)

    def compare(self) -> None:
        for effect in drain(self.out):
            match effect:
                case fx.Deliver():
                    assert effect.first == self.origins[effect.token] + effect.skip
                    self.delivered += [(effect.first + n, effect.token) for n in range(effect.count)]
                    if effect.done:
                        del self.origins[effect.token]
                case fx.Discard():
                    del self.origins[effect.token]
                case fx.Notify(UnrecoverableLoss() as loss):
                    self.losses += [(n, loss.burst) for n in range(loss.first, loss.last + 1)]
        assert self.delivered == self.twin.delivered
        assert self.losses == self.twin.losses
        assert self.window.next == self.twin.next
        assert {n for first, stop in self.window.have for n in range(first, stop)} == {
            *self.twin.held,
            *self.twin.ahead,
        }
        assert set(self.origins) == set(self.twin.held.values()) == set(self.window.users)
        assert self.window.acked == self.twin.acked


@pytest.mark.rows("P-347", "P-434")
@given(st.integers(1, 20), st.booleans(), st.booleans(), STEPS)
@settings(max_examples=150)
def test_the_window_agrees_with_its_twin(proximity: int, in_order: bool, leaps: bool, steps: list[Any]) -> None:
    """T4."""
    pair = Pair(proximity, in_order, leaps)
    for name, *arguments in steps:
        pair.step(name, arguments)
        check_invariants(pair.window)
        pair.compare()


def begun(low: int = 0, proximity: int = 100, in_order: bool = True) -> DeliveryWindow:
    window = DeliveryWindow(proximity, in_order)
    window.begin(low, [])
    return window


def test_nothing_is_missing_before_the_start() -> None:
    window = DeliveryWindow(100)
    assert window.missing() == []
    window.learn(9)
    assert window.missing() == []


def test_missing_numbers_are_neither_held_nor_lost_nor_known() -> None:
    window, out = begun(), list[fx.Effect]()
    window.on_run(5, 7, 1, False, out)
    window.lose(8, 9, out)
    window.know(10, 11, out)
    window.learn(12)
    assert window.missing() == [(0, 5), (7, 8), (9, 10), (11, 13)]
    window.proximity = 6
    assert window.missing() == [(0, 5)]
    assert abstract(window) == (0, 12, ((5, 7),), -1)


def test_a_loss_is_told_when_its_turn_comes() -> None:
    window, out = begun(), list[fx.Effect]()
    window.lose(2, 5, out)
    assert out == []
    window.on_run(0, 2, 1, False, out)
    assert events(drain(out)) == [UnrecoverableLoss(2, 4)]
    assert window.next == 5


def test_runs_held_before_the_start_are_cut_there() -> None:
    window, out = DeliveryWindow(100), list[fx.Effect]()
    window.on_run(0, 3, 1, False, out)
    window.on_run(3, 8, 2, False, out)
    window.begin(5, out)
    assert out == [fx.Discard(1), fx.Deliver(2, 2, 3, 5, False, True)]


def test_a_run_around_what_is_held_is_handed_over_in_two_parts() -> None:
    window, out = begun(), list[fx.Effect]()
    window.on_run(3, 4, 1, False, out)
    window.on_run(1, 6, 2, False, out)
    window.on_run(0, 1, 3, False, out)
    delivered = [(e.token, e.first, e.count, e.done) for e in out if isinstance(e, fx.Deliver)]
    assert delivered == [(3, 0, 1, True), (2, 1, 2, False), (1, 3, 1, True), (2, 4, 2, True)]


def test_known_numbers_are_passed_over_and_acknowledged() -> None:
    window, out = begun(), list[fx.Effect]()
    window.know(1, 3, out)
    window.on_run(0, 5, 1, False, out)
    assert [(effect.first, effect.count) for effect in out if isinstance(effect, fx.Deliver)] == [(0, 1), (3, 2)]
    window.on_consumed(0, 1)
    assert window.acknowledge() == 2
    window.know(2, 4, out)
    assert not window.known


@pytest.mark.parametrize("held", [False, True])
def test_a_late_arrival_is_not_lost(held: bool) -> None:
    window, out = begun(), list[fx.Effect]()
    window.lose(2, 5, out)
    if held:
        window.on_run(9, 10, 2, False, out)
    window.on_run(0, 9, 1, False, out)
    assert out[0] == fx.Deliver(1, 0, 9, 0, False, True)
    assert events(out) == []
    assert not window.lost


def test_what_was_delivered_is_discarded_when_it_comes_again() -> None:
    window, out = begun(), list[fx.Effect]()
    window.on_run(0, 5, 1, False, drain(out))
    drain(out)
    for first, stop in ((0, 5), (2, 5), (0, 4)):
        window.on_run(first, stop, stop, False, out)
        assert drain(out) == [fx.Discard(stop)]


def test_what_is_known_below_the_start_is_forgotten() -> None:
    """Every later run would look there."""
    window = DeliveryWindow(100)
    window.know(0, 4, [])
    window.begin(5, [])
    assert not window.known


def test_lost_messages_do_not_hold_acknowledgements_up_and_do_not_end_them() -> None:
    window, out = begun(), list[fx.Effect]()
    window.on_run(0, 2, 1, False, out)
    window.lose(2, 4, out)
    window.on_consumed(0, 2)
    assert window.acknowledge() == 1
    window.on_run(4, 5, 2, False, out)
    window.on_consumed(4, 5)
    assert window.acknowledge() == 4
    assert window.acknowledge() is None
    assert not window.skipped


def test_no_acknowledgement_passes_over_a_message_below_a_loss_that_is_not_consumed() -> None:
    """The application may settle later messages first."""
    window, out = begun(), list[fx.Effect]()
    window.on_run(0, 4, 1, False, out)
    window.lose(4, 6, out)
    window.on_run(6, 8, 2, False, out)
    window.on_consumed(6, 8)
    assert window.acknowledge() is None
    window.on_consumed(0, 4)
    assert window.acknowledge() == 7


def test_before_the_start_nothing_is_behind_delivered_or_consumed() -> None:
    window = DeliveryWindow(100)
    assert not window.behind
    assert not window.delivered(0, 1)
    window = begun(5)
    assert not window.behind
    window.learn(5)
    assert window.behind


@pytest.mark.rows("P-431")
def test_arrival_order_delivers_at_once_and_filters_duplicates() -> None:
    window, out = begun(in_order=False), list[fx.Effect]()
    window.on_run(3, 6, 1, False, out)
    window.on_run(2, 7, 2, False, out)
    window.on_run(3, 5, 3, False, out)
    parts = [(e.token, e.first, e.count) for e in out if isinstance(e, fx.Deliver)]
    assert parts == [(1, 3, 3), (2, 2, 1), (2, 6, 1)]
    assert fx.Discard(3) in out
    assert window.missing() == [(0, 2)]
    assert window.delivered(3, 7)
    assert not window.delivered(1, 3)


def test_arrival_order_is_not_bounded_by_proximity_but_by_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    window, out = begun(proximity=2, in_order=False), list[fx.Effect]()
    monkeypatch.setattr(delivery_window, "MAX_GAPS", 2)
    for number in (10, 20, 30):
        window.on_run(number, number + 1, number, False, out)
    assert [type(effect) for effect in out] == [fx.Deliver, fx.Deliver, fx.Discard]
    assert window.missing() == [(0, 10), (11, 20), (21, 31)]


def test_arrival_order_tells_a_loss_at_once_and_drops_what_comes_after_all() -> None:
    window, out = begun(in_order=False), list[fx.Effect]()
    window.on_run(5, 6, 1, False, out)
    window.lose(2, 9, drain(out))
    window.lose(2, 4, out)
    assert out == []
    window.on_run(3, 4, 2, False, out)
    assert drain(out) == [fx.Discard(2)]
    window.on_run(0, 2, 3, False, out)
    assert window.next == 9


@pytest.mark.rows("P-427", "P-674")
def test_a_message_that_fills_a_gap_of_the_stream_is_marked() -> None:
    """Recovery of what was there before says so, and so does what came outside the transport."""
    window, out = DeliveryWindow(100), list[fx.Effect]()
    window.learn(4)
    window.begin(0, out)
    window.on_run(0, 5, 1, True, out)
    window.on_run(6, 7, 2, False, out)
    window.on_run(5, 6, 3, True, out)
    marks = [(e.first, e.recovered, e.otr) for e in out if isinstance(e, fx.Deliver)]
    assert marks == [(0, True, False), (5, True, True), (6, False, False)]
    drain(out)
    for otr in (False, True):  # Nothing is held: the first message after the start, and one before it.
        window = begun(5)
        window.origin = 5 + (not otr)
        window.on_run(5, 6, 1, True, out)
        assert drain(out) == [fx.Deliver(1, 0, 1, 5, True, True, otr)]


def test_a_burst_ends_all_waiting_below_it() -> None:
    """T30: one event from the next number on; what was held of it goes, what is held above it is delivered."""
    window, out = begun(10), list[fx.Effect]()
    window.on_run(11, 16, 1, False, out)
    window.know(17, 18, out)
    window.lose(16, 17, out)
    window.burst(0, 14, out)
    told = [fx.Notify(UnrecoverableLoss(10, 13, True)), fx.Deliver(1, 3, 2, 14, False, True)]
    assert out == [*told, fx.Notify(UnrecoverableLoss(16, 16))]
    assert window.next == 18
    drain(out)
    window.burst(0, 5, out)
    assert out == []
    window.know(19, 20, out)
    window.lose(20, 21, out)
    window.burst(22, 24, out)
    assert not window.lost  # Every later run would look there.


def test_a_burst_in_arrival_order_is_only_what_is_missing() -> None:
    window, out = begun(in_order=False), list[fx.Effect]()
    window.on_run(3, 5, 1, False, out)
    window.burst(0, 9, drain(out))
    assert window.next == 9
    assert window.delivered(3, 5)
    window.learn(20)
    window.burst(12, 15, out)
    assert out == [fx.Notify(UnrecoverableLoss(12, 14, True))]


def test_a_burst_over_what_was_known_is_consumed() -> None:
    window, out = begun(), list[fx.Effect]()
    window.know(3, 4, out)
    window.burst(0, 6, out)
    assert window.acknowledge() == 3


@pytest.mark.rows("P-347")
def test_an_own_acknowledgement_fills_gaps_below_it() -> None:
    """In arrival order it does not speak for what was not delivered yet."""
    window, out = begun(), list[fx.Effect]()
    window.on_run(0, 9, 1, False, out)
    window.on_consumed(8, 9)
    window.claim(5, 5)
    assert (window.acknowledge(explicit=True), window.acked) == (5, 5)
    window = begun(in_order=False)
    window.on_run(0, 3, 1, False, out)
    window.on_run(4, 9, 1, False, out)
    window.on_consumed(0, 3)
    window.claim(4, 6)
    assert window.acknowledge(explicit=True) == 2
    window.on_run(3, 4, 1, False, out)
    assert window.acknowledge(explicit=True) is None
    window.claim(3, 3)
    assert window.acknowledge(explicit=True) == 6


def test_in_arrival_order_an_own_acknowledgement_counts_below_it_what_is_consumed() -> None:
    """A1: the rest may wait to be taken, or for the other pieces of a message. It counts with a later one."""
    window, out = begun(in_order=False), list[fx.Effect]()
    window.on_run(4, 9, 1, False, out)
    window.on_run(0, 4, 1, False, out)
    window.claim(8, 8)
    assert window.acknowledge(explicit=True) is None
    window.on_consumed(0, 2)
    assert window.acknowledge(explicit=True) is None
    window.claim(4, 6)
    assert window.acknowledge(explicit=True) == 1
    window.on_consumed(2, 4)
    window.claim(4, 4)
    assert window.acknowledge(explicit=True) == 6
    window.on_consumed(7, 8)
    window.claim(0, 7)
    assert window.acknowledge(explicit=True) == 8
    window.on_run(9, 14, 1, False, out)
    for number in (9, 11):
        window.on_consumed(number, number + 1)
    window.claim(13, 13)
    window.on_consumed(10, 11)
    window.claim(10, 10)
    assert window.acknowledge(explicit=True) == 11


@pytest.mark.rows("P-431")
def test_a_leap_goes_over_what_is_missing() -> None:
    """The documented rule."""
    window, out = begun(in_order=False), list[fx.Effect]()
    window.on_run(4, 9, 1, False, out)
    window.on_consumed(6, 7)
    assert window.leap() == 6
    assert window.leap() is None
    window.claim(8, 8)
    assert window.leap(explicit=True) == 8
    window.lose(0, 4, out)
    assert not window.skipped


def test_unconsumed_messages_are_counted_from_the_first() -> None:
    window, out = begun(), list[fx.Effect]()
    window.on_run(0, 9, 1, False, out)
    window.on_consumed(0, 3)
    window.on_consumed(5, 6)
    assert window.unconsumed == 6


def test_what_is_not_acknowledged_yet_is_confirmed_however_many_messages_are_left_out() -> None:
    """Every second message is for another share. The bound may only make the window forget what it confirmed before."""
    window, out = DeliveryWindow(1 << 20), list[fx.Effect]()
    window.begin(0, out)
    stop = 4 * delivery_window.MAX_MISSED
    window.on_run(0, stop, 1, False, out)
    window.on_consumed(0, stop)
    for number in range(0, stop, 2):
        window.leave_out(number, number + 1)
    assert window.confirmed(0, stop) == [(number, number + 1) for number in range(1, stop, 2)]
    assert window.acknowledge() == stop - 1
    window.on_run(stop, stop + 1, 2, False, out)
    window.leave_out(stop, stop + 1)
    assert len(window.missed) == delivery_window.MAX_MISSED
    assert set(window.confirmed(0, stop)) < {(number, number + 1) for number in range(1, stop, 2)}


@pytest.mark.parametrize(("left_out", "confirmed"), [(False, [(2, 4)]), (True, [])])
def test_a_burst_confirms_of_an_earlier_session_what_may_be_confirmed(
    left_out: bool, confirmed: list[tuple[int, int]]
) -> None:
    window, out = DeliveryWindow(100), list[fx.Effect]()
    window.begin(0, out)
    window.know(2, 4, out)
    if left_out:
        window.leave_out(2, 4)
    window.burst(5, 8, out)
    assert window.confirmed(0, 8) == confirmed


def test_what_earlier_sessions_confirmed_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is forgotten first: it is the least likely to come again."""
    monkeypatch.setattr(delivery_window, "MAX_MISSED", 2)
    window = DeliveryWindow(100)
    kept = []
    for number in (0, 2, 4):
        window.on_confirmed(number, number + 1)
        kept.append(window.confirmable)
    assert kept == [[(0, 1)], [(0, 1), (2, 3)], [(2, 3), (4, 5)]]
