"""The receiver's window against a twin that thinks number by number."""

from typing import Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core import effects as fx
from stablecast.core.delivery import DeliveryWindow
from stablecast.core.events import UnrecoverableLoss
from tests.core.samples import drain, events


@attrs.define
class Twin:
    """Number by number: what came, what is lost, what was known before."""

    proximity: int
    next: int | None = None
    held: dict[int, int] = attrs.field(factory=dict)
    lost: set[int] = attrs.field(factory=set)
    known: set[int] = attrs.field(factory=set)
    delivered: list[tuple[int, int]] = attrs.field(factory=list)
    skipped: set[int] = attrs.field(factory=set)
    consumed: set[int] = attrs.field(factory=set)
    acked: int = -1

    def begin(self, low: int) -> None:
        self.next, self.acked = low, low - 1
        self.held = {n: token for n, token in self.held.items() if n >= low}
        self.lost = {n for n in self.lost if n >= low}
        self.known = {n for n in self.known if n >= low}
        self.drain()

    def run(self, first: int, stop: int, token: int) -> None:
        straight = self.next in range(first, stop) and not self.held and not self.known
        base = self.next if self.next is not None else min(self.held, default=stop)
        if not straight and stop - base > self.proximity:
            return
        for n in range(first, stop):
            self.lost.discard(n)
            if (self.next is None or n >= self.next) and n not in self.known and n not in self.held:
                self.held[n] = token
        self.drain()

    def lose(self, start: int, stop: int) -> None:
        self.lost |= set(range(start, stop))
        self.drain()

    def know(self, start: int, stop: int) -> None:
        first = start if self.next is None else max(start, self.next)
        self.known |= {n for n in range(first, stop) if n not in self.held}
        self.drain()

    def drain(self) -> None:
        while self.next is not None:
            if self.next in self.held:
                self.delivered.append((self.next, self.held.pop(self.next)))
            elif self.next in self.known:
                self.known.remove(self.next)
                self.consumed.add(self.next)
            elif self.next in self.lost:
                self.lost.remove(self.next)
                self.skipped.add(self.next)
            else:
                return
            self.next += 1

    def acknowledge(self) -> int | None:
        end, n = None, self.acked + 1
        while n in self.consumed or n in self.skipped:
            end = n if n in self.consumed else end
            n += 1
        self.acked = self.acked if end is None else end
        return end


NUMBER = st.integers(0, 30)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("run"), NUMBER, st.integers(1, 8)),
        st.tuples(st.just("run"), NUMBER, st.integers(1, 8)),
        st.tuples(st.just("next"), st.integers(1, 8)),
        st.tuples(st.just("begin"), st.integers(0, 10)),
        st.tuples(st.just("lose"), NUMBER, st.integers(1, 4)),
        st.tuples(st.just("know"), NUMBER, st.integers(1, 4)),
        st.tuples(st.just("consume"), NUMBER, st.integers(1, 8)),
        st.tuples(st.just("acknowledge")),
    ),
    max_size=30,
)


class Pair:
    """Both, and the books of the driver: which tokens are still needed."""

    def __init__(self, proximity: int) -> None:
        self.window, self.twin = DeliveryWindow(proximity), Twin(proximity)
        self.out: list[fx.Effect] = []
        self.origins: dict[int, int] = {}
        self.delivered: list[tuple[int, int]] = []
        self.tokens = 0

    def run(self, first: int, count: int) -> None:
        self.tokens += 1
        self.origins[self.tokens] = first
        self.window.on_run(first, first + count, self.tokens, False, self.out)
        self.twin.run(first, first + count, self.tokens)

    def lose(self, start: int, stop: int) -> None:
        """Only what is missing can be lost, as the requests are for that."""
        gaps = [n for n in range(start, stop) if self.twin.next is not None and n >= self.twin.next]
        for n in gaps:
            if n not in self.twin.held and n not in self.twin.known:
                self.window.lose(n, n + 1, self.out)
                self.twin.lose(n, n + 1)

    def step(self, name: str, arguments: list[int]) -> None:
        match name, arguments:
            case "run", [first, count]:
                self.run(first, count)
            case "next", [count]:
                self.run(self.twin.next or 0, count)
            case "begin", [low] if self.twin.next is None:
                self.window.begin(low, self.out)
                self.twin.begin(low)
            case "lose", [start, count]:
                self.lose(start, start + count)
            case "know", [start, count]:
                self.window.know(start, start + count, self.out)
                self.twin.know(start, start + count)
            case "consume", [start, count]:
                mine = {n for n, _ in self.twin.delivered if start <= n < start + count}
                for n in mine:
                    self.window.on_consumed(n, n + 1)
                self.twin.consumed |= mine
            case "acknowledge", []:
                assert self.window.acknowledge() == self.twin.acknowledge()

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
        assert self.delivered == self.twin.delivered
        assert self.window.next == self.twin.next
        assert {n for first, stop in self.window.have for n in range(first, stop)} == set(self.twin.held)
        assert set(self.origins) == set(self.twin.held.values()) == set(self.window.users)
        assert self.window.acked == self.twin.acked


@given(st.integers(1, 20), STEPS)
@settings(max_examples=100)
def test_the_window_agrees_with_its_twin(proximity: int, steps: list[Any]) -> None:
    pair = Pair(proximity)
    for name, *arguments in steps:
        pair.step(name, arguments)
        pair.window.check_invariants()
        pair.compare()


def begun(low: int = 0, proximity: int = 100) -> DeliveryWindow:
    window = DeliveryWindow(proximity)
    window.begin(low, [])
    return window


def test_nothing_is_missing_before_the_start() -> None:
    window = DeliveryWindow(100)
    assert window.missing() == []
    window.learn(9)
    assert window.missing() == []


def test_what_is_missing_is_neither_held_nor_lost_nor_known() -> None:
    window, out = begun(), list[fx.Effect]()
    window.on_run(5, 7, 1, False, out)
    window.lose(8, 9, out)
    window.know(10, 11, out)
    window.learn(12)
    assert window.missing() == [(0, 5), (7, 8), (9, 10), (11, 13)]
    window.proximity = 6
    assert window.missing() == [(0, 5)]
    assert window.abstract() == (0, 12, ((5, 7),), -1)


def test_a_loss_is_told_when_its_turn_comes() -> None:
    window, out = begun(), list[fx.Effect]()
    window.lose(2, 5, out)
    assert out == []
    window.on_run(0, 2, 1, False, out)
    assert events(drain(out)) == [UnrecoverableLoss(2, 4)]
    assert window.next == 5


def test_what_is_held_before_the_start_is_cut_there() -> None:
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


def test_what_was_known_is_passed_over_and_acknowledged() -> None:
    window, out = begun(), list[fx.Effect]()
    window.know(1, 3, out)
    window.on_run(0, 5, 1, False, out)
    assert [(effect.first, effect.count) for effect in out if isinstance(effect, fx.Deliver)] == [(0, 1), (3, 2)]
    window.on_consumed(0, 1)
    assert window.acknowledge() == 2
    window.know(2, 4, out)
    assert not window.known


def test_what_came_after_all_is_not_lost() -> None:
    window, out = begun(), list[fx.Effect]()
    window.lose(2, 5, out)
    window.on_run(0, 9, 1, False, out)
    assert out == [fx.Deliver(1, 0, 9, 0, False, True)]
    assert not window.lost


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
