"""Faults of the core that the receiver-paced model must show: another graph, or an invariant that does not hold."""

from collections.abc import Callable
from typing import Any

import pytest

from stablecast.core.store import clients, registry
from stablecast.core.store.gap_filling import Filling
from stablecast.core.store.message_window import Window
from stablecast.core.store.receiver_pacing import Paced
from stablecast.core.store.registry import Registry
from stablecast.core.store.repository import Repository
from stablecast.core.store.source_history import Lifeline
from stablecast.lab.model import catalog, equal

MODELS = catalog.folder()
KNOWN = catalog.load(MODELS)

TRIED = ("Rpp/graph_small", "Rpp/graph_delay", "Rpp/graph_lives", "Rpp/graph_two")
"""In this order, until one differs."""

Patch = Callable[[pytest.MonkeyPatch], None]


def changed(of: Any, name: str, to: Any) -> Patch:
    """A method replaced."""
    return lambda patch: patch.setattr(of, name, to)


def nothing(self: Any, *words: Any) -> None:
    """What is not done."""


MUTANTS: dict[str, Patch] = {
    "nothing is let go": changed(Paced, "floor", lambda self, stop: 0),
    "everything is let go": changed(Paced, "floor", lambda self, stop: stop),
    "who blocks is passed over": changed(Paced, "required_floor", lambda self, stop: stop),
    "the patient block": changed(Paced, "required_floor", lambda self, stop: self.floor(stop)),
    "acknowledged whatever the room": changed(Paced, "has_room", lambda *words: True),
    "never acknowledged while anything is kept": changed(
        Paced, "has_room", lambda self, terms, free, messages: not messages
    ),
    "acknowledgements are not looked at again": changed(Repository, "_acknowledge", nothing),
    "what is consumed is not acknowledged": changed(Repository, "_acknowledge_again", nothing),
    "what is refused is not asked for again": changed(Repository, "_learn", nothing),
    "nobody pauses": changed(Filling, "pause", nothing),
    "receivers that come do not count": changed(Registry, "on_receivers", nothing),
    "a late receiver is offered everything": changed(registry, "first_number", lambda *words: 0),
    "delayed writes are never made": changed(Window, "write_delayed", nothing),
    "everybody finds room": changed(Window, "admits", lambda *words: True),
    "nobody finds room": changed(Window, "admits", lambda *words: False),
    "what goes stays on disk": changed(Window, "_drop_delayed", nothing),
    "a life begins unheard": changed(Lifeline, "begin", lambda self, incarnation: False),
    "acknowledged numbers are not cut back": changed(clients.Clients, "cut_back", lambda *words: False),
}


LARGE = {
    "the patient block",
    "acknowledged numbers are not cut back",
    "nobody pauses",
    "a life begins unheard",
    "everybody finds room",
}
"""Do not show on the smallest graph."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.thorough] * (n in LARGE)) for n in MUTANTS])
def test_a_fault_of_receiver_pacing_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """P-566, P-572, P-578, P-585, T17, T18, T19; formal design, 7.8."""
    MUTANTS[name](monkeypatch)
    tried = (one for graph in TRIED for one in catalog.configurations(MODELS, (graph,)))
    assert any(not equal.compare(one, KNOWN[one.name], twins=0).equal for one in tried)
