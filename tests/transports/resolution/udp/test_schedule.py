"""Many topics in one plan: the grid, limits, bounds, and the plan against one for each topic."""

from collections import Counter

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.phases import Phase
from stablecast.transports.resolution.udp.schedule import STALE_TURNS, Limiter, TurnSchedule
from stablecast.transports.resolution.udp.settings import ADVERTISING, QUERYING, PhasePace, RateLimit
from tests.transports.resolution.virtual import ADVERTISEMENTS, MS

FREE = RateLimit(records=0, bits=0)


def rounds(initial: RateLimit = FREE, sustaining: RateLimit = FREE) -> TurnSchedule[str]:
    return TurnSchedule(Limiter(initial), Limiter(sustaining))


def play(plan: TurnSchedule[str], until: int) -> list[tuple[int, str]]:
    """Instants (ms) of all turns up to `until`."""
    found = []
    while (due := plan.next()) is not None and due <= until:
        found += [(due // MS, key) for key in plan.take_turns(due)]
        assert (plan.next() or due + 1) > due
    return found


def test_turns_stand_on_the_grid_and_share_ticks() -> None:
    plan = rounds()
    plan.begin("b", ADVERTISING, 1, 3 * MS)
    plan.begin("a", ADVERTISING, 1, 7 * MS)
    assert plan.next() == 10 * MS
    assert plan.take_turns(10 * MS) == ["b", "a"]
    assert plan.next() == 20 * MS


@pytest.mark.rows("T-003", "T-024")
def test_topics_are_in_phases_of_their_own() -> None:
    """Three topics with paces of their own."""
    plan = rounds()
    plan.begin("initial", attrs.evolve(ADVERTISING, initial=0), 1, 0)
    plan.begin("sustaining", ADVERTISING, 1, 0)
    plan.begin("quiet", PhasePace(10 * MS, 10 * MS, 10 * MS, initial=SECOND, sustain=0), 1, 0)
    play(plan, 10 * SECOND)
    phases = [plan.phase(key) for key in ("initial", "sustaining", "quiet")]
    assert phases == [Phase.INITIAL, Phase.SUSTAINING, Phase.QUIESCENT]


def test_stopping_and_starting_leave_no_turn_of_the_past() -> None:
    plan = rounds()
    plan.stop("a")
    plan.begin("a", ADVERTISING, 1, 0)
    plan.stop("a")
    assert plan.next() is None
    plan.begin("a", ADVERTISING, 1, 0)
    plan.begin("a", ADVERTISING, 1, 0)
    assert plan.take_turns(0) == ["a"]
    plan.enough("a")
    assert plan.next() is None
    assert plan.phase("a") is Phase.QUIESCENT


@pytest.mark.rows("T-104", "T-105")
def test_many_topics_share_the_limit_and_phases_stretch() -> None:
    """3,000 topics at 1,000 a second take 3 s a round; each has its 16 turns."""
    plan: TurnSchedule[int] = TurnSchedule(Limiter(RateLimit(records=1_000, bits=0)), Limiter(FREE))
    for key in range(3_000):
        plan.begin(key, attrs.evolve(ADVERTISING, sustain=0), 80, 0)
    seconds: Counter[int] = Counter()
    turns: Counter[int] = Counter()
    last = 0
    while (due := plan.next()) is not None:
        taken = plan.take_turns(due)
        seconds[due // SECOND] += len(taken)
        turns.update(taken)
        last = due
    assert max(seconds.values()) == 1_000
    assert set(turns.values()) == {len(ADVERTISEMENTS)}
    assert len(turns) == 3_000
    assert last == 47_900 * MS


@pytest.mark.rows("T-111")
def test_the_sustaining_phase_has_a_limit_of_its_own() -> None:
    """Both phases wait, each for its own limit."""
    plan = rounds(RateLimit(records=10, bits=0), RateLimit(records=10, bits=0))
    for key in "ab":
        plan.begin(key, ADVERTISING, 1, 0)
    for key in "cd":
        plan.begin(key, attrs.evolve(ADVERTISING, shortest=0), 1, 0)
    assert plan.take_turns(0) == ["a", "c"]
    assert plan.take_turns(50 * MS) == []
    assert plan.next() == 100 * MS
    assert plan.take_turns(100 * MS) == ["b", "d"]


def test_a_topic_that_waits_for_its_limit_is_not_put_off_by_questions() -> None:
    plan = rounds(sustaining=RateLimit(records=10, bits=0))
    for key in "ab":
        plan.begin(key, attrs.evolve(ADVERTISING, shortest=0), 1, 0)
    assert plan.take_turns(0) == ["a"]
    plan.asked("b", 10 * MS, answered=False)
    assert plan.take_turns(100 * MS) == ["b"]
    plan.asked("b", 110 * MS, answered=False)
    plan.take_turns(120 * MS)
    plan.asked("b", 130 * MS, answered=True)
    assert plan.take_turns(200 * MS) == []
    assert plan.take_turns(1_200 * MS) == ["a"]


def test_the_plan_is_bounded() -> None:
    plan = rounds(RateLimit(records=10, bits=0))
    plan.begin("kept", ADVERTISING, 1, 0)
    plan.begin("waits", ADVERTISING, 1, 0)
    assert plan.take_turns(0) == ["kept"]
    for number in range(1_000):
        plan.begin(str(number), ADVERTISING, 1, number * 10 * MS)
        plan.stop(str(number))
        entries = plan.planned + sum(map(len, plan.waiting.values()))
        assert entries <= 2 * len(plan.topics) + STALE_TURNS
    assert plan.take_turns(100 * MS) == ["waits"]
    assert plan.take_turns(200 * MS) == ["kept"]


STEP = st.tuples(
    st.sampled_from(["begin", "asked", "answered", "enough", "stop", "take"]),
    st.sampled_from("abc"),
    st.integers(0, 900),
)


@pytest.mark.parametrize("pace", [QUERYING, attrs.evolve(QUERYING, sustain=0, initial=SECOND)])
@given(steps=st.lists(STEP, max_size=40))
@settings(max_examples=100)
def test_against_one_plan_for_each_topic(steps: list[tuple[str, str, int]], pace: PhasePace) -> None:
    """Without limits all topics in one plan behave as each in a plan of its own."""
    together = rounds()
    apart = {key: rounds() for key in "abc"}
    now = 0
    for step, key, wait in steps:
        now += wait * MS
        if step == "take":
            assert sorted(together.take_turns(now)) == sorted(
                taken for plan in apart.values() for taken in plan.take_turns(now)
            )
        for plan in (together, apart[key]):
            match step:
                case "begin":
                    plan.begin(key, pace, 1, now)
                case "stop":
                    plan.stop(key)
                case "enough" if key in plan.topics:
                    plan.enough(key)
                case "asked" | "answered" if key in plan.topics:
                    plan.asked(key, now, answered=step == "answered")
        dues = [due for plan in apart.values() if (due := plan.next()) is not None]
        assert together.next() == min(dues, default=None)
