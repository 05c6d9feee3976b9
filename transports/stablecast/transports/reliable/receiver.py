"""A receiver's session with one source: the common part of LBT-RM and LBT-RU.

Datagrams are decoded to `packets` and handed to `SessionReception`, which returns NAKs. Each transport decodes
datagrams, encodes NAKs, and begins and ends a session in its own way, which is its chart.

The common part knows neither addresses nor connections. Datagrams are delivered in the order of arrival, retransmitted
ones included, each of them once. The datagrams of one read are delivered together. A session begins with the first
datagram or session message: nothing before it is missing. A retransmitted datagram cannot begin a session, because it
does not show the position of the source.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar, assert_never

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.timers import soonest
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from stablecast.transports.reliable.effects import Began, Received, ReceiverEffect, SendDatagrams, SessionEnded
from stablecast.transports.reliable.gaps import Gaps
from stablecast.transports.reliable.high_water_marks import marks
from stablecast.transports.reliable.inputs import LeaveSession, ReceiverInput, SessionDatagrams
from stablecast.transports.reliable.packets import Datagram, NakRefusal, SessionStatus, SourcePacket
from stablecast.transports.reliable.settings import MAX_NUMBERS, ReceiverSettings
from stablecast.transports.reliable.statistics import ReceiverStatistics
from stablecast.transports.reliable.topics import Topics
from stablecast.transports.wire import lbtrm, lbtru
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import Tsni
from stablecast.transports.wire.lbmc import Message, MessageKind
from stablecast.transports.wire.reliable_packets import Format

PERMILLE = 1_000


@attrs.define
class SessionReception:
    """The reception of one session.

    Attributes:
        gaps: Missing datagrams of the session.
        topics: Missing messages of its topics.
        arrived: Payloads of new datagrams of this read.
    """

    settings: ReceiverSettings
    seeded: Seeded
    gaps: Gaps
    topics: Topics
    statistics: ReceiverStatistics
    out: list[ReceiverEffect] = attrs.field(factory=list)
    arrived: list[bytes | memoryview] = attrs.field(factory=list)

    @classmethod
    def of(cls, settings: ReceiverSettings, seed: int) -> "SessionReception":
        """Return the state before the first datagram."""
        statistics = ReceiverStatistics()
        seeded = Seeded(seed)
        return cls(
            settings,
            seeded,
            Gaps(settings, seeded, statistics),
            Topics(settings.generation_ns, settings.loss_check_ns),
            statistics,
        )

    def drops(self) -> bool:
        """Return whether to drop a datagram artificially, for tests."""
        chance = self.settings.drop_permille
        if not chance or self.seeded.below(PERMILLE) >= chance:
            return False
        self.statistics.dgrams_dropped_test += 1
        return True

    def expected(self) -> int | None:
        """Return the next wire number; None before the first datagram, or if artificial loss must see each datagram."""
        high = self.gaps.high
        return None if high is None or self.settings.drop_permille else serial.wire(high + 1)

    def on_series(self, payloads: list[bytes | memoryview], trail: int) -> None:
        """Handle datagrams with the expected number and the next ones; the trail is that of the last."""
        gaps = self.gaps
        assert gaps.high is not None
        gaps.high += len(payloads)
        gaps.advance(serial.extend(trail, gaps.high), self.out)
        self.arrived += payloads

    def on_data(self, sqn: int, trail: int, payload: bytes | memoryview, again: bool, now: int) -> None:
        """Handle a datagram of messages, with wire numbers."""
        gaps = self.gaps
        if gaps.high is None:
            if again:
                self.statistics.dgrams_dropped_other += 1
                return
            # The first datagram is itself new, so the session begins before it.
            gaps.begin(serial.extend(sqn, 0) - 1)
            assert gaps.high is not None
        number = serial.extend(sqn, gaps.high)
        gaps.advance(serial.extend(trail, number), self.out)
        if gaps.on_datagram(number, again, now, self.out):
            self.arrived.append(payload)

    def on_standing(self, lead: int, trail: int, now: int) -> None:
        """Handle a session message."""
        gaps = self.gaps
        if gaps.high is None:
            gaps.begin(serial.extend(lead, 0))
            return
        newest = serial.extend(lead, gaps.high)
        gaps.advance(serial.extend(trail, newest), self.out)
        if newest > gaps.high:
            gaps.extend(newest, now, self.out)

    def on_refused(self, trail: int, reason: int, numbers: tuple[int, ...], now: int) -> None:
        """Handle an NCF, with wire numbers."""
        self.statistics.refused(reason, len(numbers))
        gaps = self.gaps
        if gaps.high is not None:
            near = gaps.high
            gaps.advance(serial.extend(trail, near), self.out)
            gaps.refuse([serial.extend(number, near) for number in numbers], now)

    def settle(self, now: int) -> list[tuple[int, ...]]:
        """Finish a read or a timeout: deliver new messages, and give up old gaps.

        Returns:
            The wire numbers to request, for each NAK.
        """
        self.gaps.expire(now, self.out)
        if self.arrived:
            payloads, self.arrived = self.arrived, []
            items = self._items(payloads)
            welcome = [item for item in items if self._count(item, now)]
            if welcome:
                self.out.append(Received(welcome))
        self.topics.look(now, self.out)
        # After delivery, so that repairs in this read are not requested again.
        asked = [serial.wire(number) for number in self.gaps.ask(now)]
        naks = [tuple(asked[start : start + MAX_NUMBERS]) for start in range(0, len(asked), MAX_NUMBERS)]
        self.statistics.naks_sent += len(asked)
        self.statistics.nak_pckts_sent += len(naks)
        return naks

    def end(self) -> None:
        """End the session: the gaps of its topics are lost."""
        self.topics.end(self.out)
        self.gaps.missing.clear()
        self.gaps.deadlines.clear()

    def next_timeout(self) -> int | None:
        """Return when `settle` is due, in nanoseconds."""
        return soonest(self.gaps.next(), self.topics.look_at)

    def _items(self, payloads: list[bytes | memoryview]) -> list[Run | Message]:
        # Datagrams hold whole messages, so all of them are usually decoded in one pass.
        items = _split(b"".join(payloads))
        if items is not None:
            return items
        found: list[Run | Message] = []
        for payload in payloads:
            items = _split(bytes(payload))
            if items is None:
                self.statistics.dgrams_dropped_other += 1
            else:
                found += items
        return found

    def _count(self, item: Run | Message, now: int) -> bool:
        """Note the numbers of an item for its topic, and return whether to deliver the item."""
        if isinstance(item, Run):
            self.statistics.lbmc_msgs_rcved += item.count
            return self.topics.on_run(item.topic_index, item.first, item.count, now)
        self.statistics.lbmc_msgs_rcved += 1
        if item.kind is MessageKind.DATA:
            return self.topics.on_run(item.topic_index, item.sequence, 1, now)
        for index, high in marks(item):
            self.topics.on_mark(index, high, now)
        return not all(isinstance(header, Tsni) for header in item.headers)  # the application has no use for marks


def _split(payload: bytes) -> list[Run | Message] | None:
    """Return the messages of a payload; None if it does not consist of whole messages."""
    decoder = StreamDecoder()
    try:
        items = decoder.feed(payload)
    except WireError:
        return None
    return None if decoder.pending else items


class OtherDatagram(IntEnum):
    """A datagram that reports nothing about the session: of another session, not for receivers, or a reset."""

    FOREIGN = 0
    OTHER = 1
    RESET = 2


def meaning(packet: lbtrm.Packet | lbtru.Packet) -> SourcePacket | OtherDatagram:
    """Return the report of a packet of the session, for either transport."""
    match packet:
        case lbtrm.Data() | lbtru.Data():
            again = bool(packet.flags & packet.RETRANSMISSION)
            return Datagram(packet.sqn, packet.trail, packet.payload, again)
        case lbtrm.SessionMessage() | lbtru.SessionMessage():
            return SessionStatus(packet.sm_sqn, packet.lead, packet.trail)
        case lbtrm.Ncf(format=Format.SELECTIVE) | lbtru.Ncf(format=Format.SELECTIVE):
            return NakRefusal(packet.trail, packet.reason, packet.sqns)
        case _:  # multicast NAKs of other receivers, and parity, which is never requested here
            return OtherDatagram.OTHER


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
