"""R1 within one context: a RegID does not go to and fro between two lives of a source that one process made.

Of one context's lives the later one replaces the earlier one. An earlier life may hold the RegID again when the later
one was silent for too long; but then both are lives of one process, and the later one has ended. So a later life that
takes the RegID back shows that it was taken from it while it lived.
"""

from collections.abc import Mapping

import attrs

from stablecast.core.protocol.effects import Client, Forget, PersistClient
from stablecast.core.protocol.messages import Incarnation, Role, earlier
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace.rule_protocol import Ask


@attrs.define
class OneLifeOfContext:
    """R1. `holders` has the client of each RegID, `ousted` the later life that lost it to an earlier one."""

    holders: dict[int, Client]
    ousted: dict[int, Incarnation] = attrs.field(factory=dict)
    name: str = "R1"

    @property
    def hears(self) -> Mapping[type, Ask]:
        """Nothing: what the store writes down says it all."""
        return {}

    @property
    def tells(self) -> Mapping[type, Ask]:
        """Who holds a RegID, and who is forgotten."""
        return {PersistClient: self._on_written, Forget: self._on_forgotten}

    @classmethod
    def begin(cls, store: StoreEndpoint) -> "OneLifeOfContext":
        """From here on."""
        return cls(
            {reg_id: one.client for reg_id, one in store.status.clients.items() if one.client.role is Role.SOURCE}
        )

    def _on_written(self, effect: PersistClient) -> str | None:
        client = effect.client
        if client.role is not Role.SOURCE:
            return None
        before = self.holders.get(client.reg_id)
        self.holders[client.reg_id] = client
        if before is None or before.incarnation == client.incarnation:
            return None
        ousted = self.ousted.pop(client.reg_id, None)
        if not client.context or client.context != before.context:
            return None
        if earlier(client.incarnation, before.incarnation):
            self.ousted[client.reg_id] = before.incarnation
        elif ousted == client.incarnation:
            lives = f"{before.incarnation:#x} and {client.incarnation:#x}"
            return f"RegID {client.reg_id} goes to and fro between lives {lives} of one context"
        return None

    def _on_forgotten(self, effect: Forget) -> str | None:
        self.holders.pop(effect.reg_id, None)
        self.ousted.pop(effect.reg_id, None)
        return None
