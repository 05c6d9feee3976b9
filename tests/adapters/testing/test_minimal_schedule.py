"""The search for a minimal schedule, on a test that fails exactly if some strikes are in its schedule."""

from collections.abc import Sequence

from stablecast.testing.minimal_schedule import RUNS, minimised
from stablecast.testing.schedule import MILLISECOND, Activity, Strike
from stablecast.testing.timeline import WorldTimeline
from stablecast.testing.world_run import Failure, Outcome

MANY = [Strike("crash", f"host{number}", turn=1, span=3_000 * MILLISECOND, power=True) for number in range(8)]


def run(strikes: Sequence[Strike], needed: set[str], place: str = "test.py:1") -> Outcome:
    """The outcome of a test that fails if all needed hosts crash."""
    fails = needed <= {one.on for one in strikes}
    failure = Failure(AssertionError(), "", place) if fails else None
    return Outcome(1, strikes, strikes, failure, WorldTimeline(), Activity({}, 0), "")


def minimal(needed: set[str], strikes: Sequence[Strike] = MANY) -> list[Strike]:
    found, _ = minimised(run(strikes, needed), lambda shorter: run(shorter, needed))
    return list(found.strikes)


def test_only_what_is_needed_is_left() -> None:
    assert [one.on for one in minimal({"host2", "host7"})] == ["host2", "host7"]


def test_a_test_that_always_fails_needs_nothing() -> None:
    assert minimal(set()) == []


def test_strikes_become_simple() -> None:
    assert minimal({"host3"}) == [Strike("crash", "host3", turn=1, span=MILLISECOND)]


def test_another_failure_is_another_finding() -> None:
    """A shorter schedule that fails elsewhere does not replace the failure that was found."""

    def elsewhere(strikes: Sequence[Strike]) -> Outcome:
        return run(strikes, {"host1"}, "test.py:1" if len(strikes) == len(MANY) else "test.py:2")

    found, _ = minimised(elsewhere(MANY), elsewhere)
    assert [one.on for one in found.strikes] == [one.on for one in MANY]


def test_the_search_is_bounded() -> None:
    many = [Strike("crash", f"host{number}", turn=1) for number in range(300)]
    needed = {one.on for one in many}
    found, runs = minimised(run(many, needed), lambda shorter: run(shorter, needed))
    assert (len(found.strikes), runs) == (len(many), RUNS)


def test_strikes_without_effect_go_first() -> None:
    failing = Outcome(
        1, MANY, MANY[:1], Failure(AssertionError(), "", "test.py:1"), WorldTimeline(), Activity({}, 0), ""
    )
    assert minimised(failing, lambda shorter: run(shorter, {"host0"}), 1)[0].strikes == MANY[:1]
