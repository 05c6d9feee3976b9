"""Faults of the core that the model of returning receivers must show: another graph than the recorded one."""

from typing import Any

import pytest

from stablecast.core.protocol.quorum import Quorums
from stablecast.core.receiver.arrival import FirstNumberChoice
from stablecast.core.receiver.consumption_acks import Acknowledger
from stablecast.core.receiver.store_registrations import StoreRegistrations
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.registration.store_registration import Registration
from stablecast.core.store import grants, registry
from tests.models.planted import Patch, changed, is_seen, nothing

TRIED = ("ReceiverVotes/graph_small", "ReceiverVotes/graph_unmarked")
"""In this order, until one differs."""


def later(self: StoreRegistrations, now: int, out: Any) -> None:
    """Handle timeouts, and ask nobody again who has no vote."""
    self.again_at = now + 1
    _HANDLE_TIMEOUT(self, now, out)


_HANDLE_TIMEOUT = StoreRegistrations.handle_timeout

MUTANTS: dict[str, Patch] = {
    "every store has a vote": changed(RegistrationSet, "voters", property(lambda self: self.mask)),
    "a store without a vote never gets one": changed(
        Quorums, "voters", lambda self, answered, lost, *_, **__: answered & ~lost
    ),
    "stores without a vote are not asked again": changed(StoreRegistrations, "handle_timeout", later),
    "what all stores lack is passed over": changed(StoreRegistrations, "lacking", lambda *words: None),
    "nobody waits for a store that knows the receiver": changed(
        StoreRegistrations, "known", property(lambda self: True)
    ),
    "a late grant changes nothing": changed(FirstNumberChoice, "revise", nothing),
    "a store that returns hears of no acknowledgement": changed(Acknowledger, "catch_up", nothing),
    "a connection that breaks goes unnoticed": changed(Registration, "renew", nothing),
    "a store mentions nothing that it lacks": changed(grants, "first_lacking", lambda source: None),
    "a store forgets no receiver": changed(grants, "remembers", lambda source: True),
    "a new receiver begins at what is there": changed(
        registry, "first_number", lambda request, source, config: source.trail
    ),
}

ONE_KNEW = {"a store without a vote never gets one"}
"""Show only where one store alone knew the receiver, and lost its disk."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_of_a_return_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = ("ReceiverVotes/graph_twice",) if name in ONE_KNEW else TRIED
    assert is_seen(MUTANTS[name], monkeypatch, *graphs)
