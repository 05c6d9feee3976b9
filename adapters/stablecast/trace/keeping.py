"""C1 and P2: who keeps messages for others lets go of them only when they are not needed any more.

C1: a source releases what is stable by the acknowledgements that came, unless a limit forces it out and it says so.
With stores that keep no messages there is nothing to wait for, and nothing is judged.

P2: a store that receivers pace reclaims only what each receiver that blocks has consumed; who they are and how far they
are, the store itself writes down (`PersistClient`) before it acts on it.
"""

from typing import ClassVar

import attrs

from stablecast.core.effects import Client, Forget, PersistClient, Reclaim, Release
from stablecast.core.events import Reclaimed, RegistrationComplete
from stablecast.core.inputs import Sent
from stablecast.core.messages import Pace, Registered, Role
from stablecast.core.ranges import RangeSet
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.trace.quorums import Acknowledged


@attrs.define
class RetainedUntilStable:
    """C1. `stores` are those of S1, which counts what they acknowledge.

    `trail` is the oldest number whose copy is kept, once this life `sent` something; `forced` had to go.
    """

    stores: Acknowledged
    judges: bool
    trail: int
    sent: bool
    forced: RangeSet = attrs.field(factory=RangeSet)
    name: str = "C1"
    hears: ClassVar[tuple[type, ...]] = (Sent, Registered)
    tells: ClassVar[tuple[type, ...]] = (RegistrationComplete, Reclaimed, Release)

    @classmethod
    def begin(cls, source: SourceEndpoint, stores: Acknowledged) -> "RetainedUntilStable":
        """From here on."""
        window = source.window
        return cls(stores, bool(source.config.stores) and not window.unruled, window.trail, window.next > 0)

    def on_input(self, event: Sent | Registered) -> str | None:
        """Learns of stores that keep nothing."""
        if isinstance(event, Sent):
            self.sent = True
        elif event.no_cache:
            self.judges = False
        return None

    def on_effect(self, effect: RegistrationComplete | Reclaimed | Release) -> str | None:
        """Judges what is let go."""
        match effect:
            case Reclaimed():
                if not effect.forced:
                    return self._judge([(effect.first, effect.last + 1)])
                self.forced.add(effect.first, effect.last + 1)
            case Release():
                if effect.number > self.trail:
                    first, self.trail = self.trail, effect.number
                    return self._judge(self.forced.missing(first, effect.number))
            case RegistrationComplete():
                self.trail = self.trail if self.sent else effect.number
        return None

    def _judge(self, parts: list[tuple[int, int]]) -> str | None:
        for low, high in parts if self.judges else ():
            if (lacking := self.stores.lacking(low, high)) is not None:
                first, holders = lacking
                return f"number {first} is let go, and acknowledged by stores {holders} only"
        return None


@attrs.define
class RetainedUntilConsumed:
    """P2. `sources` are those whose receivers pace them, `receivers` who blocks, by RegID."""

    sources: set[int]
    receivers: dict[int, Client]
    name: str = "P2"
    hears: ClassVar[tuple[type, ...]] = ()
    tells: ClassVar[tuple[type, ...]] = (PersistClient, Forget, Reclaim)

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

    def on_input(self, _: object) -> str | None:
        """Nothing: what comes in counts when the store writes it down."""
        return None

    def on_effect(self, effect: PersistClient | Forget | Reclaim) -> str | None:
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
