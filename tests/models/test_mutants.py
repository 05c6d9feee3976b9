"""A fault in the core shows as another graph, or as an invariant that does not hold."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from stablecast.core.registration import store_registration
from stablecast.core.registration.store_registration import Registration, RegistrationTimer
from stablecast.core.store import client_lifetime, clients, registry, sync_tickets
from stablecast.core.store import endpoint as store
from stablecast.core.store.proxy_election import Election
from stablecast.lab.model import catalog, equal

MODELS = catalog.folder()
KNOWN = catalog.load(MODELS)

Patch = Callable[[pytest.MonkeyPatch], None]


def changed(name: str, to: Any, of: Any = Registration) -> Patch:
    """A method or constant replaced."""
    return lambda patch: patch.setattr(of, name, to)


def before(name: str, does: Callable[[Any], None], of: Any = Registration) -> Patch:
    """A method that does something else first."""
    real = getattr(of, name)

    def method(self: Any, *words: Any) -> Any:
        does(self)
        return real(self, *words)

    return changed(name, method, of)


def after(name: str, does: Callable[[Any], None], of: Any = Registration) -> Patch:
    """A method that does something else last."""
    real = getattr(of, name)

    def method(self: Any, *words: Any) -> Any:
        result = real(self, *words)
        does(self)
        return result

    return changed(name, method, of)


def no_generation(self: Registration) -> None:
    self.request = attrs.evolve(self.request, generation=0)


def _ignore(self: Any, value: Any) -> None:
    """A field that cannot be set."""


def _always_backed(self: Election) -> None:
    self.backed = self.quorum


def _forget_holder(self: Election) -> None:
    self.holder = None


def _same_life(client: Any, request: Any) -> bool:
    return bool(client.incarnation == request.incarnation)


MUTANTS: dict[str, Patch] = {
    "the lease has no margin": changed("_lease_end", lambda grant, sent: sent + 8_000_000, store_registration),
    "the lease is too short": changed("_lease_end", lambda grant, sent: sent, store_registration),
    "generations do not differ": after("ask", no_generation),
    "no lease after a probe": changed("_lease_from", lambda self, at: None),
    "a grant does not stop the retries": after(
        "grant", lambda self: self.timers.set(RegistrationTimer.RETRY, self.asked_at + 7_000_000)
    ),
    "a store that asks is not heard": changed("on_traffic", lambda self, now: None),
    "a broken connection is not noticed": changed("renew", lambda self, now, out: None),
    "a refused connection is not noticed": changed("on_gone", lambda self, now, out: None),
    "a refusal ends in nothing": changed("on_refused", lambda self, answer, now, out: None),
    "a refusal does not repeat the request": changed("report_refusal", lambda self, now, out, reason: None),
    "probes are not sent": changed("_probe", lambda self, now, out: None),
    "a store's question renews the lease": changed("on_traffic", Registration.on_keepalive),
    "the store gives away what is held": changed("_follows", lambda client, request: True, clients),
    "the store refuses the holder himself": changed("_follows", lambda client, request: False, clients),
    "lives of one context take turns": changed("earlier", lambda one, other: False, clients),
    "an earlier life of a context keeps the RegID": changed("earlier", lambda one, other: True, clients),
    "a later life of a context is a stranger": changed("_follows", _same_life, clients),
    "silence does not count anew": changed("note", lambda self, now: None, client_lifetime.Lifetime),
    "a dead client stays active": changed("on_gone", lambda self, now: None, client_lifetime.Lifetime),
    "who is inactive stays so": changed("on_heard", lambda self, record, now: None, clients.ClientTable),
    "a restart forgets": changed("recover", lambda self, *words, **more: None, store.StoreEndpoint),
    "grants do not wait for the disk": before("due", lambda self: self.waiting.clear(), sync_tickets.SyncTickets),
    "the store does not ask the holder": changed("probe", lambda self, client, out: None, registry.Registry),
}


_told = Election.on_quorum


def _only_gains(self: Election, token: Any, held: bool, *words: Any) -> None:
    if held:
        _told(self, token, held, *words)


ELECTION_MUTANTS: dict[str, Patch] = {
    "a proxy takes what an active source holds": changed("repaired", property(lambda self: False, _ignore), Election),
    "a higher token wins": changed("_beats", lambda self, token, other: token.rank > other.rank, Election),
    "every token wins": changed("_beats", lambda self, token, other: True, Election),
    "ended proxies are forgotten": changed("_has_ended", lambda self, token: False, Election),
    "lives are not told apart": changed("_succeed", lambda self, life: None, Election),
    "who gives way goes on": changed("stop", lambda self, *words: None, Election),
    "who follows forgets whom": after("follow", _forget_holder, Election),
    "a quorum is not waited for": after("stand", _always_backed, Election),
    "a quorum that is lost does not matter": changed("on_quorum", _only_gains, Election),
    "a proxy that is over goes on": changed("on_over", lambda self, *words: None, Election),
    "silence is not noticed": changed("check", lambda self, record, now, out: False, Election),
    "the returning source is not noticed": changed("settle", lambda self, *words: None, Election),
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
    (one,) = catalog.configurations(MODELS, (f"Registration/{SEEN_IN.get(name, 'graph_small')}",))
    MUTANTS[name](monkeypatch)
    assert not equal.compare(one, KNOWN[one.name], twins=0).equal


@pytest.mark.rows("P-541", "P-554")
@pytest.mark.parametrize("name", ELECTION_MUTANTS)
def test_a_fault_of_the_election_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T23."""
    (one,) = catalog.configurations(MODELS, (f"ProxyElection/{SEEN_IN.get(name, 'graph_suspect')}",))
    ELECTION_MUTANTS[name](monkeypatch)
    assert not equal.compare(one, KNOWN[one.name], twins=0).equal
