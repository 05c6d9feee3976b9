"""The machine of a reader: each number is settled once and in order, holes are exact, requests fit the window."""

from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import SECOND
from stablecast.core.receiver.range_progress import (
    Holding,
    Hole,
    HoleReason,
    RangeProgress,
    ReadRequest,
    stable_stop,
)

WINDOW = 16
PATIENCE = 5 * SECOND
LENGTH = 60


def holding(numbers: set[int], trail: int, asked_at: int, reach: int = LENGTH, first: int = 0) -> Holding:
    held = RangeSet()
    for number in sorted(numbers):
        if trail <= number < reach:
            held.add(number, number + 1)
    return Holding(1, 7, held, first, reach, LENGTH, trail, asked_at)


class Disks:
    """Stores that answer requests for what they hold, unless they are away or drop one."""

    def __init__(self, kept: dict[str, set[int]], trails: dict[str, int]) -> None:
        self.kept = kept
        self.trails = trails
        self.now = 1
        self.waiting: list[ReadRequest] = []
        self.reading = RangeProgress(0, LENGTH, WINDOW, SECOND, PATIENCE)
        self.settled: list[tuple[int, int] | Hole] = []
        self.away: set[str] = set()
        for store in kept:
            self.tell(store)

    def tell(self, store: str) -> None:
        """Answer what a store holds, in parts of ten numbers."""
        if store in self.away:
            return
        reach = min(LENGTH, self.reading.cursor + 10)
        self.reading.learn(store, holding(self.kept[store], self.trails[store], self.now, reach, self.reading.cursor))

    def turn(self, drop: bool, lost: str | None, back: bool) -> None:
        """Let time pass, and answer."""
        self.now += SECOND // 3
        if lost is not None and lost not in self.away:
            self.away.add(lost)
            self.reading.lose(lost)
            self.waiting = [request for request in self.waiting if request.store != lost]
        if back:
            for store in sorted(self.away):
                self.away.discard(store)
                self.tell(store)
        for store in self.reading.stale():
            self.tell(store)
        self.reading.handle_timeout(self.now)
        answered, self.waiting = self.waiting, []
        for request in [] if drop else answered:
            for first, stop in RangeSet([(request.start, request.stop)]).ranges:
                for low, high in self.reading.accept(first, stop):
                    assert set(range(low, high)) <= self.kept[request.store]
                self.reading.progress(first, stop, self.now)
        self.settled += self.reading.settle(self.now)
        for request in self.reading.issue(self.now, 0, 8):
            assert request.store not in self.away
            assert set(range(request.start, request.stop)) <= self.kept[request.store]
            self.waiting.append(request)
        assert self.reading.outstanding + self.reading.arrived.total() <= WINDOW


NUMBERS = st.sets(st.integers(0, LENGTH - 1))
TURN = st.tuples(st.booleans(), st.sampled_from([None, None, "a", "b", "c"]), st.booleans())


@settings(max_examples=100, deadline=None)
@given(st.tuples(NUMBERS, NUMBERS, NUMBERS), st.tuples(*[st.integers(0, 20)] * 3), st.lists(TURN, max_size=30))
def test_each_number_is_settled_once_and_holes_are_exact(
    kept: tuple[set[int], set[int], set[int]],
    trails: tuple[int, int, int],
    turns: list[tuple[bool, str | None, bool]],
) -> None:
    names = ("a", "b", "c")
    disks = Disks(
        {name: {number for number in some if number >= trail} for name, some, trail in zip(names, kept, trails)},  # noqa: B905
        dict(zip(names, trails, strict=True)),
    )
    for drop, lost, back in turns:
        disks.turn(drop, lost, back)
    for _ in range(200):  # In the end every store is back, and answers.
        if disks.reading.done:
            break
        disks.turn(False, None, True)
    assert disks.reading.done
    at = 0
    everywhere = set.union(*disks.kept.values())
    for step in disks.settled:
        first, stop = (step.first, step.stop) if isinstance(step, Hole) else step
        assert first == at < stop
        at = stop
        if not isinstance(step, Hole):
            assert set(range(first, stop)) <= everywhere
        elif step.reason is not HoleReason.AWAY:
            assert not set(range(first, stop)) & everywhere
            assert (step.reason is HoleReason.LET_GO) == (first < max(trails))
    assert at == LENGTH
    if not any(lost for _, lost, _ in turns) and not any(drop for drop, _, _ in turns):
        found = {number for step in disks.settled if not isinstance(step, Hole) for number in range(*step)}
        assert found == everywhere


def test_a_request_without_progress_goes_to_another_store() -> None:
    reading = RangeProgress(0, 10, WINDOW, SECOND, PATIENCE)
    for store in ("a", "b"):
        reading.learn(store, holding(set(range(10)), 0, 1))
    [first] = reading.issue(1)
    assert (first.start, first.stop) == (0, 10)
    assert not reading.issue(2)
    reading.accept(0, 4)
    reading.progress(0, 4, SECOND // 2)
    reading.handle_timeout(SECOND + 1)
    assert reading.asked, "progress gives more time"
    reading.handle_timeout(2 * SECOND)
    assert reading.stale() == [first.store]
    [second] = reading.issue(2 * SECOND)
    assert second.store != first.store
    assert (second.start, second.stop) == (4, 10)


def test_a_store_that_never_sends_what_it_claims_to_hold_ends_in_a_hole() -> None:
    reading = RangeProgress(0, 2, WINDOW, SECOND, PATIENCE)
    now, steps = 1, []
    for _ in range(20):
        reading.learn("a", holding({0, 1}, 0, now))
        reading.issue(now)
        now += SECOND
        reading.handle_timeout(now)
        steps += reading.settle(now)
    assert [(step.first, step.stop, step.reason) for step in steps if isinstance(step, Hole)] == [
        (0, 1, HoleReason.AWAY),
        (1, 2, HoleReason.AWAY),
    ]


def test_messages_that_were_not_requested_are_dropped() -> None:
    reading = RangeProgress(0, 10, 4, SECOND, PATIENCE)
    reading.learn("a", holding(set(range(10)), 0, 1))
    assert reading.accept(0, 2) == []
    reading.issue(1)
    assert reading.accept(0, 10) == [(0, 4)]
    assert reading.accept(0, 4) == []


def test_the_application_that_waits_stops_requests() -> None:
    reading = RangeProgress(0, 100, 16, SECOND, PATIENCE)
    reading.learn("a", Holding(1, 7, RangeSet([(0, 100)]), 0, 100, 100, 0, 1))
    assert reading.issue(1, waiting=16) == []
    assert reading.issue(1, waiting=14) == [], "small requests wait until there is room for a larger one"
    assert sum(request.stop - request.start for request in reading.issue(1, waiting=8)) == 8


def test_the_stable_end_needs_a_quorum() -> None:
    assert stable_stop([10, 3, 7], 2) == 7
    assert stable_stop([10], 2) is None
