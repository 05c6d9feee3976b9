"""C1 and P2: copies of messages are released only when nobody needs them any more.

C1: a source releases messages that are stable by the acknowledgements that arrived, and confirmed by as many receivers
as it asks for, unless a limit forces them out and it reports that. If stores keep no messages, nothing is judged.

P2: a store that receivers pace reclaims only messages that each blocking receiver has consumed. The store itself writes
down its receivers and their progress (`PersistClient`) before it acts on them.
"""

from collections import defaultdict

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.serial import MODULUS
from stablecast.core.protocol.effects import Client, Forget, PersistClient, Reclaim, Release
from stablecast.core.protocol.events import Reclaimed, RegistrationComplete
from stablecast.core.protocol.inputs import Sent
from stablecast.core.protocol.messages import FROM_THE_START, ConsumptionAck, Pace, Registered, Role
from stablecast.core.source import SourceEndpoint
from stablecast.core.source.confirmations import MAX_RECEIVERS
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace.quorums import Acknowledged, extended
from stablecast.evidence.trace.rule_protocol import RuleHandlers


@attrs.define
class Confirmed:
    """The confirmations of receivers; `levels[n]` has the numbers that more than n of them confirmed.

    A receiver is known by its session id, which is the same at all stores, or else by its RegID there (P-329).
    """

    levels: list[RangeSet]
    near: int
    receivers: dict[tuple[int, int], RangeSet] = attrs.field(factory=lambda: defaultdict(RangeSet))

    @classmethod
    def begin(cls, source: SourceEndpoint) -> "Confirmed":
        return cls(list(source.status.confirmed), source.next_number)

    def on_acked(self, ack: ConsumptionAck) -> None:
        """Count the numbers that this receiver had not confirmed before."""
        if not self.levels:
            return
        last = extended(ack.number, self.near)
        first = -1 if ack.first == FROM_THE_START else last - (ack.number - ack.first) % MODULUS
        self.near = max(self.near, last)
        receiver = (ack.session_id, 0 if ack.session_id else ack.receiver_reg_id)
        if receiver not in self.receivers and len(self.receivers) >= MAX_RECEIVERS:
            return  # A source counts no more of them, either.
        rising = self.receivers[receiver].add(first, last + 1)
        for level in self.levels:
            before = [part for low, high in rising for part in level.within(low, high)]
            level.update(rising)
            rising = before

    def lacking(self, first: int, stop: int) -> list[tuple[int, int]]:
        """Return the parts of [first, stop) that too few receivers have confirmed."""
        return self.levels[-1].missing(first, stop) if self.levels else []


@attrs.define
class RetainedUntilStable:
    """Rule C1; `stores` are those of S1, which counts acknowledgements.

    `trail` is the oldest number whose copy is kept, once this life `sent` something; `forced` had to go.
    """

    stores: Acknowledged
    judges: bool
    trail: int
    sent: bool
    confirmed: Confirmed
    forced: RangeSet = attrs.field(factory=RangeSet)
    name: str = "C1"

    def handlers(self) -> RuleHandlers:
        return {Sent: self._on_sent, Registered: self._on_registered, ConsumptionAck: self.confirmed.on_acked}, {
            RegistrationComplete: self._on_complete,
            Reclaimed: self._on_reclaimed,
            Release: self._on_release,
        }

    @classmethod
    def begin(cls, source: SourceEndpoint, stores: Acknowledged) -> "RetainedUntilStable":
        judges, confirmed = bool(source.config.stores) and not source.status.unruled, Confirmed.begin(source)
        return cls(stores, judges, source.oldest_number, source.next_number > 0, confirmed)

    def _on_sent(self, _: Sent) -> None:
        self.sent = True

    def _on_registered(self, answer: Registered) -> None:
        if answer.no_cache:
            self.judges = False

    def _on_complete(self, event: RegistrationComplete) -> None:
        self.trail = self.trail if self.sent else event.number

    def _on_reclaimed(self, event: Reclaimed) -> str | None:
        if not event.forced:
            return self._judge([(event.first, event.last + 1)])
        self.forced.add(event.first, event.last + 1)
        return None

    def _on_release(self, effect: Release) -> str | None:
        if effect.number <= self.trail:
            return None
        first, self.trail = self.trail, effect.number
        return self._judge(self.forced.missing(first, effect.number))

    def _judge(self, parts: list[tuple[int, int]]) -> str | None:
        for low, high in parts if self.judges else ():
            if (lacking := self.stores.lacking(low, high)) is not None:
                first, holders = lacking
                return f"number {first} is let go, and acknowledged by stores {holders} only"
            if missing := self.confirmed.lacking(low, high):
                return f"number {missing[0][0]} is let go, and too few receivers have confirmed it"
        return None


@attrs.define
class RetainedUntilConsumed:
    """Rule P2; `sources` are the paced ones, `receivers` the blocking ones, by RegID."""

    sources: set[int]
    receivers: dict[int, Client]
    name: str = "P2"

    def handlers(self) -> RuleHandlers:
        return {}, {PersistClient: self._on_client, Forget: self._on_forget, Reclaim: self._on_reclaim}

    @classmethod
    def begin(cls, store: StoreEndpoint) -> "RetainedUntilConsumed":
        rule = cls(set(), {})
        for reg_id, repository in store.status.repositories.items():
            if repository.terms.paced:
                rule.sources.add(reg_id)
        for one in store.status.clients.values():
            rule._know(one.client)
        return rule

    def _know(self, client: Client) -> None:
        if client.role is Role.RECEIVER and client.pace is Pace.RECEIVERS:
            self.receivers[client.reg_id] = client
        elif client.role is Role.SOURCE and client.pace is Pace.RECEIVERS:
            self.sources.add(client.reg_id)

    def _on_client(self, effect: PersistClient) -> None:
        self._know(effect.client)

    def _on_forget(self, effect: Forget) -> None:
        self.receivers.pop(effect.reg_id, None)
        self.sources.discard(effect.reg_id)

    def _on_reclaim(self, effect: Reclaim) -> str | None:
        source_reg_id, number = effect.source_reg_id, effect.number
        for reg_id, client in self.receivers.items() if source_reg_id in self.sources else ():
            if client.source_reg_id == source_reg_id and client.acknowledged + 1 < number:
                text = f"numbers below {number} are let go, and receiver {reg_id}"
                return f"{text} has consumed up to {client.acknowledged} only"
        return None
