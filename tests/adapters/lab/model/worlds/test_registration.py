"""The world of the registration model: what its abstraction forgets does not matter, and its invariants hold."""

import pytest

from stablecast.lab.model.canonical import Value
from stablecast.lab.model.explorer import explore
from stablecast.lab.model.worlds.registration import RegistrationWorld
from tests.adapters.lab.model.invariants import broken, registration, violations

CONSTANTS: dict[str, Value] = {
    "Clients": 1,
    "Interval": 1,
    "Probe": 1,
    "Silence": 2,
    "Lease": 1,
    "Lifetime": 0,
    "Room": 1,
    "Writes": 1,
    "Shared": frozenset(),
    "Faults": frozenset(),
}


@pytest.mark.rows("P-530", "P-531", "P-532", "P-533", "P-534", "P-535")
@pytest.mark.no_cover
@pytest.mark.parametrize(
    "changes",
    [
        {"Faults": frozenset({"slow", "break", "drop", "die", "crash"})},
        {"Clients": 2, "Faults": frozenset({"die"})},
        {"Clients": 2, "Lifetime": 3, "Interval": 2, "Faults": frozenset({"drop"})},
        {"Clients": 2, "Shared": frozenset({1, 2}), "Faults": frozenset({"die", "drop"})},
    ],
)
def test_the_abstraction_forgets_nothing_that_matters(changes: dict[str, Value]) -> None:
    """A new holder (P-530..P-535, T6, T7), restarts, and leases (formal design, 7.6): R1 and R2 hold everywhere."""
    world = RegistrationWorld.create({**CONSTANTS, **changes})
    found = explore(world, twins=2)
    assert len(found.graph.states) > 100
    assert found.twins > 100
    assert violations(found.graph, registration(world.constants.Shared)) == set()


def test_a_grant_waits_for_the_disk() -> None:
    world = RegistrationWorld.create({**CONSTANTS, "Faults": frozenset({"crash"})})
    for action in (("Start", 1), ("ToStore", 1)):
        world.do(action)
    assert world.clients[0].from_store == []
    world.do(("Sync",))
    assert len(world.clients[0].from_store) == 1
    world.do(("ToClient", 1))
    assert world.abstract()["disk"] == 1
    assert world.clients[0].registration.counts


def test_two_believers_are_a_violation() -> None:
    state = RegistrationWorld.create({**CONSTANTS, "Clients": 2}).abstract()
    assert broken(state, registration()) == []
    clients = state["client"]
    assert isinstance(clients, tuple)
    world = RegistrationWorld.create({**CONSTANTS, "Clients": 2})
    for number in (1, 2):
        for action in (("Start", number), ("ToStore", number), ("Sync",), ("ToClient", number)):
            if number == 1:
                world.do(action)
    world.clients[1] = world.clients[0]
    assert broken(world.abstract(), registration()) == ["OneHolder", "Kept"]
