"""A fault in the core shows as another graph, or as an invariant that does not hold."""

from typing import Any

import attrs
import pytest

from stablecast.core.registration import store_registration
from stablecast.core.registration.store_registration import Registration, RegistrationTimer
from stablecast.core.store import client_lifetime, clients, registry, sync_tickets
from stablecast.core.store import endpoint as store
from stablecast.core.store.proxy_election import Election
from tests.models.planted import Patch, after, before, changed, is_seen, nothing


def no_generation(self: Registration) -> None:
    self.request = attrs.evolve(self.request, generation=0)


def _always_backed(self: Election) -> None:
    self.backed = self.quorum


def _forget_holder(self: Election) -> None:
    self.holder = None


def _same_life(client: Any, request: Any) -> bool:
    return bool(client.incarnation == request.incarnation)


MUTANTS: dict[str, Patch] = {
    "the lease has no margin": changed(store_registration, "_lease_end", lambda grant, sent: sent + 8_000_000),
    "the lease is too short": changed(store_registration, "_lease_end", lambda grant, sent: sent),
    "generations do not differ": after(Registration, "ask", no_generation),
    "no lease after a probe": changed(Registration, "_lease_from", lambda self, at: None),
    "a grant does not stop the retries": after(
        Registration, "grant", lambda self: self.timers.set(RegistrationTimer.RETRY, self.asked_at + 7_000_000)
    ),
    "a store that asks is not heard": changed(Registration, "on_traffic", lambda self, now: None),
    "a broken connection is not noticed": changed(Registration, "renew", lambda self, now, out: None),
    "a refused connection is not noticed": changed(Registration, "on_gone", lambda self, now, out: None),
    "a refusal ends in nothing": changed(Registration, "on_refused", lambda self, answer, now, out: None),
    "a refusal does not repeat the request": changed(
        Registration, "report_refusal", lambda self, now, out, reason: None
    ),
    "probes are not sent": changed(Registration, "_probe", lambda self, now, out: None),
    "a store's question renews the lease": changed(Registration, "on_traffic", Registration.on_keepalive),
    "the store gives away what is held": changed(clients, "_follows", lambda client, request: True),
    "the store refuses the holder himself": changed(clients, "_follows", lambda client, request: False),
    "lives of one context take turns": changed(clients, "earlier", lambda one, other: False),
    "an earlier life of a context keeps the RegID": changed(clients, "earlier", lambda one, other: True),
    "a later life of a context is a stranger": changed(clients, "_follows", _same_life),
    "silence does not count anew": changed(client_lifetime.Lifetime, "note", lambda self, now: None),
    "a dead client stays active": changed(client_lifetime.Lifetime, "on_gone", lambda self, now: None),
    "who is inactive stays so": changed(clients.ClientTable, "on_heard", lambda self, record, now: None),
    "a restart forgets": changed(store.StoreEndpoint, "recover", lambda self, *words, **more: None),
    "grants do not wait for the disk": before(sync_tickets.SyncTickets, "due", lambda self, *_: self.waiting.clear()),
    "the store does not ask the holder": changed(registry.Registry, "probe", lambda self, client, out: None),
}


_told = Election.on_quorum


def _only_gains(self: Election, token: Any, held: bool, *words: Any) -> None:
    if held:
        _told(self, token, held, *words)


ELECTION_MUTANTS: dict[str, Patch] = {
    "a proxy takes what an active source holds": changed(Election, "repaired", property(lambda self: False, nothing)),
    "a higher token wins": changed(Election, "_beats", lambda self, token, other: token.rank > other.rank),
    "every token wins": changed(Election, "_beats", lambda self, token, other: True),
    "ended proxies are forgotten": changed(Election, "_has_ended", lambda self, token: False),
    "lives are not told apart": changed(Election, "_succeed", lambda self, life: None),
    "who gives way goes on": changed(Election, "stop", lambda self, *words: None),
    "who follows forgets whom": after(Election, "follow", _forget_holder),
    "a quorum is not waited for": after(Election, "stand", _always_backed),
    "a quorum that is lost does not matter": changed(Election, "on_quorum", _only_gains),
    "a proxy that is over goes on": changed(Election, "on_over", lambda self, *words: None),
    "silence is not noticed": changed(Election, "check", lambda self, record, now, out: False),
    "the returning source is not noticed": changed(Election, "settle", lambda self, *words: None),
}

SEEN_IN = {
    "lives of one context take turns": "graph_context",
    "an earlier life of a context keeps the RegID": "graph_context",
    "a later life of a context is a stranger": "graph_context",
    "a quorum is not waited for": "graph_quorum",
    "a quorum that is lost does not matter": "graph_quorum",
    "a refusal ends in nothing": "graph_lag",
    "a refusal does not repeat the request": "graph_lag",
    "a store's question renews the lease": "graph_two",
    "lives are not told apart": "graph_two",
}
"""The graphs that show a fault which the smallest graph does not show."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_seen(MUTANTS[name], monkeypatch, f"Registration/{SEEN_IN.get(name, 'graph_small')}")


@pytest.mark.rows("P-541", "P-554")
@pytest.mark.parametrize("name", ELECTION_MUTANTS)
def test_a_fault_of_the_election_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T23."""
    assert is_seen(ELECTION_MUTANTS[name], monkeypatch, f"ProxyElection/{SEEN_IN.get(name, 'graph_suspect')}")
