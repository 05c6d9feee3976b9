"""P1 of registrations: a store grants only what it has written down, for after a crash it must know whom it let send.

What the store knows when the trace begins it may grant again.
"""

from collections.abc import Mapping

import attrs

from stablecast.core.protocol.effects import PersistClient
from stablecast.core.protocol.inputs import Persisted
from stablecast.core.protocol.messages import Incarnation, Registered
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace.rule_protocol import Ask


@attrs.define
class WrittenFirst:
    """P1. `waiting` is what waits for its ticket: (ticket, RegID, life); `written` has the life of each RegID."""

    written: dict[int, Incarnation]
    waiting: list[tuple[int, int, Incarnation]] = attrs.field(factory=list)
    name: str = "P1"

    @property
    def hears(self) -> Mapping[type, Ask]:
        """What has reached the disk."""
        return {Persisted: self._on_persisted}

    @property
    def tells(self) -> Mapping[type, Ask]:
        """What is written, and grants."""
        return {PersistClient: self._on_written, Registered: self._on_granted}

    @classmethod
    def begin(cls, store: StoreEndpoint) -> "WrittenFirst":
        """From here on."""
        return cls({reg_id: one.client.incarnation for reg_id, one in store.status.clients.items()})

    def _on_persisted(self, event: Persisted) -> str | None:
        if self.waiting:
            self.written |= {reg_id: life for ticket, reg_id, life in self.waiting if ticket <= event.ticket}
            self.waiting = [one for one in self.waiting if one[0] > event.ticket]
        return None

    def _on_written(self, effect: PersistClient) -> str | None:
        self.waiting.append((effect.ticket, effect.client.reg_id, effect.client.incarnation))
        return None

    def _on_granted(self, grant: Registered) -> str | None:
        if self.written.get(grant.reg_id) == grant.incarnation:
            return None
        return f"RegID {grant.reg_id} is granted to life {grant.incarnation:#x}, which is not written down"
