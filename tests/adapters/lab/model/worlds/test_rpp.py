"""The world of the receiver-paced model: what its abstraction forgets does not matter, and its invariants hold."""

from collections.abc import Iterable

import pytest

from stablecast.core.protocol.messages import Role
from stablecast.lab.model.canonical import Fn, ModelError, Value
from stablecast.lab.model.explorer import Action, explore
from stablecast.lab.model.store_process import SOURCE_ID
from stablecast.lab.model.worlds.rpp import RppWorld
from tests.adapters.lab.model.invariants import RPP, broken, violations

CONSTANTS: dict[str, Value] = {
    "Receivers": 1,
    "Patient": frozenset(),
    "Messages": 2,
    "Capacity": 2,
    "Flight": 1,
    "Delay": False,
    "Lives": 1,
    "Faults": frozenset(),
    "Repaired": True,
}
JOIN: tuple[Action, ...] = (("Join", 1), ("Sync",))
STORED: tuple[Action, ...] = (("Send",), ("ToStore",), ("Sync",))
CONSUMED: tuple[Action, ...] = (("Consume", 1), ("Ack", 1))


def world(*actions: Action, **changes: Value) -> RppWorld:
    """Return the state after these actions, each of which was possible."""
    made = RppWorld.create({**CONSTANTS, **changes})
    go(made, actions)
    return made


def go(made: RppWorld, actions: Iterable[Action]) -> None:
    for action in actions:
        assert action in list(made.actions())
        made.do(action)


def seen(made: RppWorld, variable: str, field: str) -> Value:
    whole = made.abstract()[variable]
    assert isinstance(whole, Fn)
    value: Value = whole[field]
    return value


@pytest.mark.rows("P-012", "P-013", "P-536", "P-563", "P-585")
@pytest.mark.no_cover
@pytest.mark.parametrize(
    "changes",
    [
        {"Faults": frozenset({"leave"})},
        {"Delay": True, "Faults": frozenset({"expire"})},
        {"Flight": 2, "Lives": 2, "Faults": frozenset({"die"})},
        {"Messages": 1, "Faults": frozenset({"crash"})},
        {"Flight": 2, "Repaired": False},
    ],
)
def test_the_abstraction_forgets_nothing_that_matters(changes: dict[str, Value]) -> None:
    """P-012, P-013, P-536, P-563, P-585, T18, T19; formal design, 7.8: P1 and P2 hold everywhere."""
    found = explore(RppWorld.create({**CONSTANTS, **changes}), limit=20_000, twins=1)
    assert len(found.graph.states) > 100
    assert found.twins > 50
    assert violations(found.graph, RPP) == set()


@pytest.mark.rows("P-566", "P-580")
def test_acknowledgements_are_withheld_until_there_is_room() -> None:
    """T17: two messages are kept, and the second is acknowledged when one has been consumed."""
    made = world(*JOIN, *STORED, ("ToSource",), *STORED)
    assert seen(made, "source", "open") == frozenset({1})
    assert ("ToSource",) not in list(made.actions())
    go(made, [*CONSUMED, ("ToSource",)])
    assert seen(made, "source", "open") == frozenset()
    assert seen(made, "store", "held") == frozenset({1})


def test_as_documented_they_wait_for_new_data() -> None:
    """Formal design, 7.8: the source, which waits for them, has none to send."""
    made = world(*JOIN, *STORED, ("ToSource",), *STORED, *CONSUMED, Repaired=False)
    assert seen(made, "source", "open") == frozenset({1})
    go(made, [("Sync",)])
    assert list(made.actions()) == [("Consume", 1)]


@pytest.mark.rows("P-578", "P-579")
def test_what_is_consumed_before_it_is_written_is_never_written() -> None:
    """T19: and acknowledged when the disk knows that it went."""
    made = world(*JOIN, ("Send",), ("ToStore",), *CONSUMED, Delay=True)
    assert seen(made, "written", "messages") == frozenset()
    assert made.abstract()["acks"] == frozenset()
    go(made, [("Sync",)])
    assert made.abstract()["acks"] == frozenset({0})


@pytest.mark.rows("P-536")
def test_who_is_silent_for_long_holds_up_nobody() -> None:
    """T18."""
    made = world(*JOIN, *STORED, ("ToSource",), *STORED, ("Expire", 1), ("ToSource",), Faults=frozenset({"expire"}))
    assert seen(made, "store", "held") == frozenset()
    assert seen(made, "source", "open") == frozenset()
    assert made.store is not None
    assert [record.client.role for record in made.store.clients.records.values()] == [Role.SOURCE]


def test_a_flight_larger_than_the_repository_is_refused() -> None:
    """Formal design, 7.8."""
    with pytest.raises(ModelError, match="less room"):
        world(Flight=3)
    assert world(Flight=3, Repaired=False).up


BOTH_END: tuple[Action, ...] = (("Die",), ("Crash",), ("Restart",), ("Return",), ("Sync",), ("ToStore",))


def test_documented_a_number_may_be_used_again_that_was_consumed_before_the_disk_knew() -> None:
    """T19 and a crash of store and source: the receiver is told another life, and consumes the new message as well."""
    made = world(*JOIN, ("Send",), *CONSUMED, Lives=2, Faults=frozenset({"die", "crash"}), Repaired=False)
    go(made, [("ToStore",), ("ToSource",), *BOTH_END])
    assert seen(made, "source", "next") == 0
    go(made, [("Send",), ("Consume", 1)])


def test_a_number_that_was_acknowledged_unwritten_is_not_used_again() -> None:
    """T19; formal design, 7.8."""
    made = world(*JOIN, ("Send",), *CONSUMED, Lives=2, Faults=frozenset({"die", "crash"}))
    go(made, [("ToStore",), ("Sync",), ("ToSource",), *BOTH_END])
    assert seen(made, "source", "next") == 1


def test_a_lost_message_is_a_violation() -> None:
    made = world(*JOIN, *STORED, ("ToSource",))
    assert broken(made.abstract(), RPP) == []
    made.store.repositories[SOURCE_ID].held.remove(0, 1)  # type: ignore[union-attr]
    made.keeper.machine.synced.messages.clear()
    assert broken(made.abstract(), RPP) == [
        "PacedRetention",
        "SyncedFirst",
    ]
