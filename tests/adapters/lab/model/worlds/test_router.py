"""The world of linked routers: what its abstraction forgets does not matter, and its invariants hold."""

from typing import Any

import pytest

from stablecast.lab.model.canonical import Value
from stablecast.lab.model.explorer import Action, explore
from stablecast.lab.model.worlds.router import RouterWorld
from tests.adapters.lab.model.invariants import ROUTER, broken, violations

CONSTANTS: dict[str, Value] = {
    "Size": 3,
    "Links": frozenset({12, 13, 23}),
    "Dear": frozenset(),
    "Weak": frozenset({12}),
    "Breaks": 1,
    "Wants": frozenset({2}),
    "Turns": 0,
    "Lives": 1,
    "Messages": 1,
    "Room": 0,
    "Faults": frozenset(),
}


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "changes",
    [
        {"Wants": frozenset({2, 3}), "Dear": frozenset({13})},
        {"Links": frozenset({12, 23}), "Weak": frozenset({23}), "Wants": frozenset({2, 3}), "Turns": 1},
        {"Wants": frozenset(), "Turns": 2, "Breaks": 0, "Room": 1},
        {"Wants": frozenset({2, 3}), "Turns": 1, "Lives": 2, "Breaks": 0, "Messages": 0, "Room": 1},
    ],
)
def test_the_abstraction_forgets_nothing_that_matters(changes: dict[str, Value]) -> None:
    found = explore(RouterWorld.create({**CONSTANTS, **changes}), twins=2)
    assert len(found.graph.states) > 100
    assert found.twins
    assert violations(found.graph, ROUTER) == set()


def world(**changes: Value) -> RouterWorld:
    return RouterWorld.create({**CONSTANTS, **changes})


def play(of: RouterWorld, *actions: Action) -> dict[str, Any]:
    """Perform actions, each of which must be enabled."""
    for action in actions:
        assert action in list(of.actions()), action
        of.do(action)
    return dict(of.abstract())


def calm(of: RouterWorld, but: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    """Let everything arrive, but for what one router says to another."""
    while ends := [end for end, wire in of.wires.items() if wire and end != but]:
        play(of, ("Deliver", *ends[0]))
    return dict(of.abstract())


@pytest.mark.rows("R-082", "R-092")
def test_a_message_takes_the_other_way_round_a_ring() -> None:
    ring = world(Messages=2)
    play(ring, ("Send",))
    calm(ring)
    for action in (("Cut", 12), ("Notice", 1, 2), ("Notice", 2, 1), ("Send",)):
        play(ring, action)
        calm(ring)
    state: dict[str, Any] = dict(ring.abstract())
    assert state["got"][1] == ((1, 1), (1, 2))
    assert state["way"][1][0] == (1, 3, 2)


def test_a_copy_that_comes_late_by_the_other_way_does_not_leave_again() -> None:
    """The exit remembers what has passed, also when its source comes in elsewhere."""
    ring = world(Wants=frozenset({2, 3}), Room=1)
    play(ring, ("Send",), ("Deliver", 1, 2), ("Cut", 12), ("Notice", 2, 1), ("Deliver", 2, 3), ("Deliver", 1, 3))
    state = calm(ring)
    assert state["got"] == ((), ((1, 1),), ((1, 1),))
    assert state["table"][1][0]["passed"][1] == frozenset({1})


def test_a_message_that_is_under_way_for_longer_than_its_exit_lives_leaves_again() -> None:
    """As documented: the exit ends with `source-deletion-delay`, and its memory with it. Receivers drop the copy."""
    ring = world(Wants=frozenset({2, 3}), Room=2, Faults=frozenset({"slow"}))
    play(ring, ("Send",), ("Deliver", 1, 2), ("Cut", 12), ("Notice", 2, 1), ("End", 2, 1))
    play(ring, ("Deliver", 2, 3), ("Deliver", 3, 2), ("Deliver", 1, 3))
    assert calm(ring)["got"][1] == ((1, 1), (1, 1))


def test_a_message_that_a_second_break_lets_through_comes_late() -> None:
    """The link heals and breaks again while a message is under way by the other path: better late than lost."""
    ring = world(Messages=2, Breaks=2, Room=9)
    play(ring, ("Cut", 12), ("Notice", 1, 2), ("Notice", 2, 1))
    calm(ring)
    play(ring, ("Send",), ("Deliver", 1, 3), ("Connect", 12))
    calm(ring, but=(3, 2))
    play(ring, ("Steady", 1, 2), ("Steady", 2, 1))
    calm(ring, but=(3, 2))
    play(ring, ("Send",), ("Deliver", 1, 2), ("Cut", 12), ("Notice", 2, 1))
    assert calm(ring)["got"][1] == ((1, 2), (1, 1))


def test_a_message_that_passed_a_router_twice_is_a_violation() -> None:
    state = play(world(), ("Send",))
    assert broken(state, ROUTER) == []
    (said,) = state["wire"][0][1]
    circle = type(said[0])({**said[0], "by": (1, 2)})
    state["wire"] = (((), ((circle,),), ()), *state["wire"][1:])
    state["got"] = ((), ((1, 2), (1, 1)), ())
    assert broken(state, ROUTER) == ["NoCircle", "Once"]
