"""The phases of one topic: instants, options that switch phases off, and the chart against the library's engine."""

from contextlib import suppress
from itertools import pairwise

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.phases import NEVER, PHASES, Phase, PhaseChart, PhaseEvent, TopicTurns
from stablecast.transports.resolution.udp.presets import PRESETS
from stablecast.transports.resolution.udp.settings import ADVERTISING, NAMING, PATTERN_QUERYING, QUERYING, PhasePace
from tests.transports.resolution.virtual import ADVERTISEMENTS, MS, PATTERN_QUERIES, QUERIES

ENDING = attrs.evolve(ADVERTISING, sustaining=60 * SECOND)


def begun(pace: PhasePace, now: int = 0) -> TopicTurns:
    topic = TopicTurns(pace, 0)
    topic.begin(now)
    return topic


def take(topic: TopicTurns, now: int) -> None:
    topic.seen = now
    topic.taken(now)


def instants(topic: TopicTurns, until: int = 200 * SECOND) -> list[int]:
    """Whole milliseconds of the turns up to `until`."""
    found = []
    while topic.due != NEVER and topic.due <= until:
        found.append(topic.due // MS)
        take(topic, topic.due)
    return found


@pytest.mark.rows("T-032", "T-102", "T-107")
@pytest.mark.parametrize(
    ("pace", "expected"),
    [(ADVERTISING, ADVERTISEMENTS), (QUERYING, QUERIES), (PATTERN_QUERYING, PATTERN_QUERIES)],
)
def test_the_initial_phase(pace: PhasePace, expected: tuple[int, ...]) -> None:
    """T-032, T-102, T-107, and T25 as corrected by observation: the turn planned before the end still comes."""
    assert tuple(instants(begun(attrs.evolve(pace, sustain=0)))) == expected


@pytest.mark.rows("T-205")
def test_store_names() -> None:
    assert instants(begun(NAMING), 5 * SECOND) == [0, 100, 300, 700, 1500, 2500, 3500, 4500]


@pytest.mark.rows("T-109", "T-112", "T-116")
def test_the_sustaining_phase_by_default() -> None:
    """Every second for 60 s, then nothing (T-116)."""
    topic = begun(ENDING)
    turns = instants(topic)[len(ADVERTISEMENTS) :]
    assert turns == [6200 + 1000 * turn for turn in range(60)]
    assert (topic.state, topic.due) == (Phase.QUIESCENT, NEVER)


@pytest.mark.rows("T-109")
def test_it_may_never_end() -> None:
    """A duration of 0."""
    turns = instants(begun(ADVERTISING), 3_600 * SECOND)[len(ADVERTISEMENTS) :]
    assert len(turns) == 3_594
    assert {later - earlier for earlier, later in pairwise(turns)} == {1000}
    endless = begun(attrs.evolve(ADVERTISING, initial=0))
    assert instants(endless, 20 * SECOND)[-2:] == [19_130, 19_630]
    assert endless.state is Phase.INITIAL


def test_an_interval_that_is_no_multiple_of_the_tick_keeps_its_average() -> None:
    """T25: 1250 ms with a tick of 100 ms."""
    topic = begun(PhasePace(10 * MS, 0, 0, sustain=1250 * MS))
    assert instants(topic, 5 * SECOND) == [0, 1300, 2500, 3800, 5000]


@pytest.mark.rows("T-102")
def test_an_interval_below_the_tick_is_the_tick() -> None:
    """T25."""
    assert instants(begun(PhasePace(10 * MS, 1 * MS, 5 * MS)), 40 * MS) == [0, 10, 20, 30, 40]
    assert instants(begun(PhasePace(10 * MS, 0, 0, sustain=1)), 300 * MS) == [0, 100, 200, 300]


@pytest.mark.rows("T-101", "T-115", "T-117")
@pytest.mark.parametrize(("shortest", "longest"), [(0, 1), (1, 0), (0, 0)])
@pytest.mark.parametrize(("sustain", "state"), [(SECOND, Phase.SUSTAINING), (0, Phase.QUIESCENT)])
def test_phases_may_be_switched_off(shortest: int, longest: int, sustain: int, state: Phase) -> None:
    """An interval of 0, even with a duration of 0."""
    topic = begun(PhasePace(10 * MS, shortest, longest, initial=0, sustain=sustain))
    assert topic.state is state
    assert (topic.due == NEVER) is (state is Phase.QUIESCENT)
    topic.asked(SECOND, answered=False)
    assert topic.state is state


def test_missed_turns_are_not_made_up_for() -> None:
    topic = begun(ADVERTISING)
    take(topic, 200 * MS)
    assert topic.due == 310 * MS
    take(topic, 10**6 * SECOND + 1)
    assert 10**6 * SECOND + 1 < topic.due <= (10**6 + 2) * SECOND
    asleep = begun(ENDING)
    take(asleep, 1_000 * SECOND)
    assert asleep.state == Phase.SUSTAINING
    take(asleep, 2_000 * SECOND)
    assert (asleep.state, asleep.due) == (Phase.QUIESCENT, NEVER)


def test_a_late_call_does_not_move_the_turns_after_it() -> None:
    topic = begun(QUERYING)
    take(topic, 19 * MS)
    take(topic, 45 * MS)
    assert topic.due == 60 * MS


@pytest.mark.rows("T-104")
def test_a_turn_held_back_by_a_limit_moves_what_follows() -> None:
    """Limits stretch phases."""
    topic = begun(ADVERTISING)
    topic.seen = 0
    topic.taken(SECOND)
    assert [topic.due // MS, *instants(topic, 7 * SECOND)[1:]] == [
        *(1000 + offset for offset in ADVERTISEMENTS[1:]),
    ]
    endless = begun(attrs.evolve(ADVERTISING, initial=0))
    endless.seen = 0
    endless.taken(SECOND)
    assert endless.due == 1010 * MS


def test_a_query_in_the_initial_phase_moves_nothing_once_answered() -> None:
    """T25 as observed: answers do not move the timers."""
    topic = begun(ADVERTISING)
    instants(topic, SECOND)
    topic.asked(SECOND, answered=True)
    assert topic.due == 1130 * MS


@pytest.mark.rows("T-106")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [(40, [40, 80, 160]), (50, [50, 130, 290]), (60, [60, 140, 300]), (55, [60, 140, 300])],
)
def test_a_query_that_the_next_turn_answers_goes_on_from_the_nearest_interval(asked: int, expected: list[int]) -> None:
    """T-106, with resolver_advertisement_send_immediate_response 0: between the turns of 30 and 70 ms."""
    topic = begun(ADVERTISING)
    instants(topic, 30 * MS)
    topic.asked(asked * MS, answered=False)
    assert instants(topic, 300 * MS)[:3] == expected


