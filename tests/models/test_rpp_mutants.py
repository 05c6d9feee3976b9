"""Faults of the core that the receiver-paced model must show: another graph, or an invariant that does not hold."""

import pytest

from stablecast.core.store import clients, registry
from stablecast.core.store.gap_filling import GapFilling
from stablecast.core.store.message_window import MessageWindow
from stablecast.core.store.receiver_pacing import ReceiverPacing
from stablecast.core.store.registry import Registry
from stablecast.core.store.repository import Repository
from stablecast.core.store.source_history import SourceHistory
from tests.models.planted import Patch, changed, is_seen, nothing

TRIED = ("Rpp/graph_small", "Rpp/graph_delay", "Rpp/graph_lives", "Rpp/graph_two")
"""In this order, until one differs."""

MUTANTS: dict[str, Patch] = {
    "nothing is let go": changed(ReceiverPacing, "floor", lambda self, stop: 0),
    "everything is let go": changed(ReceiverPacing, "floor", lambda self, stop: stop),
    "who blocks is passed over": changed(ReceiverPacing, "required_floor", lambda self, stop: stop),
    "the patient block": changed(ReceiverPacing, "required_floor", lambda self, stop: self.floor(stop)),
    "acknowledged whatever the room": changed(ReceiverPacing, "has_room", lambda *words: True),
    "never acknowledged while anything is kept": changed(
        ReceiverPacing, "has_room", lambda self, terms, free, messages: not messages
    ),
    "acknowledgements are not looked at again": changed(Repository, "_acknowledge", nothing),
    "what is consumed is not acknowledged": changed(Repository, "_acknowledge_again", nothing),
    "what is refused is not asked for again": changed(Repository, "_learn", nothing),
    "nobody pauses": changed(GapFilling, "pause", nothing),
    "receivers that come do not count": changed(Registry, "on_receivers", nothing),
    "a late receiver is offered everything": changed(registry, "first_number", lambda *words: 0),
    "delayed writes are never made": changed(MessageWindow, "write_delayed", nothing),
    "everybody finds room": changed(MessageWindow, "admits", lambda *words: True),
    "nobody finds room": changed(MessageWindow, "admits", lambda *words: False),
    "what goes stays on disk": changed(MessageWindow, "_drop_delayed", nothing),
    "a life begins unheard": changed(SourceHistory, "begin", lambda self, incarnation: False),
    "acknowledged numbers are not cut back": changed(clients.ClientTable, "cut_back", lambda *words: False),
}


LARGE = {
    "the patient block",
    "acknowledged numbers are not cut back",
    "nobody pauses",
    "a life begins unheard",
    "everybody finds room",
}
"""Do not show on the smallest graph."""


@pytest.mark.rows("P-566", "P-572", "P-578", "P-585")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.thorough] * (n in LARGE)) for n in MUTANTS])
def test_a_fault_of_receiver_pacing_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """P-566, P-572, P-578, P-585, T17, T18, T19; formal design, 7.8."""
    assert is_seen(MUTANTS[name], monkeypatch, *TRIED)
