"""The proofs and the recorded graphs of the core agree, both ways."""

from typing import Any

import attrs
import pytest

from stablecast.lab.model import catalog, equal
from stablecast.lab.model.graph import Graph
from stablecast.lab.proof import tie
from stablecast.lab.proof.bounds_stability import StabilityBounds
from stablecast.lab.proof.errors import ProofError
from stablecast.lab.proof.evaluation import Evaluator
from stablecast.lab.proof.stability import text
from stablecast.lab.proof.stability_quorums import quorums
from stablecast.lab.proof.tie_stability import StabilityTie
from tests.adapters.lab.proof.mutants import MUTANTS
from tests.support.verdicts import Verdict

GRAPHS = [one for one in catalog.configurations(catalog.folder(), ("Stability",)) if one.has_graph]
KEPT = [one for one in GRAPHS if equal.kept_path(one).exists()]
"""Graphs whose states are kept beside their configuration; `stablecast model tie` explores the others anew."""
REFILL = [one for one in catalog.configurations(catalog.folder(), ("Refill",)) if one.has_graph]
RECOVERY = [one for one in catalog.configurations(catalog.folder(), ("ReceiverVotes",)) if tie.is_tied(one)]
BEYOND = {"Begin": 10}
"""Edges of each of these graphs on which a life begins although too few stores are up that remember."""
(REGISTRATION,) = catalog.configurations(catalog.folder(), ("Registration/graph_small",))
SHORT = 1_500
"""Structures of that graph that the test compares, breadth first."""
LONG = {
    "Stability/graph_wiped": 3_000,
    "Refill/graph_lives": 1_500,
    "Refill/graph_wiped": 1_500,
    "ReceiverVotes/graph_lives": 1_500,
    "ReceiverVotes/graph_twice": 3_000,
}
"""Structures of larger graphs that the test compares. `stablecast model tie` compares all of them."""
SMALL = next(one for one in GRAPHS if one.path.stem == "graph_small")


def small_run(change: Any = None) -> tuple[Graph, tie.TieRun]:
    graph = Graph.read(equal.kept_path(SMALL))
    constants = tie.stability_constants(SMALL.constants)
    made = StabilityTie.create(attrs.asdict(constants), tie.terms(graph))
    if change is not None:
        told = text()
        change(told)
        evaluator = Evaluator(told.read(), made.evaluator.sizes, made.evaluator.constants)
        made = attrs.evolve(made, evaluator=evaluator)
    return graph, tie.TieRun(graph, made, StabilityBounds(constants, made))


@pytest.mark.parametrize("configuration", [*KEPT, *REFILL, *RECOVERY], ids=lambda one: one.name)
def test_a_graph_and_the_proof_agree_both_ways(configuration: catalog.Configuration) -> None:
    limit = LONG.get(configuration.name, 0)
    files = (configuration.path, equal.kept_path(configuration))
    verdict = Verdict(f"{configuration.name} and its proof", (str(limit),), (tie,), files)
    if verdict.shown and configuration != SMALL:
        return
    with verdict.showing():
        found = tie.run(configuration, limit)
        assert found.difference is None
        assert found.structures >= (limit or found.reached)
        assert found.left_out == (BEYOND if configuration in RECOVERY else {})


def test_a_graph_of_registration_and_the_proof_agree_both_ways() -> None:
    """`stablecast model tie` compares all of it, and the other graphs of Registration."""
    found = tie.run(REGISTRATION, limit=SHORT)
    assert found.difference is None
    assert found.structures >= SHORT


@pytest.mark.parametrize("action", ["ToStore(1)", "Sync", "Tick"])
def test_a_step_that_a_graph_of_registration_lacks_is_noticed(action: str) -> None:
    graph = Graph.read(equal.kept_path(REGISTRATION))
    run = tie.registration_run(REGISTRATION, graph, SHORT)
    at = next(at for at, edges in enumerate(graph.edges) if at and any(one == action for one, _ in edges))
    graph.edges[at] = [(one, to) for one, to in graph.edges[at] if one != action]
    difference = run.run().difference
    assert difference is not None
    assert f"lacks {action}" in difference


def test_an_edge_of_registration_that_the_proof_forbids_is_noticed() -> None:
    graph = Graph.read(equal.kept_path(REGISTRATION))
    at, place = next(
        (at, place)
        for at, edges in enumerate(graph.edges)
        for place, (action, _) in enumerate(edges)
        if action == "Sync"
    )
    graph.edges[at][place] = ("Sync", at)
    assert tie.registration_run(REGISTRATION, graph, SHORT).run().difference is not None


@pytest.mark.parametrize("action", ["Begin", "Join(1)", "Replace(1)", "Refill(1)"])
def test_a_step_that_a_graph_of_refill_lacks_is_noticed(action: str) -> None:
    [small] = [one for one in REFILL if one.path.stem == "graph_small"]
    graph = Graph.read(equal.kept_path(small))
    at = next(at for at, edges in enumerate(graph.edges) if at and any(one == action for one, _ in edges))
    graph.edges[at] = [(one, to) for one, to in graph.edges[at] if one != action]
    difference = tie.refill_run(small, graph).run().difference
    assert difference is not None
    assert f"lacks {action}" in difference


