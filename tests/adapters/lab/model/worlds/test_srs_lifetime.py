"""The world of a resolution service: what its abstraction forgets does not matter, and its invariants hold."""

import pytest

from stablecast.lab.model.canonical import Value, record
from stablecast.lab.model.explorer import explore
from stablecast.lab.model.worlds.srs_lifetime import SrsLifetimeWorld
from tests.adapters.lab.model.invariants import SRS_LIFETIME, broken, violations

CONSTANTS: dict[str, Value] = {
    "Contexts": 2,
    "Sources": frozenset({1}),
    "Wants": frozenset({2}),
    "Heirs": frozenset(),
    "SourceLifetime": 1,
    "InterestLifetime": 1,
    "Backoff": 0,
    "Grace": 1,
    "Keepalive": 0,
    "Silence": 0,
    "Room": 1,
    "Breaks": 1,
    "Faults": frozenset(),
}


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "changes",
    [
        {"Faults": frozenset({"break", "late", "away"})},
        {"Faults": frozenset({"restart", "unwant"})},
        {"Faults": frozenset({"break", "away", "lose"}), "SourceLifetime": 2, "Backoff": 1, "Breaks": 2},
        {"Faults": frozenset({"hang", "away"}), "Keepalive": 1, "Silence": 2},
        {
            "Contexts": 3,
            "Sources": frozenset({1, 2}),
            "Wants": frozenset({3}),
            "Heirs": frozenset({2}),
            "Breaks": 0,
            "Faults": frozenset({"die", "away", "remove"}),
        },
    ],
)
def test_the_abstraction_forgets_nothing_that_matters(changes: dict[str, Value]) -> None:
    """T-402 to T-418, T27; formal design, 7.10: N1 and N2 hold everywhere."""
    found = explore(SrsLifetimeWorld.create({**CONSTANTS, **changes}), twins=2)
    assert len(found.graph.states) > 100
    assert found.twins > 100
    assert violations(found.graph, SRS_LIFETIME) == set()


def connected(**changes: Value) -> SrsLifetimeWorld:
    """Both contexts have made their full exchange, the source's first."""
    world = SrsLifetimeWorld.create({**CONSTANTS, **changes})
    for number in (1, 2):
        for name in ("Connect", "ToService", "ToClient", "ToService", "ToClient"):
            world.do((name, number))
    return world


@pytest.mark.rows("T-413", "T-415")
def test_a_source_is_found_and_goes_with_its_lifetime() -> None:
    """Not before."""
    world = connected(Faults=frozenset({"break", "away"}))
    assert world.abstract()["knows"] == (("no", "no"), ("cur", "no"))
    world.do(("Break", 1))
    assert ("ServiceTimer",) not in list(world.actions())
    world.do(("Tick",))
    world.do(("ServiceTimer",))
    assert world.abstract()["knows"] == (("no", "no"), ("cur", "no"))
    world.do(("ToClient", 2))
    assert world.abstract()["knows"] == (("no", "no"), ("no", "no"))


def test_a_lost_transport_shortens_the_wait() -> None:
    """T27: but not for a source whose context is connected."""
    world = connected(Faults=frozenset({"break", "away", "lose"}), SourceLifetime=3, Breaks=2)
    for action in (("Lose", 2), ("ToService", 2), ("ServiceTimer",)):
        world.do(action)
    assert len(world.service.directory.sources) == 1
    for action in (("Break", 1), ("Lose", 2), ("ToService", 2), ("ServiceTimer",)):
        world.do(action)
    assert len(world.service.directory.sources) == 0


def test_a_late_hello_is_refused() -> None:
    """Formal design, 7.10: the former connection's hello comes after the new one's."""
    world = SrsLifetimeWorld.create({**CONSTANTS, "Faults": frozenset({"break", "late"})})
    for action in (("Connect", 1), ("Break", 1), ("Connect", 1), ("ToService", 1), ("FromFormer", 1)):
        world.do(action)
    assert world.service.counters()["refused"] == 1
    assert broken(world.abstract(), SRS_LIFETIME) == []


def test_what_is_kept_wrongly_is_a_violation() -> None:
    world = connected()
    state = dict(world.abstract())
    assert broken(state, SRS_LIFETIME) == []
    clients, sessions = state["client"], state["session"]
    assert isinstance(clients, tuple)
    assert isinstance(sessions, tuple)
    told = record(state="told", age=-1)
    state["client"] = (record(state="CURRENT", source=False, want=False, age=-1), clients[1])
    state["session"] = (record(now=told, old=told), sessions[1])
    assert broken(state, SRS_LIFETIME) == ["Kept", "OneConnection"]
