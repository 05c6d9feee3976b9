"""P1 of registrations: a store grants only what it has written down, for after a crash it must know whom it let send.

What the store knows when the trace begins it may grant again.
"""

from typing import ClassVar

import attrs

from stablecast.core.effects import Effect, PersistClient, Send
from stablecast.core.inputs import Input, Persisted
from stablecast.core.messages import Incarnation, Registered
from stablecast.core.store import StoreEndpoint


@attrs.define
class WrittenFirst:
    """P1. `waiting` is what waits for its ticket: (ticket, RegID, life); `written` has the life of each RegID."""

    written: dict[int, Incarnation]
    waiting: list[tuple[int, int, Incarnation]] = attrs.field(factory=list)
    name: str = "P1"
    watches: ClassVar[tuple[type, ...]] = (Persisted, PersistClient, Send)

    @classmethod
    def begin(cls, store: StoreEndpoint) -> "WrittenFirst":
        """From here on."""
        return cls({reg_id: record.client.incarnation for reg_id, record in store.clients.records.items()})

    def on_input(self, event: Input) -> str | None:
        """Learns what has reached the disk."""
        if isinstance(event, Persisted):
            self.written |= {reg_id: life for ticket, reg_id, life in self.waiting if ticket <= event.ticket}
            self.waiting = [one for one in self.waiting if one[0] > event.ticket]
        return None

    def on_effect(self, effect: Effect) -> str | None:
        """Judges grants."""
        match effect:
            case PersistClient(client=client):
                self.waiting.append((effect.ticket, client.reg_id, client.incarnation))
            case Send(message=Registered() as granted) if self.written.get(granted.reg_id) != granted.incarnation:
                life = f"life {granted.incarnation:#x}"
                return f"RegID {granted.reg_id} is granted to {life}, which is not written down"
        return None
