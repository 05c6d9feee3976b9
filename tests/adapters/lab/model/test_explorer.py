"""The explorer on a world that is small enough to be counted by hand."""

import pytest

from stablecast.lab.model.canonical import ModelError
from stablecast.lab.model.explorer import explore, label
from tests.adapters.lab.model.small import SmallWorld


def test_every_state_and_edge_is_found_once() -> None:
    graph = explore(SmallWorld(3)).graph
    assert graph.states == [f'["fn",["at",{at}]]' for at in range(4)]
    assert graph.edges == [[("Up(1)", 1)], [("Up(1)", 2), ("Reset", 0)], [("Up(1)", 3), ("Reset", 0)], [("Reset", 0)]]


def test_too_many_states_are_refused() -> None:
    assert len(explore(SmallWorld(3), limit=4).graph.states) == 4
    with pytest.raises(ModelError, match="more than 3 states"):
        explore(SmallWorld(3), limit=3)


def test_worlds_that_look_the_same_must_behave_the_same() -> None:
    assert explore(SmallWorld(3), twins=2).twins == 2
    with pytest.raises(ModelError, match="the abstraction drops a fact that matters"):
        explore(SmallWorld(3, leaky=True), twins=2)
    assert explore(SmallWorld(3, leaky=True)).twins == 0


def test_actions_are_named_as_the_checker_names_them() -> None:
    assert [label(("Tick",)), label(("Do", 1, "a"))] == ["Tick", 'Do(1,"a")']
