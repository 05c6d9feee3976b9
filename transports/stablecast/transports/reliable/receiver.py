"""A receiver's session with one source: the common part of LBT-RM and LBT-RU.

Datagrams are decoded to `packets` and handed to `SessionReception`, which returns NAKs. Each transport decodes
datagrams, encodes NAKs, and begins and ends a session in its own way, which is its chart.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar, assert_never

import attrs

from stablecast.core.machine.timers import soonest
from stablecast.transports.reliable.effects import Began, ReceiverEffect, SendDatagrams, SessionEnded
from stablecast.transports.reliable.inputs import LeaveSession, ReceiverInput, SessionDatagrams
from stablecast.transports.reliable.packets import Datagram, NakRefusal, SessionStatus, SourcePacket
from stablecast.transports.reliable.session_receiver import SessionReception
from stablecast.transports.reliable.settings import ReceiverSettings
from stablecast.transports.reliable.statistics import ReceiverStatistics
from stablecast.transports.wire.errors import WireError


class OtherDatagram(IntEnum):
    """A datagram that reports nothing about the session: of another session, not for receivers, or a reset."""

    FOREIGN = 0
    OTHER = 1
    RESET = 2


@attrs.define
class ReceiverMachine(ABC):
    """A receiver's session; a machine.

    Attributes:
        source: The address for NAKs and, with LBT-RU, all other packets: `ip:port`.
        session_id: 32 bits; 0 (LBT-RU): the session has none.
        joined_at: Start of the session (ns).
        heard_at: Arrival of the last datagram of the source (ns).
    """

    FINAL: ClassVar[IntEnum]
    """The last state of the chart."""
    source: str
    session_id: int
    seed: int
    joined_at: int
    settings: ReceiverSettings
    state: IntEnum = attrs.field(init=False)
    heard_at: int = attrs.field(init=False)
    session: SessionReception = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.heard_at = self.joined_at
        self.session = SessionReception.of(self.settings, self.seed)

    # The part of each transport.

    @abstractmethod
    def parse(self, octets: bytes) -> SourcePacket | OtherDatagram:
        """Decode a datagram. Raises WireError."""

    @abstractmethod
    def series(self, datagrams: Sequence[bytes | memoryview], number: int) -> tuple[list[bytes | memoryview], int]:
        """Return the messages of the leading datagrams that continue the session, and the trail of the last of them.

        The first of them has wire number `number`. None of them is a retransmission or has options beside the session.
        """

    @abstractmethod
    def nak(self, numbers: tuple[int, ...]) -> bytes:
        """Return the datagram that requests these wire numbers."""

    @abstractmethod
    def on_heard(self, now: int) -> None:
        """Note a sign of life of the source."""

    @abstractmethod
    def on_reset(self, now: int) -> None:
        """Handle the end of the session by the source."""

    @abstractmethod
    def on_leave(self, now: int) -> None:
        """End the session for the last receiver."""

    @abstractmethod
    def on_time(self, now: int) -> None:
        """Perform what is due besides NAKs."""

    @abstractmethod
    def next_duty(self) -> int | None:
        """Return when `on_time` is due, in nanoseconds."""

    # The common part.

    @property
    def over(self) -> bool:
        """True if the session has ended."""
        return self.state is self.FINAL

    @property
    def statistics(self) -> ReceiverStatistics:
        """The counters of the session."""
        return self.session.statistics

    def receive(self, event: ReceiverInput, now: int) -> None:
        """Feed one input. Inputs after the end are ignored."""
        match event:
            case SessionDatagrams(datagrams):
                for octets in datagrams[self._take_series(datagrams, now) :]:
                    if not self.over:
                        self._on_datagram(octets, now)
                if not self.over:
                    self._settle(now)
            case LeaveSession():
                self.on_leave(now)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Request missing datagrams, give up old ones, and end with a silent source."""
        if not self.over:
            self._settle(now)
            self.on_time(now)

    def next_timeout(self) -> int | None:
        """Return when `handle_timeout` is due, in nanoseconds."""
        if self.over:
            return None
        return soonest(self.session.next_timeout(), self.next_duty())

    def take_effects(self) -> list[ReceiverEffect]:
        """Return the effects since the last call, in order."""
        effects, self.session.out = self.session.out, []
        return effects

    def send(self, *datagrams: bytes) -> None:
        """Send datagrams to the source."""
        self.session.out.append(SendDatagrams(0, self.source, datagrams))

    # Actions of the charts.

    def report_began(self, _: int) -> None:
        """Report the first sign of life."""
        self.session.out.append(Began())

    def report_silence(self, _: int) -> None:
        """Report that the session has ended because its source is silent."""
        self.report_end("the source was silent for too long")

    def report_end(self, reason: str) -> None:
        """Report that the session has ended, with what its topics still miss."""
        self.session.end()
        self.session.out.append(SessionEnded(reason))

    def drop_all(self, _: int) -> None:
        """End the session without a report, because the application has left it."""
        self.session.end()
        self.session.out.clear()

    def _take_series(self, datagrams: tuple[bytes | memoryview, ...], now: int) -> int:
        """Handle the leading datagrams that continue the session together, the usual case, and return their number."""
        session = self.session
        expected = session.expected()
        if self.over or expected is None:
            return 0
        payloads, trail = self.series(datagrams, expected)
        if payloads:
            statistics = session.statistics
            statistics.msgs_rcved += len(payloads)
            statistics.bytes_rcved += sum(map(len, datagrams[: len(payloads)]))
            session.on_series(payloads, trail)
            self.heard_at = now
        return len(payloads)

    def _settle(self, now: int) -> None:
        naks = self.session.settle(now)
        if naks:
            self.send(*(self.nak(numbers) for numbers in naks))

    def _on_datagram(self, octets: bytes | memoryview, now: int) -> None:
        session = self.session
        # Before decoding: a lost datagram would not have been seen at all.
        if session.drops():
            return
        statistics = session.statistics
        statistics.msgs_rcved += 1
        statistics.bytes_rcved += len(octets)
        try:
            heard = self.parse(bytes(octets))
        except WireError:
            statistics.malformed(bytes(octets))
            return
        match heard:
            case Datagram():
                session.on_data(heard.number, heard.trail, heard.payload, heard.again, now)
            case SessionStatus():
                session.on_standing(heard.lead, heard.trail, now)
            case NakRefusal():
                session.on_refused(heard.trail, heard.reason, heard.numbers, now)
            case OtherDatagram.FOREIGN:
                statistics.dgrams_dropped_sid += 1
                return
            case OtherDatagram.OTHER:
                statistics.dgrams_dropped_other += 1
                return
            case _:
                # Datagrams before the reset in the same read are delivered first.
                self._settle(now)
                self.on_reset(now)
                return
        self.heard_at = now
        self.on_heard(now)
