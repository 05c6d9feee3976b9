"""P1 of registrations: a store grants only what it has written down, for after a crash it must know whom it let send.

What the store knows when the trace begins it may grant again.
"""

from typing import ClassVar

import attrs

from stablecast.core.effects import PersistClient
from stablecast.core.inputs import Persisted
from stablecast.core.messages import Incarnation, Registered
from stablecast.core.store import StoreEndpoint


@attrs.define
class WrittenFirst:
    """P1. `waiting` is what waits for its ticket: (ticket, RegID, life); `written` has the life of each RegID."""

    written: dict[int, Incarnation]
    waiting: list[tuple[int, int, Incarnation]] = attrs.field(factory=list)
    name: str = "P1"
    hears: ClassVar[tuple[type, ...]] = (Persisted,)
    tells: ClassVar[tuple[type, ...]] = (PersistClient, Registered)

    @classmethod
    def begin(cls, store: StoreEndpoint) -> "WrittenFirst":
        """From here on."""
        return cls({reg_id: record.client.incarnation for reg_id, record in store.clients.records.items()})

    def on_input(self, event: Persisted) -> str | None:
        """Learns what has reached the disk."""
        if self.waiting:
            self.written |= {reg_id: life for ticket, reg_id, life in self.waiting if ticket <= event.ticket}
            self.waiting = [one for one in self.waiting if one[0] > event.ticket]
        return None

    def on_effect(self, effect: PersistClient | Registered) -> str | None:
        """Judges grants."""
        if isinstance(effect, PersistClient):
            self.waiting.append((effect.ticket, effect.client.reg_id, effect.client.incarnation))
        elif self.written.get(effect.reg_id) != effect.incarnation:
            life = f"life {effect.incarnation:#x}"
            return f"RegID {effect.reg_id} is granted to {life}, which is not written down"
        return None
