"""RangeSet against its naive twin, a plain set of ints."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from stablecast.core.machine.ranges import RangeSet

NUMBER = st.integers(-20, 60)
LENGTH = st.integers(-2, 12)


def coalesced(members: set[int]) -> list[tuple[int, int]]:
    """The slow and obvious way from ints to ranges."""
    starts = sorted(n for n in members if n - 1 not in members)
    stops = sorted(n + 1 for n in members if n + 1 not in members)
    return list(zip(starts, stops, strict=True))


class TwinMachine(RuleBasedStateMachine):
    """Every operation on both twins, compared after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.subject = RangeSet()
        self.twin: set[int] = set()

    @rule(start=NUMBER, length=LENGTH)
    def add(self, start: int, length: int) -> None:
        span = set(range(start, start + length))
        assert self.subject.add(start, start + length) == coalesced(span - self.twin)
        self.twin |= span

    @rule(gap=st.integers(0, 3), length=LENGTH)
    def add_near_the_end(self, gap: int, length: int) -> None:
        start = max(self.twin, default=0) + gap
        self.add(start, length)

    @rule(start=NUMBER, length=LENGTH)
    def remove(self, start: int, length: int) -> None:
        span = set(range(start, start + length))
        assert self.subject.remove(start, start + length) == coalesced(span & self.twin)
        self.twin -= span

    @rule(stop=NUMBER)
    def forget(self, stop: int) -> None:
        self.subject.forget(stop)
        self.twin = {n for n in self.twin if n >= stop}

    @rule(start=NUMBER, length=LENGTH)
    def look_inside(self, start: int, length: int) -> None:
        span = set(range(start, start + length))
        assert self.subject.missing(start, start + length) == coalesced(span - self.twin)
        assert self.subject.within(start, start + length) == coalesced(span & self.twin)

    @rule(n=NUMBER)
    def look_at_one(self, n: int) -> None:
        assert (n in self.subject) is (n in self.twin)
        free = n
        while free in self.twin:
            free += 1
        assert self.subject.contiguous_from(n) == free

    @invariant()
    def same_members(self) -> None:
        expected = coalesced(self.twin)
        assert self.subject.ranges == expected
        assert list(self.subject) == expected
        assert len(self.subject) == len(expected)
        assert bool(self.subject) is bool(self.twin)
        assert self.subject.total() == len(self.twin)
        assert self.subject.first == min(self.twin, default=None)
        assert self.subject.last == max(self.twin, default=None)


TwinMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestTwins = TwinMachine.TestCase


@given(st.lists(st.tuples(NUMBER, LENGTH), max_size=8))
@settings(max_examples=60)
def test_equal_whatever_the_order_of_adding(parts: list[tuple[int, int]]) -> None:
    forward, backward = RangeSet(), RangeSet()
    for start, length in parts:
        forward.add(start, start + length)
    backward.update((start, start + length) for start, length in reversed(parts))
    assert forward == backward
    assert RangeSet(list(forward)) == forward


def test_copy_is_independent() -> None:
    original = RangeSet([(1, 4)])
    copy = original.copy()
    copy.add(4, 6)
    assert original == RangeSet([(1, 4)])
    assert copy == RangeSet([(1, 6)])


def test_in_order_adding_keeps_one_range() -> None:
    held = RangeSet()
    for start in range(0, 3000, 3):
        assert held.add(start, start + 3) == [(start, start + 3)]
    assert held.ranges == [(0, 3000)]
    assert held.add(2000, 3000) == []
    assert held.add(2990, 3001) == [(3000, 3001)]
    assert held.add(3005, 3006) == [(3005, 3006)]
    assert held.ranges == [(0, 3001), (3005, 3006)]


def test_a_piece_out_of_the_middle_leaves_both_sides() -> None:
    held = RangeSet([(0, 10), (20, 30)])
    assert held.remove(5, 25) == [(5, 10), (20, 25)]
    assert held.remove(2, 3) == [(2, 3)]
    assert held.remove(12, 24) == []
    assert list(held) == [(0, 2), (3, 5), (25, 30)]
    held.forget(4)
    assert list(held) == [(4, 5), (25, 30)]
