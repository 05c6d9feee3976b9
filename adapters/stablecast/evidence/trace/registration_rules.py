"""Rules R2 and R6: a store grants only what it has written down, and does not move a RegID back and forth.

R2: after a crash a store must know every life that it let send. It may grant again what it knows when the trace begins.

R6: of the lives that one context makes of a source, the later one replaces the earlier one. An earlier life may hold
the RegID again when the later one was silent for too long. Then both are lives of one process, and the later one has
ended. A later life that gets the RegID back shows that it lived when it lost it.
"""

import attrs

from stablecast.core.protocol.effects import Client, Forget, PersistClient
from stablecast.core.protocol.inputs import Persisted
from stablecast.core.protocol.messages import Incarnation, Registered, Role, earlier
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace.rule_protocol import RuleHandlers


@attrs.define
class WrittenFirst:
    """Rule R2; `waiting` has (ticket, RegID, life) until the sync, `written` the life of each RegID."""

    written: dict[int, Incarnation]
    waiting: list[tuple[int, int, Incarnation]] = attrs.field(factory=list)
    name: str = "R2"

    def handlers(self) -> RuleHandlers:
        return {Persisted: self._on_persisted}, {PersistClient: self._on_written, Registered: self._on_granted}

    @classmethod
    def begin(cls, store: StoreEndpoint) -> "WrittenFirst":
        return cls({reg_id: one.client.incarnation for reg_id, one in store.status.clients.items()})

    def _on_persisted(self, event: Persisted) -> None:
        if self.waiting:
            self.written |= {reg_id: life for ticket, reg_id, life in self.waiting if ticket <= event.ticket}
            self.waiting = [one for one in self.waiting if one[0] > event.ticket]

    def _on_written(self, effect: PersistClient) -> None:
        self.waiting.append((effect.ticket, effect.client.reg_id, effect.client.incarnation))

    def _on_granted(self, grant: Registered) -> str | None:
        if self.written.get(grant.reg_id) == grant.incarnation:
            return None
        return f"RegID {grant.reg_id} is granted to life {grant.incarnation:#x}, which is not written down"


@attrs.define
class OneLifeOfContext:
    """Rule R6; `holders` has the client of each RegID, `ousted` the later life that lost it to an earlier one."""

    holders: dict[int, Client]
    ousted: dict[int, Incarnation] = attrs.field(factory=dict)
    name: str = "R6"

    def handlers(self) -> RuleHandlers:
        return {}, {PersistClient: self._on_written, Forget: self._on_forgotten}

    @classmethod
    def begin(cls, store: StoreEndpoint) -> "OneLifeOfContext":
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

    def _on_forgotten(self, effect: Forget) -> None:
        self.holders.pop(effect.reg_id, None)
        self.ousted.pop(effect.reg_id, None)
