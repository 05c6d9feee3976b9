"""The machine of a reader: each number is settled once and in order, holes are exact, requests fit the window."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.quorum import GroupRules, Intergroup, Quorums
from stablecast.core.receiver.range_progress import (
    Holding,
    Hole,
    HoleReason,
    RangeProgress,
    ReadRequest,
    StoredNumbers,
    stable_numbers,
)

WINDOW = 16
PATIENCE = 5 * SECOND
LENGTH = 60


def ranges_of(numbers: set[int]) -> RangeSet:
    held = RangeSet()
    for number in sorted(numbers):
        held.add(number, number + 1)
    return held


def holding(numbers: set[int], trail: int, asked_at: int, reach: int = LENGTH, first: int = 0) -> Holding:
    held = ranges_of({number for number in numbers if trail <= number < reach})
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
    assert [(one.start, one.stop) for one in reading.asked] == [(4, 10)], "progress gives more time"
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
    assert reading.accept(2, 3) == [(2, 3)]
    assert reading.accept(0, 10) == [(0, 2), (3, 4)]
    assert reading.accept(0, 4) == []


def test_the_application_that_waits_stops_requests() -> None:
    reading = RangeProgress(0, 100, 16, SECOND, PATIENCE)
    reading.learn("a", Holding(1, 7, RangeSet([(0, 100)]), 0, 100, 100, 0, 1))
    assert reading.issue(1, waiting=16) == []
    assert reading.issue(1, waiting=14) == [], "small requests wait until there is room for a larger one"
    assert sum(request.stop - request.start for request in reading.issue(1, waiting=8)) == 8


def told(held: RangeSet, asked_at: int = 1, trail: int = 0, reach: int = LENGTH) -> Holding:
    return Holding(1, 7, held, 0, reach, LENGTH, trail, asked_at)


def asked(requests: list[ReadRequest]) -> list[tuple[int, int]]:
    return [(request.start, request.stop) for request in requests]


def test_requests_stay_in_the_window_and_in_the_range() -> None:
    reading = RangeProgress(0, 10, WINDOW, SECOND, PATIENCE)
    reading.learn("a", told(RangeSet([(0, 40)])))
    assert asked(reading.issue(1)) == [(0, 10)]
    reading = RangeProgress(0, LENGTH, WINDOW, SECOND, PATIENCE)
    reading.learn("a", told(RangeSet([(WINDOW, LENGTH)])))
    assert reading.issue(1) == []


def test_what_came_out_of_order_counts_in_the_window() -> None:
    reading = RangeProgress(0, LENGTH, 8, SECOND, PATIENCE)
    reading.learn("a", told(RangeSet([(0, LENGTH)])))
    assert asked(reading.issue(1, most=4)) == [(0, 4), (4, 8)]
    reading.accept(4, 8)
    reading.lose("a")
    reading.learn("b", told(RangeSet([(0, LENGTH)])))
    assert reading.issue(2, waiting=4, most=4) == []
    assert asked(reading.issue(2, most=4)) == [(0, 4)]


def test_progress_of_one_request_gives_no_other_more_time() -> None:
    reading = RangeProgress(0, 8, WINDOW, SECOND, PATIENCE)
    reading.learn("a", told(RangeSet([(0, 8)])))
    assert asked(reading.issue(1, most=4)) == [(0, 4), (4, 8)]
    reading.progress(4, 6, SECOND)
    assert [(one.start, one.stop, one.deadline) for one in reading.asked] == [(0, 4, SECOND + 1), (6, 8, 2 * SECOND)]


def test_what_a_store_that_is_lost_was_asked_for_is_asked_of_another() -> None:
    reading = RangeProgress(0, 8, WINDOW, SECOND, PATIENCE)
    for store in ("a", "b"):
        reading.learn(store, told(RangeSet([(0, 8)])))
    one, two = reading.issue(1, most=4)
    assert reading.next() == SECOND + 1
    reading.lose(one.store)
    assert reading.asked == [two]
    assert [(again.start, again.stop, again.store) for again in reading.issue(2)] == [(0, 4, two.store)]


def test_a_store_is_asked_again_when_half_of_what_it_told_is_settled_and_no_more_is_known() -> None:
    for reach, half, stale in ((20, 9, []), (20, 10, ["a"]), (LENGTH, 30, [])):
        reading = RangeProgress(0, LENGTH, 2 * LENGTH, SECOND, PATIENCE)
        reading.learn("a", told(RangeSet([(0, LENGTH)]), reach=reach))
        reading.issue(1)
        reading.accept(0, half)
        reading.settle(1)
        assert reading.stale() == stale


def test_a_number_that_a_store_let_go_while_it_was_asked_for_is_waited_for() -> None:
    """The answer may be on its way. Without one the limit of the store is the reason, however long it was asked."""
    reading = RangeProgress(0, 2, WINDOW, SECOND, SECOND)
    for asked_at in (0, 1):
        reading.learn("a", told(RangeSet([(0, 2)]), asked_at))
        assert reading.settle(asked_at) == [], "not asked for yet"
    reading.issue(1)
    reading.learn("a", told(RangeSet(), asked_at=2, trail=2))
    assert reading.settle(3) == []
    reading.handle_timeout(2 * SECOND)
    assert reading.settle(2 * SECOND) == []
    for asked_at, answered in ((2 * SECOND, False), (2 * SECOND + 1, True)):
        reading.learn("a", told(RangeSet(), asked_at, trail=2))
        assert (reading.stale() == []) is answered
    assert reading.settle(2 * SECOND + 1) == [Hole(0, 2, HoleReason.LET_GO)]


THREE = Quorums.of(GroupRules((3,)), [0, 0, 0])


def numbers(*ranges: tuple[int, int], trail: int = 0) -> StoredNumbers:
    return StoredNumbers(RangeSet(list(ranges)), trail)


@pytest.mark.parametrize(
    ("stores", "silent", "stable", "doubt"),
    [
        ([numbers((0, 10)), numbers((0, 7)), numbers((0, 3))], 0, [(0, 7)], 7),
        ([numbers((0, 10)), numbers(), numbers()], 0b110, [], 0),
        ([numbers((0, 10)), numbers(), numbers()], 0b010, [], 0),
        # Both have later numbers, and one lacks some in between.
        ([numbers((0, 30)), numbers((0, 10), (20, 30))], 0b100, [(0, 10), (20, 30)], 10),
        # Nobody has 10 to 19: they are missing, and not in doubt.
        ([numbers((0, 10), (20, 30)), numbers((0, 10), (20, 25))], 0b100, [(0, 10), (20, 25)], 25),
        # A message that a limit let go was there.
        ([numbers((0, 30)), numbers((15, 30), trail=15)], 0b100, [(0, 30)], 30),
        # One let it go, and nobody has it any more.
        ([numbers((20, 30)), numbers((20, 30), trail=15)], 0b100, [(20, 30)], 30),
    ],
)
def test_a_number_is_stable_at_a_quorum_of_the_configured_stores(
    stores: list[StoredNumbers], silent: int, stable: list[tuple[int, int]], doubt: int
) -> None:
    answered = 0b111 & ~silent
    assert stable_numbers(stores, 0, THREE, answered, silent) == (RangeSet(stable), doubt)


def test_groups_are_asked_for_their_own_quorums() -> None:
    uneven = [0, 0, 0, 1]
    held = [numbers((0, 10)), numbers((0, 5)), numbers(), numbers((0, 3))]
    for rule, stop in ((Intergroup.ANY, 5), (Intergroup.ALL, 3), (Intergroup.ALL_ACTIVE, 3)):
        quorums = Quorums.of(GroupRules((3, 1), intergroup=rule), uneven)
        assert stable_numbers(held, 0, quorums, 0b1111, 0) == (RangeSet([(0, stop)]), stop)


@given(
    held=st.lists(st.sets(st.integers(0, 12)), min_size=3, max_size=3),
    trails=st.lists(st.integers(0, 12), min_size=3, max_size=3),
    first=st.integers(0, 12),
)
def test_numbers_are_judged_one_by_one(held: list[set[int]], trails: list[int], first: int) -> None:
    stores = [StoredNumbers(ranges_of(one - set(range(trail))), trail) for one, trail in zip(held, trails, strict=True)]
    stable, doubt = stable_numbers(stores, first, THREE, 0b111, 0)
    for number in range(first, 14):
        had = [number in one.held or number < one.trail for one in stores]
        assert (number in stable) == (sum(had) >= 2)
        if sum(had) < 2 and any(number in one.held for one in stores):
            assert doubt <= number
            break


def test_a_reader_that_follows_waits_for_numbers_that_were_sent_just_now() -> None:
    reading = RangeProgress(0, 10, 16, SECOND, PATIENCE, grows=True)
    reading.learn("a", Holding(1, 7, RangeSet([(5, 10)]), 0, 10, 10, 0, 1))
    assert reading.next() is None
    assert reading.settle(2) == []
    assert reading.next() == 2 + PATIENCE
    reading.learn("a", Holding(1, 7, RangeSet([(5, 10)]), 0, 10, 10, 0, 3))
    assert reading.settle(4) == []
    assert reading.settle(2 + PATIENCE) == [Hole(0, 5, HoleReason.NEVER_STORED)]


def test_time_that_one_number_took_does_not_count_against_the_next() -> None:
    """A slow store serves each number at the second request, which is within the patience."""
    reading = RangeProgress(0, 2, WINDOW, SECOND, 2 * SECOND)
    for now in (0, SECOND):
        reading.learn("slow", Holding(1, 7, RangeSet([(0, 2)]), 0, 2, 2, 0, now))
        assert [(one.start, one.stop) for one in reading.issue(now, most=1)] == [(0, 1), (1, 2)]
        if now:
            assert reading.accept(0, 1) == [(0, 1)]
            reading.progress(0, 1, now)
            assert reading.settle(now) == [(0, 1)]
        reading.handle_timeout(now + SECOND)
    assert reading.settle(2 * SECOND) == []


def test_a_number_behind_a_hole_is_waited_for_as_long() -> None:
    """Even if only a number that came lies between the two."""
    reading, began = RangeProgress(0, 3, 16, SECOND, PATIENCE, grows=True), 2 + PATIENCE
    for now in (1, 3):
        reading.learn("a", Holding(1, 7, RangeSet([(1, 2)]), 0, 3, 3, 0, now))
        reading.issue(now)
        assert reading.settle(now + 1) == []
    assert reading.accept(1, 2) == [(1, 2)]
    reading.progress(1, 2, 4)
    assert reading.settle(began) == [Hole(0, 1, HoleReason.NEVER_STORED), (1, 2)]
    reading.learn("a", Holding(1, 7, RangeSet([(1, 2)]), 0, 3, 3, 0, began + 1))
    assert reading.settle(began + PATIENCE - 1) == []
    assert reading.settle(began + PATIENCE) == [Hole(2, 3, HoleReason.NEVER_STORED)]


def busy() -> tuple[RangeProgress, ReadRequest, ReadRequest]:
    """Two stores, each with a request of its own, the lower one first."""
    reading = RangeProgress(0, 20, WINDOW, SECOND, PATIENCE)
    for store in "ab":
        reading.learn(store, holding(set(range(20)), 0, 1, 20))
    low, high = reading.issue(0, most=8)
    return reading, low, high


def test_what_a_store_sends_gives_the_requests_at_others_no_more_time() -> None:
    reading, low, high = busy()
    assert (low.store != high.store, low.stop, low.deadline) == (True, high.start, SECOND)
    reading.progress(2, 4, 5)
    assert [(one.start, one.stop, one.deadline) for one in reading.asked] == [
        (0, 2, SECOND + 5), (4, 8, SECOND + 5), (8, 16, SECOND),
    ]  # fmt: skip
    reading.progress(6, 10, 7)
    assert [(one.start, one.stop) for one in reading.asked] == [(0, 2), (4, 6), (10, 16)]


def test_what_was_requested_of_a_store_goes_to_another_when_it_forgot_or_follows_another_life() -> None:
    reading, low, high = busy()
    reading.forget(low.store)
    assert reading.asked == [high]
    reading.learn(high.store, attrs.evolve(high.holding, incarnation=8))
    assert reading.asked == []


def test_a_reader_that_follows_does_not_wait_for_what_an_ended_life_left_out() -> None:
    """The next life began at 5 and has not sent 5 and 6 yet; a store that knows of no next life may still get 3."""

    def reading(*since: int) -> RangeProgress:
        progress = RangeProgress(3, 10, 16, SECOND, PATIENCE, grows=True)
        for store, one in enumerate(since):
            progress.learn(str(store), Holding(1, 7, RangeSet([(7, 10)]), 3, 10, 10, 0, 1, one))
        assert progress.settle(2) == [], "the stores are asked once more"
        for store, one in enumerate(since):
            progress.learn(str(store), Holding(1, 7, RangeSet([(7, 10)]), 3, 10, 10, 0, 3, one))
        return progress

    over = reading(5, 5)
    assert over.settle(4) == [Hole(3, 5, HoleReason.NEVER_STORED)]
    assert over.settle(4 + PATIENCE - 1) == []
    assert reading(5, 3).settle(4) == []


def test_a_store_that_is_away_is_waited_for_from_when_it_went() -> None:
    """It was back for a while, and what it has was asked for."""
    reading, held = RangeProgress(0, 5, WINDOW, SECOND, PATIENCE), told(RangeSet([(0, 5)]))
    reading.learn("a", held)
    reading.lose("a")
    assert (reading.settle(1), reading.next()) == ([], 1 + PATIENCE)
    reading.learn("a", held)
    assert reading.settle(PATIENCE) == []
    reading.lose("a")
    assert reading.settle(PATIENCE + 2) == []
    assert reading.settle(2 * PATIENCE + 2) == [Hole(0, 5, HoleReason.AWAY)]


def test_each_number_of_the_window_is_asked_for_once_whatever_lies_between() -> None:
    reading = RangeProgress(0, LENGTH, 16, SECOND, PATIENCE)
    reading.learn("a", told(RangeSet([(0, LENGTH)])))
    assert asked(reading.issue(1, waiting=2, most=4)) == [(0, 4), (4, 8), (8, 12), (12, 14)]
    assert asked(reading.issue(1, most=4)) == [(14, 16)]
    reading.accept(4, 8)
    reading.lose("a")
    reading.learn("b", told(RangeSet([(0, LENGTH)])))
    assert asked(reading.issue(2, most=8)) == [(0, 4), (8, 16)]


def test_a_store_that_told_of_the_whole_window_or_of_all_that_it_has_is_not_asked_again() -> None:
    for cursor, reach, window in ((12, 20, 4), (40, LENGTH, LENGTH)):
        reading = RangeProgress(cursor, 2 * LENGTH, window, SECOND, PATIENCE)
        reading.learn("a", told(RangeSet([(0, LENGTH)]), reach=reach))
        assert reading.stale() == []
