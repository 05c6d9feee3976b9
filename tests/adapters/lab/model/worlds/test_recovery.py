"""The world of the recovery model: what its abstraction forgets does not matter, and its invariants hold."""

import pytest

from stablecast.lab.model.canonical import Fn, Value
from stablecast.lab.model.explorer import Action, explore
from stablecast.lab.model.worlds.recovery import RecoveryWorld
from tests.adapters.lab.model import invariants
from tests.adapters.lab.model.invariants import RECOVERY, violations

CONSTANTS: dict[str, Value] = {
    "Messages": 2,
    "Lacks1": frozenset(),
    "Lacks2": frozenset(),
    "Groups": 1,
    "Order": "ordered",
    "Acks": "immediate",
    "Consensus": "highest",
    "Maximum": 0,
    "Window": 1,
    "GiveUp": 1,
    "Room": 1,
    "Repairs": frozenset({"prefix", "every_group"}),
    "Faults": frozenset({"die"}),
}


def faults(*names: str) -> frozenset[Value]:
    return frozenset(names)


def after(actions: list[Action], **changes: Value) -> RecoveryWorld:
    world = RecoveryWorld.create({**CONSTANTS, **changes})
    for action in actions:
        assert action in list(world.actions())
        world.do(action)
    return world


@pytest.mark.rows("P-349", "P-417", "P-418", "P-429", "P-432", "P-433")
@pytest.mark.no_cover
@pytest.mark.parametrize(
    "changes",
    [
        {"Messages": 1, "Acks": "batched", "Faults": faults("slow", "close")},
        {"Order": "arrival", "Window": 2, "Room": 2, "Faults": faults("miss")},
        {"Messages": 1, "Lacks1": frozenset({1}), "GiveUp": 2, "Faults": faults("die", "lose")},
        {"Messages": 1, "Groups": 2, "Faults": faults("crash", "restart")},
    ],
)
def test_the_abstraction_forgets_nothing_that_matters(changes: dict[str, Value]) -> None:
    """P-349, P-417, P-418, P-429, P-432, P-433, T3, T4; formal design, 7.2 and 7.7: D1, A1 and A2 hold everywhere."""
    found = explore(RecoveryWorld.create({**CONSTANTS, **changes}), twins=99)
    assert len(found.graph.states) > 100
    # A twin that equals the first world in everything shows nothing, so it is not counted. The smallest graph has 24.
    assert found.twins > 20
    assert violations(found.graph, RECOVERY) == set()


def broken(world: RecoveryWorld) -> list[str]:
    return invariants.broken(world.abstract(), RECOVERY)


GAP: list[Action] = [
    *(("Start",), ("Register", 1), ("Register", 2)),
    *(("ToStore", 2), ("Missed", 2), ("ToReceiver", 2), ("Consume", 2)),
]
"""The first of two messages is lost on its way, the second one is consumed."""
AGAIN: list[Action] = [("Die",), ("Start",), ("Register", 1), ("Register", 2)]
ACKNOWLEDGED: list[Action] = [("ToStore", 1), ("ToStore", 2)]
ONE_KNOWS: list[Action] = [
    *(("Start",), ("Register", 1), ("Register", 2), ("ToStore", 2), ("ToReceiver", 2), ("Consume", 1)),
    *(("ToStore", 1), ("ToReceiver", 1), ("Consume", 2), ("ToStore", 2), ("ToStore", 2), ("ToStore", 1)),
]
"""Everything is consumed; store 2 knows it, store 1 knows of the first message."""


@pytest.mark.rows("P-418", "P-431")
@pytest.mark.parametrize("consensus", ["lowest", "majority", "highest"])
def test_arrival_order_loses_what_came_later_as_documented(consensus: str) -> None:
    """P-418, P-431; formal design, 7.7: `doc_arrival_*`, and what the repair makes of it."""
    changes: dict[str, Value] = {"Order": "arrival", "Window": 2, "Room": 2, "Consensus": consensus}
    changes["Faults"] = faults("die", "miss")
    documented = after([*GAP, *ACKNOWLEDGED, *AGAIN], **changes, Repairs=frozenset())
    assert documented.application.low == 3
    assert broken(documented) == ["NoGap", "NothingUnread"]
    repaired = after([*GAP, *AGAIN], **changes)
    assert repaired.application.low == 1
    assert broken(repaired) == []


@pytest.mark.rows("P-416", "P-418")
@pytest.mark.parametrize(
    ("consensus", "low", "breaks"), [("lowest", 2, ["NoRepeat"]), ("majority", 2, ["NoRepeat"]), ("highest", 3, [])]
)
def test_the_highest_number_repeats_least(consensus: str, low: int, breaks: list[str]) -> None:
    """`doc_lowest`, `doc_majority`."""
    world = after([*ONE_KNOWS, *AGAIN], Consensus=consensus, Room=3)
    assert world.application.low == low
    assert broken(world) == breaks


@pytest.mark.rows("P-422")
def test_a_request_maximum_passes_over_what_is_older() -> None:
    """T9: `doc_maximum`."""
    world = after([("Start",), ("Register", 1), ("Register", 2)], Messages=3, Maximum=1)
    assert world.application.low == 2
    assert broken(world) == ["NoGap"]


def test_a_number_told_twice_is_a_violation() -> None:
    world = after([("Start",), ("Register", 1), ("Register", 2), ("ToStore", 2), ("ToReceiver", 2)])
    assert broken(world) == []
    world.application.told *= 2
    assert broken(world) == ["InOrder"]


@pytest.mark.rows("P-430")
def test_a_store_that_is_away_keeps_a_message_from_being_given_up() -> None:
    """P-430; formal design, 7.2: `doc_one_group`."""
    changes: dict[str, Value] = {"Groups": 2, "Lacks1": frozenset({1}), "Room": 3, "Faults": frozenset()}
    actions: list[Action] = [("Start",), ("Tick",), ("Register", 1), ("ToStore", 1), ("Tick",), ("ToStore", 1)]
    assert after(actions, **changes).application.lost == frozenset()
    documented = after(actions[:5], **changes, Repairs=frozenset({"prefix"}))
    assert documented.application.lost == {1}


@pytest.mark.rows("P-417")
def test_a_crash_takes_what_was_not_synced() -> None:
    """T3."""
    changes: dict[str, Value] = {"Messages": 1, "Faults": faults("crash", "restart")}
    actions: list[Action] = [("Start",), ("Register", 1), ("Register", 2), ("ToStore", 2), ("ToReceiver", 2)]
    actions += [("Consume", 1), ("ToStore", 1), ("ToStore", 2), ("Sync", 2), ("Crash", 1), ("Crash", 2)]
    actions += [("Restart", 1), ("Restart", 2)]
    stores = after(actions, **changes).abstract()["store"]
    assert isinstance(stores, tuple)
    assert [store["ack"] for store in stores if isinstance(store, Fn)] == [0, 1]
