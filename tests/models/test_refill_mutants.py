"""Faults of the core that the model of refill must show: another graph than the recorded one."""

import pytest

from stablecast.core.store.gap_filling import GapFilling
from stablecast.core.store.refill import SourceRefill
from stablecast.core.store.refill_service import RefillService
from stablecast.core.store.registry import Registry
from stablecast.core.store.repository import Repository
from stablecast.core.store.retransmission import RetransmissionService
from tests.models.planted import Patch, changed, is_seen, nothing

TRIED = ("Refill/graph_small", "Refill/graph_wiped", "Refill/graph_lives")
"""In this order, until one differs."""

MUTANTS: dict[str, Patch] = {
    "older lives are not missed": changed(Repository, "lack_history", nothing),
    "losses are not missed": changed(Repository, "lack_losses", nothing),
    "nothing is missed after a restart": changed(Registry, "refill_recovered", nothing),
    "peers are not learnt": changed(SourceRefill, "on_peers", nothing),
    "nobody is asked": changed(RefillService, "run", nothing),
    "answers of older lives are dropped": changed(Repository, "_refill", lambda *words: False),
    "no life owns a number": changed(SourceRefill, "owned", lambda *words: []),
    "what came back stays lacking": changed(SourceRefill, "got", nothing),
    "stores are not answered": changed(RetransmissionService, "on_request", nothing),
    "the stores of the source are not kept": changed(Registry, "_learn_stores", lambda *words: False),
    "a store without memory has one": changed(Registry, "mark", lambda self, client, *words: client),
    "no store gets its vote back": changed(Registry, "_vouch", nothing),
    "nothing is given up": changed(GapFilling, "lose", nothing),
    "nothing lies below the newest": changed(Repository, "first_own", property(lambda self: self.newest)),
    "a slice is empty": changed(SourceRefill, "_next_slice", nothing),
}

LARGE = {"nothing is missed after a restart", "older lives are not missed", "no store gets its vote back"}
"""Do not show on the smallest graph."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.thorough] * (n in LARGE)) for n in MUTANTS])
def test_a_fault_of_refill_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_seen(MUTANTS[name], monkeypatch, *TRIED)