def test_a_query_before_the_first_turn_changes_nothing() -> None:
    """There is no interval before it that could be the nearest one."""
    topic = begun(QUERYING, 1 * MS)
    topic.asked(2 * MS, answered=False)
    assert tuple(instants(topic, 6 * SECOND))[: len(QUERIES)] == tuple(20 + at for at in QUERIES)


STEP = st.tuples(st.sampled_from(["asked", "answered", "take", "enough"]), st.integers(0, 700))


@given(st.lists(STEP, max_size=30), st.sampled_from([ADVERTISING, QUERYING, ENDING, NAMING]))
def test_turns_never_stand_still(steps: list[tuple[str, int]], pace: PhasePace) -> None:
    now = 1
    topic = begun(pace, now)
    for step, wait in steps:
        now += wait * MS
        match step:
            case "take" if topic.due != NEVER and topic.due <= now:
                take(topic, now)
                assert topic.due > now
            case "enough":
                topic.enough()
            case "asked" | "answered":
                topic.asked(now, answered=step == "answered")
        assert topic.interval >= max(pace.tick, 1)


@pytest.mark.rows("T-110", "T-116")
def test_a_query_starts_a_whole_sustaining_phase() -> None:
    """In the sustaining phase and in the quiet."""
    topic = begun(ENDING)
    instants(topic, 30 * SECOND)
    topic.asked(30 * SECOND + MS, answered=True)
    assert instants(topic)[-1] == 90_100
    assert topic.state is Phase.QUIESCENT
    topic.asked(100 * SECOND + MS, answered=True)
    turns = instants(topic)
    assert (turns[0], len(turns)) == (101_100, 60)
    topic.asked(200 * SECOND + MS, answered=False)
    assert topic.due == 200_010 * MS


@pytest.mark.rows("T-307")
def test_enough() -> None:
    for pace in (ADVERTISING, attrs.evolve(ADVERTISING, shortest=0)):
        topic = begun(pace)
        topic.enough()
        assert (topic.state, topic.due) == (Phase.QUIESCENT, NEVER)
        topic.enough()


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.config])
def test_the_initial_phase_of_every_preset(name: str) -> None:
    """T25 for all presets: the documented instants, or none where the strategy has none."""
    config = PRESETS[name].config
    assert config is not None
    queries = instants(begun(config.query.pace), 5_200 * MS)
    advertisements = instants(begun(config.advertise.pace), 5_200 * MS)
    assert tuple(queries) == QUERIES
    assert tuple(advertisements) in (ADVERTISEMENTS, ())
    assert bool(advertisements) is (name not in ("query-centric", "known-threshold"))


@given(st.lists(st.sampled_from(PhaseEvent), max_size=12), st.booleans(), st.booleans())
def test_rows_and_library_agree(events: list[PhaseEvent], initial: bool, sustaining: bool) -> None:
    """The rows of the chart equal the library's engine."""

    class Model:
        def __init__(self) -> None:
            self.state = Phase.QUIESCENT

        def has_initial(self, *_: object) -> bool:
            return initial

        def has_sustaining(self, *_: object) -> bool:
            return sustaining

        def start_initial(self, *_: object) -> None: ...
        def start_sustaining(self, *_: object) -> None: ...
        def draw_near(self, *_: object) -> None: ...
        def go_on(self, *_: object) -> None: ...
        def fall_silent(self, *_: object) -> None: ...

    model, pace = Model(), PhasePace(10, int(initial), int(initial), sustain=int(sustaining))
    engine, topic = PhaseChart(model=model), TopicTurns(pace, 0)
    for event in events:
        if PHASES.get((topic.state, event)) is None:
            continue
        match event:
            case PhaseEvent.BEGIN:
                topic.begin(0)
            case PhaseEvent.ASKED:
                topic.asked(0, answered=True)
            case PhaseEvent.ENOUGH:
                topic.enough()
            case _:
                topic.ends, topic.planned = 1, 1
                topic.due = topic.seen = 0
                topic.taken(0)
        with suppress(PhaseChart.TransitionNotAllowed):
            engine.send(event.name.lower())
        assert topic.state is model.state
