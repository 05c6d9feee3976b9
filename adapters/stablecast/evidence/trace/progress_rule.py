"""L2: a source that waits goes on.

A source waits for its transport (`Held`: the rate limit of LBT-RM or LBT-RU is reached) or for credit (`Blocked`).
Three things must not happen, however long the trace is:

* the transport never lets the source go on;
* no credit comes back although enough stores acknowledged everything that was sent;
* no store acknowledges anything although enough of them answer all the time.

Only time in which the endpoint ran counts. Records of a stopped or starved process are far apart; at most `STEP_NS` of
such a gap counts. So a trace that ends soon after is no violation. These excuse a source: stores that are away, that
refuse a message, or that receivers pace, and confirmations that it waits for. A receiver over TCP may hold its source
for any time, because an option asks for that (transport_tcp_multiple_receiver_behavior).
"""

from typing import Final

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.events import RegistrationComplete, Wakeup
from stablecast.core.protocol.inputs import Blocked, Held, Sent
from stablecast.core.protocol.messages import Keepalive, Pace, StableAck
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace.flight_rule import FlightKept
from stablecast.evidence.trace.quorums import Acknowledged
from stablecast.evidence.trace.rule_protocol import RuleHandlers
from stablecast.runtime.source_strings import is_source_string

STEP_NS: Final = 2 * SECOND
"""Counted part of the time between two records, at most: a running machine is woken more often."""

HELD_NS: Final = 30 * SECOND
"""Time in which a transport lets a source go on; messages that wait for it take more."""

SLOWEST: Final = 1000
"""Bytes per second: a transport may hold a source longer by the time of its unstable bytes at this rate."""

CREDIT_NS: Final = 10 * SECOND
"""Time in which credit follows the last acknowledgement that was missing; a machine returns it at once."""

SILENCE_NS: Final = 5 * SECOND
"""A store that sent nothing for this time is away, and its debts are no violation."""

ROUNDS: Final = 3
"""Number of times that a message is sent again before an answering store must have acknowledged it."""

LEAST_NS: Final = 60 * SECOND
"""Least time for these rounds, ns."""

_NEVER: Final = 1 << 62


@attrs.define
class SourceWait:
    """A wait of a source: the record at which it began, and the running time then."""

    record: int
    ran: int


@attrs.define
class GoesOn:
    """Rule L2; `ran` is the running time of the endpoint, `due` the running time of the next judgement.

    `heard` has for each store the beginning of its unbroken answers, and the last one. `open` is sent and neither
    stable nor given up. `written` counts the payload since the transport last had room for everything.
    """

    stores: Acknowledged
    patience_ns: int
    by_rate: bool
    by_credit: bool
    by_stores: bool
    open: RangeSet
    written: int = 0
    now: int | None = None
    ran: int = 0
    due: int = _NEVER
    record: int = 0
    held: SourceWait | None = None
    blocked: SourceWait | None = None
    acked: int = 0
    heard: dict[int, tuple[int, int]] = attrs.field(factory=dict)
    name: str = "L2"

    def handlers(self) -> RuleHandlers:
        return {
            Held: self._on_held,
            Blocked: self._on_blocked,
            StableAck: self._on_ack,
            Keepalive: self._on_keepalive,
            **({Sent: self._on_sent} if self.by_rate else {}),
        }, {Wakeup: self._on_wakeup, RegistrationComplete: self._on_complete}

    @classmethod
    def begin(cls, source: SourceEndpoint, stores: Acknowledged, flight: FlightKept | None) -> "GoesOn":
        """Start with the state of this source.

        `stores` are those of S1, which counts acknowledgements; `flight` is F1, which counts messages in flight of a
        source that blocks.
        """
        config = source.config
        unconfirmed = config.confirmations or config.retention.unique_confirmations > 0
        rule = cls(
            stores,
            max(LEAST_NS, ROUNDS * config.stability_timeout_ns),
            is_source_string(config.transport),
            flight is not None and not unconfirmed,
            config.pace is not Pace.RECEIVERS and config.stability_timeout_ns > 0,
            RangeSet() if flight is None else flight.open,
        )
        if source.status.blocked:
            rule._on_blocked(None)
        return rule

    def at(self, record: int, now: int) -> str | None:
        """Take the time of the next record; return the sentence about a stuck source, or None."""
        step = 0 if self.now is None else now - self.now
        self.now, self.record = now, record
        self.ran += min(STEP_NS, step)
        return None if self.ran < self.due else self._judge()

    def _judge(self) -> str | None:
        self.due = _NEVER
        if self.held is not None:
            limit = self.held.ran + HELD_NS + self.written * SECOND // SLOWEST
            if self.ran >= limit:
                held, self.held = self.held, None
                return self._text(held, "its transport, which takes nothing and lets nothing go")
            self.due = limit
        if self.blocked is not None and self.by_credit:
            since = max(self.blocked.ran, self.acked)
            on = self._owed(since)
            if on is not None:
                blocked, self.blocked = self.blocked, None
                return self._text(blocked, on)
            self.due = min(self.due, self.ran + SECOND)
        return None

    def _owed(self, since: int) -> str | None:
        """Return what a source is stuck on, if it is, when nothing was acknowledged since then."""
        if self.ran < since + CREDIT_NS:
            return None
        lacking = next((found for part in self.open.ranges if (found := self.stores.lacking(*part)) is not None), None)
        if lacking is None:
            return "credit, although enough stores acknowledged everything that it sent"
        number, holders = lacking
        if not self.by_stores or self.ran < since + self.patience_ns:
            return None
        answering = [store for store in self.heard if store not in holders and self._answers(store)]
        if not self.stores.suffice([*holders, *answering]):
            return None
        return f"message {number}, which stores {answering} do not acknowledge although they answer"

    def _answers(self, store: int) -> bool:
        since, last = self.heard[store]
        return self.ran <= last + SILENCE_NS and self.ran >= since + self.patience_ns

    def _text(self, wait: SourceWait, on: str) -> str:
        seconds = (self.ran - wait.ran) // SECOND
        return f"the source is stuck since record {wait.record}, for {seconds} s in which it ran: it waits for {on}"

    def _wake_by(self, due: int) -> None:
        self.due = min(self.due, due)

    def _on_held(self, event: Held) -> None:
        if not event.held or not self.by_rate:
            self.held, self.written = None, 0
        elif self.held is None:
            self.held = SourceWait(self.record, self.ran)
            self._wake_by(self.ran + HELD_NS)

    def _on_blocked(self, _: Blocked | None) -> None:
        if self.blocked is None:
            self.blocked = SourceWait(self.record, self.ran)
            self._wake_by(self.ran + CREDIT_NS)

    def _on_wakeup(self, _: Wakeup) -> None:
        self.blocked = None

    def _on_sent(self, event: Sent) -> None:
        self.written += event.payload_bytes

    def _on_complete(self, _: RegistrationComplete) -> None:
        self.acked = self.ran

    def _on_ack(self, ack: StableAck) -> None:
        if ack.nack:  # The store has no room: that is an answer, and an excuse of the source.
            self.heard.pop(ack.store_index, None)
        else:
            self.acked = self.ran
            self._on_keepalive(ack)

    def _on_keepalive(self, message: Keepalive | StableAck) -> None:
        since, last = self.heard.get(message.store_index, (self.ran, self.ran))
        self.heard[message.store_index] = (since if self.ran <= last + SILENCE_NS else self.ran, self.ran)
