"""L1: a source that waits goes on.

A source waits for its transport (`Held`: the rate limit of LBT-RM or LBT-RU is reached) or for credit (`Blocked`).
Three things must not happen, however long the trace is:

* the transport never lets the source go on;
* no credit comes back although enough stores acknowledged everything that was sent;
* no store acknowledges anything although enough of them answer all the time.

Only time in which the endpoint ran counts. Records of a process that was stopped, or starved, are far apart; of such a
gap no more than `STEP_NS` is counted. So a trace that ends soon after is no violation. A source is excused by stores
that are away, that refuse a message, or that receivers pace, and by confirmations that it waits for. A receiver over
TCP may hold its source for as long as it likes, because that is asked for (transport_tcp_multiple_receiver_behavior).
"""

from collections.abc import Mapping
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
from stablecast.evidence.trace.rule_protocol import Ask
from stablecast.runtime.source_strings import is_source_string

NAME: Final = "L1"

STEP_NS: Final = 2 * SECOND
"""So much of the time between two records counts at most: a machine that runs is woken more often."""

HELD_NS: Final = 30 * SECOND
"""A transport lets a source go on within so long, and what waits for it to leave takes more."""

SLOWEST: Final = 1000
"""Bytes per second: a transport may hold a source as much longer as what is not stable yet takes at this rate."""

CREDIT_NS: Final = 10 * SECOND
"""Credit comes within so long after the last acknowledgement that was missing; a machine returns it at once."""

SILENCE_NS: Final = 5 * SECOND
"""A store that was not heard for so long is away, and what it owes is no fault of anybody."""

ROUNDS: Final = 3
"""A message is sent again so many times before a store that answers must have acknowledged it,"""

LEAST_NS: Final = 60 * SECOND
"""and so long it may take in any case."""

_NEVER: Final = 1 << 62


@attrs.define
class Wait:
    """What a source waits for: since which record, and since when by the time that it ran."""

    record: int
    ran: int


@attrs.define
class GoesOn:
    """L1. `ran` is the time that the endpoint ran; `due` when there is something to judge, by that clock.

    `heard` has of each store since when it answers without a break, and when it was heard last. `open` is what was sent
    and is neither stable nor given up. `written` counts the payload since the transport took everything last.
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
    held: Wait | None = None
    blocked: Wait | None = None
    acked: int = 0
    heard: dict[int, tuple[int, int]] = attrs.field(factory=dict)
    name: str = NAME

    @property
    def hears(self) -> Mapping[type, Ask]:
        """What the source waits for, and what stores say."""
        return {
            Held: self._on_held,
            Blocked: self._on_blocked,
            StableAck: self._on_ack,
            Keepalive: self._on_keepalive,
            **({Sent: self._on_sent} if self.by_rate else {}),
        }

    @property
    def tells(self) -> Mapping[type, Ask]:
        """What ends a wait."""
        return {Wakeup: self._on_wakeup, RegistrationComplete: self._on_complete}

    @classmethod
    def begin(cls, source: SourceEndpoint, stores: Acknowledged, flight: FlightKept | None) -> "GoesOn":
        """From here on.

        `stores` are those of S1, which counts what they acknowledge; `flight` is F1, which counts what is in flight,
        of a source that blocks.
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
        """The next record: returns what is stuck."""
        step = 0 if self.now is None else now - self.now
        self.now, self.record = now, record
        self.ran += min(STEP_NS, step)
        return None if self.ran < self.due else self._judge()

    def _judge(self) -> str | None:
        """Something has lasted long: is it too long?"""
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
        """On what the source is stuck, if it is, when nothing was acknowledged since then."""
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
        """Whether a store answered all the time."""
        since, last = self.heard[store]
        return self.ran <= last + SILENCE_NS and self.ran >= since + self.patience_ns

    def _text(self, wait: Wait, on: str) -> str:
        seconds = (self.ran - wait.ran) // SECOND
        return f"the source is stuck since record {wait.record}, for {seconds} s in which it ran: it waits for {on}"

    def _wake_by(self, due: int) -> None:
        self.due = min(self.due, due)

    def _on_held(self, event: Held) -> str | None:
        if not event.held or not self.by_rate:
            self.held, self.written = None, 0
        elif self.held is None:
            self.held = Wait(self.record, self.ran)
            self._wake_by(self.ran + HELD_NS)
        return None

    def _on_blocked(self, _: Blocked | None) -> str | None:
        if self.blocked is None:
            self.blocked = Wait(self.record, self.ran)
            self._wake_by(self.ran + CREDIT_NS)
        return None

    def _on_wakeup(self, _: Wakeup) -> str | None:
        self.blocked = None
        return None

    def _on_sent(self, event: Sent) -> str | None:
        self.written += event.payload_bytes
        return None

    def _on_complete(self, _: RegistrationComplete) -> str | None:
        self.acked = self.ran
        return None

    def _on_ack(self, ack: StableAck) -> str | None:
        if ack.nack:
            self.heard.pop(ack.store_index, None)  # It says that it has no room: that is an answer, and an excuse.
            return None
        self.acked = self.ran
        return self._on_keepalive(ack)

    def _on_keepalive(self, message: Keepalive | StableAck) -> str | None:
        since, last = self.heard.get(message.store_index, (self.ran, self.ran))
        self.heard[message.store_index] = (since if self.ran <= last + SILENCE_NS else self.ran, self.ran)
        return None
