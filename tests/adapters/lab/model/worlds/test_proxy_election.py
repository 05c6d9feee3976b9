"""The world of the election model: what its abstraction forgets does not matter, and its invariants hold."""

import pytest

from stablecast.core.store.proxy_election import ElectionState
from stablecast.lab.model.canonical import Value
from stablecast.lab.model.explorer import explore
from stablecast.lab.model.worlds.proxy_election import ProxyElectionWorld
from tests.adapters.lab.model.invariants import PROXY_ELECTION, broken, violations

CONSTANTS: dict[str, Value] = {
    "Stores": 2,
    "Values": 1,
    "Lives": 1,
    "Repaired": True,
    "Faults": frozenset(),
    "Quorum": False,
}


@pytest.mark.rows("P-541", "P-548", "P-553", "P-554")
@pytest.mark.no_cover
@pytest.mark.parametrize(
    "changes",
    [{}, {"Faults": frozenset({"suspect"})}, {"Repaired": False}, {"Stores": 1, "Lives": 2, "Values": 2}],
)
def test_the_abstraction_forgets_nothing_that_matters(changes: dict[str, Value]) -> None:
    """T23: E2 and E3 hold everywhere."""
    found = explore(ProxyElectionWorld.create({**CONSTANTS, **changes}), twins=2)
    assert len(found.graph.states) > 50
    assert found.twins > 50
    assert violations(found.graph, PROXY_ELECTION) == set()


def test_a_store_stands_and_another_follows() -> None:
    world = ProxyElectionWorld.create(CONSTANTS)
    for action in (
        ("Die",),
        ("Silent", 1),
        ("Silent", 2),
        ("Stand", 1, 1),
        ("Proxy", 2, 1, 1, 1),
        ("Proxy", 1, 1, 1, 1),
    ):
        assert action in list(world.actions())
        world.do(action)
    states = [station.election.state for station in world.stations]
    assert states == [ElectionState.SERVING, ElectionState.FOLLOWING]


def test_what_does_not_hold_is_seen() -> None:
    world = ProxyElectionWorld.create(CONSTANTS)
    for action in (("Die",), ("Silent", 1), ("Stand", 1, 1), ("Proxy", 1, 1, 1, 1)):
        world.do(action)
    assert broken(world.abstract(), PROXY_ELECTION) == []
    (station, _) = world.stations
    station.proxy = None
    station.election.holder = None
    assert broken(world.abstract(), PROXY_ELECTION) == ["Agreed"]
    world = ProxyElectionWorld.create(CONSTANTS)
    for action in (("Die",), ("Silent", 1), ("Stand", 1, 1)):
        world.do(action)
    world.stations[0].proxy = None
    assert broken(world.abstract(), PROXY_ELECTION) == ["OwnProxy"]
