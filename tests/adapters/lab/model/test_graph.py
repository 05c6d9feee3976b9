"""Digests tell graphs apart that counts do not; the first difference is told."""

from pathlib import Path

from stablecast.lab.model.explorer import explore
from stablecast.lab.model.graph import Graph, GraphDifference, parted
from tests.adapters.lab.model.small import SmallWorld


def line(*targets: int) -> Graph:
    """States s0.. with an edge `a` from each to its target."""
    graph = Graph()
    for at in range(len(targets)):
        graph.add(f"s{at}")
    for at, target in enumerate(targets):
        graph.edges[at].append(("a", target))
    return graph


def test_digests_name_states_steps_and_actions() -> None:
    digests = explore(SmallWorld(3)).graph.digests()
    assert (digests.nodes, digests.edges, digests.depths) == (4, 6, (1, 1, 1, 1))
    assert digests == explore(SmallWorld(3)).graph.digests()
    assert len({digests.states, digests.steps, digests.actions}) == 3


def test_the_order_of_finding_does_not_matter() -> None:
    one, other = Graph(), Graph()
    for graph, order in ((one, "sab"), (other, "sba")):
        for state in order:
            graph.add(state)
        for state in order[1:]:
            graph.edges[0].append((state.upper(), graph.index[state]))
    assert one.edges != other.edges or one.states != other.states
    assert one.digests() == other.digests()
    assert all(parted(one, other, state) is None for state in one.states)


def test_equal_counts_are_not_equal_graphs() -> None:
    one, other = line(1, 2, 1), line(1, 2, 0)
    assert one.digests().states == other.digests().states
    assert one.digests().depths == other.digests().depths
    assert one.digests().steps != other.digests().steps


def test_another_action_is_another_graph() -> None:
    one, other = line(1, 0), line(1, 0)
    other.edges[1] = [("b", 0)]
    assert one.digests().steps == other.digests().steps
    assert one.digests().actions != other.digests().actions


def test_a_difference_is_told_with_its_path() -> None:
    one, other = line(1, 2, 1), line(1, 2, 0)
    assert parted(one, other, "s1") is None
    assert parted(one, other, "s2") == GraphDifference(("a", "a"), "s2", (("a", "s1"),), (("a", "s0"),))


def test_other_beginnings_differ_at_once() -> None:
    other = Graph()
    other.add("t")
    found = explore(SmallWorld(0), model=other).difference
    assert found is not None
    assert (found.path, found.state) == ((), "")
    assert (found.only_model, found.only_core) == ((("initial", "t"),), (("initial", '["fn",["at",0]]'),))


def test_a_graph_that_was_kept_is_the_same(tmp_path: Path) -> None:
    graph = explore(SmallWorld(3)).graph
    path = tmp_path / "graph.gz"
    graph.write(path)
    kept = path.read_bytes()
    again = Graph.read(path)
    assert again.digests() == graph.digests()
    again.write(path)
    assert path.read_bytes() == kept
