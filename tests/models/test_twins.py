"""Check that an abstraction which drops a fact that matters is refused, also by the gate."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stablecast.lab.model import catalog, equal
from stablecast.lab.model.canonical import ForgetfulError, Value

MODELS = catalog.folder()
KNOWN = catalog.load(MODELS)

FORGOTTEN = {
    "ProxyElection/graph_quorum": "late",
    "ReceiverVotes/graph_small": "rcv",
    "Recovery/graph_small": "rcv",
    "Refill/graph_small": "disk",
    "Registration/graph_small": "toStore",
    "ResolutionPhases/graph_small": "joined",
    "Router/graph_small": "table",
    "Rpp/graph_small": "receiver",
    "SrsLifetime/graph_small": "wire",
    "Stability/graph_small": "stream",
    "Subscription/graph_small": "ses",
    "WorkSharing/graph_small": "work",
}
"""For each model a graph, and a variable that its abstraction is made to drop."""


def forget(patch: pytest.MonkeyPatch, name: str) -> None:
    """Drop the variable from the abstraction."""
    world = equal.world_module(name.partition("/")[0])
    kind = next(one for key, one in vars(world).items() if key.endswith("World"))
    real = kind.abstract

    def abstract(self: Any) -> Mapping[str, Value]:
        return {variable: value for variable, value in real(self).items() if variable != FORGOTTEN[name]}

    patch.setattr(kind, "abstract", abstract)


def test_every_model_has_one() -> None:
    assert {name.partition("/")[0] for name in FORGOTTEN} == {name.partition("/")[0] for name in KNOWN}


@pytest.mark.parametrize("name", FORGOTTEN)
def test_an_abstraction_that_forgets_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch, name)
    (one,) = catalog.configurations(MODELS, (name,))
    with pytest.raises(ForgetfulError, match="the abstraction drops a fact that matters"):
        equal.core_graph(one, twins=equal.TWINS)


def test_the_gate_looks_at_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a kept graph, which would show the missing variable at once. Without twins only the digests differ."""
    name = "ResolutionPhases/graph_small"
    (one,) = catalog.configurations(MODELS, (name,))
    forget(monkeypatch, name)
    monkeypatch.setattr(equal, "kept_path", lambda configuration: Path("nowhere"))
    assert equal.compare(one, KNOWN[name], twins=0).difference == "the digests differ"
    result = equal.compare(one, KNOWN[name])
    assert not result.equal
    assert str(result.difference).startswith("two worlds have equal variables and differ in ")


def test_twins_of_a_large_graph_are_one_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def core_graph(configuration: Any, twins: int, model: Any) -> None:
        asked.append(twins)
        raise ForgetfulError("enough")

    monkeypatch.setattr(equal, "core_graph", core_graph)
    for one in catalog.configurations(MODELS, ("Recovery",)):
        if one.has_graph:
            assert not equal.compare(one, KNOWN[one.name]).equal
    assert set(asked) == {equal.TWINS, equal.SMALL_NODES}
