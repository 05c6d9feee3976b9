"""The world of the phases: what its abstraction forgets does not matter, and who is deaf stays so until asked."""

import pytest

from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.explorer import explore
from stablecast.lab.model.worlds.resolution_phases import ResolutionPhasesWorld
from tests.adapters.lab.model.invariants import RESOLUTION_PHASES, broken, violations

ALL = frozenset({"part", "lose", "end", "leave", "break"})
CONSTANTS: dict[str, Value] = {
    "First": 1,
    "Longest": 2,
    "Initial": 2,
    "Sustain": 2,
    "SourceSustaining": 2,
    "ReceiverSustaining": 0,
    "UntilResolved": True,
    "Enough": 2,
    "FinalWord": False,
    "Faults": ALL,
}


@pytest.mark.rows("T-024", "T-103", "T-106", "T-113", "T-307")
@pytest.mark.no_cover
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"FinalWord": True, "Enough": 1},
        {"ReceiverSustaining": 2, "UntilResolved": False, "Faults": ALL - {"lose"}},
        {"First": 0},
    ],
)
def test_the_abstraction_forgets_nothing_that_matters(changes: dict[str, Value]) -> None:
    """Q1 holds everywhere."""
    found = explore(ResolutionPhasesWorld.create({**CONSTANTS, **changes}), twins=2)
    assert len(found.graph.states) > 100
    assert found.twins > 100
    assert violations(found.graph, RESOLUTION_PHASES) == set()


def test_a_query_is_answered_and_ends_the_asking() -> None:
    world = ResolutionPhasesWorld.create({**CONSTANTS, "Enough": 1})
    for action in (("Create", "lost"), ("Want",), ("ReceiverTurn", "answered")):
        world.do(action)
    assert world.known
    assert ("Join",) in list(world.actions())
    assert phases(world) == ("INITIAL", "QUIESCENT")


def test_who_fell_quiet_apart_stays_deaf() -> None:
    """T26: the run of `doc_deaf`, by the machines themselves."""
    documented: dict[str, Value] = {"ReceiverSustaining": 2, "UntilResolved": False, "Faults": frozenset({"part"})}
    world = ResolutionPhasesWorld.create({**CONSTANTS, **documented})
    for action in (("Part",), ("Create", "lost"), ("Want",)):
        world.do(action)
    for _ in range(30):
        (turn, *_) = list(world.actions())
        world.do(turn if turn[0] in ("SourceTurn", "ReceiverTurn") else ("Tick",))
    world.do(("Part",))
    assert phases(world) == ("QUIESCENT", "QUIESCENT")
    assert [action for action in world.actions() if action not in (("Part",), ("Tick",))] == []
    assert not world.known


def test_a_quiet_side_that_plans_a_turn_is_a_violation() -> None:
    state = dict(ResolutionPhasesWorld.create(CONSTANTS).abstract())
    assert broken(state, RESOLUTION_PHASES) == []
    state["source"] = record(phase="QUIESCENT", due=3)
    assert broken(state, RESOLUTION_PHASES) == ["Silent"]


def phases(world: ResolutionPhasesWorld) -> tuple[Value, Value]:
    """This holds for the source and for the receiver."""
    source, receiver = world.abstract()["source"], world.abstract()["receiver"]
    assert isinstance(source, Fn)
    assert isinstance(receiver, Fn)
    return source["phase"], receiver["phase"]