def recovery_graph(name: str) -> tuple[catalog.Configuration, Graph]:
    (configuration,) = catalog.configurations(catalog.folder(), (f"ReceiverVotes/{name}",))
    return configuration, Graph.read(equal.kept_path(configuration))


def test_the_graph_of_recovery_is_compared_but_for_what_begins_without_a_quorum() -> None:
    configuration, graph = recovery_graph("graph_small")
    found = tie.recovery_run(configuration, graph).run()
    assert (found.difference, found.left_out) == (None, BEYOND)
    assert found.reached > 0.9 * found.states
    assert {"Complete.old", "Complete.all", "Complete.lost", "Late.higher", "GiveUp", "Leave"} <= found.steps.keys()


@pytest.mark.parametrize("action", ["Register(1)", "Return", "Restart(3)", "Die", "Stop(1)"])
def test_a_step_that_a_graph_of_recovery_lacks_is_noticed(action: str) -> None:
    configuration, graph = recovery_graph("graph_small")
    at = next(at for at, edges in enumerate(graph.edges) if at and any(one == action for one, _ in edges))
    graph.edges[at] = [(one, to) for one, to in graph.edges[at] if one != action]
    difference = tie.recovery_run(configuration, graph).run().difference
    assert difference is not None
    assert f"lacks {action}" in difference


@pytest.mark.parametrize(
    ("shown", "forged"),
    [
        ('["lost",["set"]]', '["lost",["set",0]]'),
        ('["read",["set",0]]', '["read",["set",0,1]]'),
        ('["certain",true]', '["certain",false]'),
        ('["start",1]', '["start",0]'),
    ],
    ids=["lost", "read", "certain", "start"],
)
def test_a_state_of_recovery_that_the_proof_forbids_is_noticed(shown: str, forged: str) -> None:
    configuration, graph = recovery_graph("graph_small")
    at, state = next(
        (at, state) for at, state in enumerate(graph.states) if '["state","ACTIVE"]' in state and shown in state
    )
    graph.states[at] = state.replace(shown, forged)
    assert tie.recovery_run(configuration, graph).run().difference is not None


@pytest.mark.parametrize("name", ["graph_documented", "graph_unmarked"])
def test_a_graph_without_the_rules_of_votes_is_not_that_of_the_proof(name: str) -> None:
    configuration, graph = recovery_graph(name)
    assert not tie.is_tied(configuration)
    assert tie.recovery_run(configuration, graph).run().difference is not None


def test_a_replaced_disk_that_the_graph_lacks_is_noticed() -> None:
    [wiped] = [one for one in GRAPHS if one.path.stem == "graph_wiped"]
    graph = Graph.read(equal.kept_path(wiped))
    at = next(at for at, edges in enumerate(graph.edges) if any(one.startswith("Wipe") for one, _ in edges))
    graph.edges[at] = [(one, to) for one, to in graph.edges[at] if not one.startswith("Wipe")]
    difference = tie.stability_run(wiped, graph).run().difference
    assert difference is not None
    assert "lacks Wipe" in difference


def test_other_models_have_no_tie() -> None:
    [other] = catalog.configurations(catalog.folder(), ("Recovery/graph_small",))
    with pytest.raises(ProofError, match="no tie"):
        tie.run(other)


def test_a_step_that_the_graph_lacks_is_noticed() -> None:
    graph, run = small_run()
    at = next(at for at, edges in enumerate(graph.edges) if any(action == "Send" for action, _ in edges))
    graph.edges[at] = [(action, to) for action, to in graph.edges[at] if action != "Send"]
    difference = run.run().difference
    assert difference is not None
    assert "lacks Send" in difference


def test_an_edge_that_the_proof_forbids_is_noticed() -> None:
    graph, run = small_run()
    at, place = next(
        (at, place)
        for at, edges in enumerate(graph.edges)
        for place, (action, _) in enumerate(edges)
        if action == "Sync(1)"
    )
    graph.edges[at][place] = ("Sync(1)", at)
    assert run.run().difference is not None


@pytest.mark.parametrize("name", ["mut_own_count_bug", "mut_early_release_bug"])
def test_a_looser_rule_of_the_proof_still_contains_the_graph(name: str) -> None:
    # The tie compares steps, and the solvers judge rules: a guard that is dropped shows only in a condition.
    _, run = small_run(MUTANTS[name].breaks)
    found = run.run().difference
    assert found is None or "breaks" not in found


def test_quorums_of_groups() -> None:
    kinds = quorums((3, 1), (0, 0, 0, 1), "quorum", "any")
    assert kinds["c"] == (frozenset({3}), frozenset({0, 1}), frozenset({0, 2}), frozenset({1, 2}))
    assert all(3 in one for one in kinds["r"])
