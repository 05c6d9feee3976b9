"""C1 and P2: who keeps messages for others lets go of them only when they are not needed any more.

C1: a source reclaims what is stable by the acknowledgements that came, unless a limit forces it out and it says so.
With stores that keep no messages there is nothing to wait for, and nothing is judged.

P2: a store that receivers pace reclaims only what each receiver that blocks has consumed; who they are and how far they
are, the store itself writes down (`PersistClient`) before it acts on it.
"""

from typing import ClassVar

import attrs

from stablecast.core.effects import Client, Effect, Forget, Notify, PersistClient, Reclaim
from stablecast.core.events import Reclaimed
from stablecast.core.inputs import Arrived, Input
from stablecast.core.messages import Pace, Registered, Role
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.trace.quorums import Acknowledged


@attrs.define
class RetainedUntilStable:
    """C1. `stores` are those of S1, which counts what they acknowledge."""

    stores: Acknowledged
    judges: bool
    name: str = "C1"
    watches: ClassVar[tuple[type, ...]] = (Arrived, Notify)

    @classmethod
    def begin(cls, source: SourceEndpoint, stores: Acknowledged) -> "RetainedUntilStable":
        """From here on."""
        return cls(stores, bool(source.config.stores) and not source.window.unruled)

    def on_input(self, event: Input) -> str | None:
        """Learns of stores that keep nothing."""
        match event:
            case Arrived(Registered(no_cache=True)):
                self.judges = False
        return None

    def on_effect(self, effect: Effect) -> str | None:
        """Judges what is let go."""
        match effect:
            case Notify(Reclaimed(forced=False) as gone) if self.judges:
                for first, holders in self.stores.pieces(gone.first, gone.last + 1):
                    if not self.stores.suffice(holders):
                        return f"number {first} is let go, and acknowledged by stores {holders} only"
        return None


@attrs.define
class RetainedUntilConsumed:
    """P2. `sources` are those whose receivers pace them, `receivers` who blocks, by RegID."""

    sources: set[int]
    receivers: dict[int, Client]
    name: str = "P2"
    watches: ClassVar[tuple[type, ...]] = (PersistClient, Forget, Reclaim)

    @classmethod
    def begin(cls, store: StoreEndpoint) -> "RetainedUntilConsumed":
        """From here on."""
        rule = cls(set(), {})
        for reg_id, repository in store.repositories.items():
            if repository.terms.paced:
                rule.sources.add(reg_id)
        for record in store.clients.records.values():
            rule._know(record.client)
        return rule

    def _know(self, client: Client) -> None:
        if client.role is Role.RECEIVER and client.pace is Pace.RECEIVERS:
            self.receivers[client.reg_id] = client
        elif client.role is Role.SOURCE and client.pace is Pace.RECEIVERS:
            self.sources.add(client.reg_id)

    def on_input(self, event: Input) -> str | None:
        """Nothing: what comes in counts when the store writes it down."""
        return None

    def on_effect(self, effect: Effect) -> str | None:
        """Learns of clients, and judges what is let go."""
        match effect:
            case PersistClient(client=client):
                self._know(client)
            case Forget(reg_id=reg_id):
                self.receivers.pop(reg_id, None)
                self.sources.discard(reg_id)
            case Reclaim(source_reg_id=reg_id, number=number) if reg_id in self.sources:
                return self._judge(reg_id, number)
        return None

    def _judge(self, source_reg_id: int, number: int) -> str | None:
        for reg_id, client in self.receivers.items():
            if client.source_reg_id == source_reg_id and client.acknowledged + 1 < number:
                text = f"numbers below {number} are let go, and receiver {reg_id}"
                return f"{text} has consumed up to {client.acknowledged} only"
        return None
