"""One source session: batches become numbered datagrams, NAKs are answered, and session messages fill silence.

    OPEN --close--> LINGERING --lapse--> CLOSED

A closed session continues to answer NAKs for a while. The duty to retransmit ends with the source, and then the missing
datagrams of receivers are lost (vendor's advice: linger for a NAK generation interval).

A NAK for a datagram is answered in one of these ways (transports reference, 3):

* with a retransmission, if the window has the datagram and the ignore interval since the last one is over;
* with a refusal, for one of the reasons ignored, delayed by the rate limit, or shed because too many wait already;
* with silence, if the window no longer has it: the trail in every datagram shows this.

Retransmissions of one NAK leave in ascending order. Then one NCF follows per reason, with all refused numbers.
"""

from enum import IntEnum

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine import serial
from stablecast.core.machine.chart import Chart, States, fire, lower
from stablecast.core.machine.timers import soonest
from stablecast.transports.reliable.batches import Batcher
from stablecast.transports.reliable.high_water_marks import TopicMarks, room_for
from stablecast.transports.reliable.inputs import Submit
from stablecast.transports.reliable.nak_answers import NakAnswers, RecentAnswer
from stablecast.transports.reliable.packets import Datagram, DatagramSeries, NakRefusal, SessionStatus, SourcePacket
from stablecast.transports.reliable.rates import QueuedDatagram, RateLimiter, RepairVerdict
from stablecast.transports.reliable.settings import (
    MAX_DATAGRAM,
    MAX_NUMBERS,
    MAX_SUBMITTED,
    MIN_DATAGRAM,
    UDP_BYTES,
    SourceSettings,
)
from stablecast.transports.reliable.statistics import SourceStatistics
from stablecast.transports.reliable.transmission_window import TransmissionWindow
from stablecast.transports.wire.lbmc import DATA_HEADER, MessageKind
from stablecast.transports.wire.reliable_packets import Reason

EVERYBODY = ""
"""The addressee of a packet for all receivers of the session."""


@attrs.define
class Addressed:
    """A packet to send on a session, to everybody or to one receiver."""

    session: int
    packet: SourcePacket
    to: str = EVERYBODY


@attrs.define
class Heartbeat:
    """The schedule of session messages, which state the limits of the session while there is no data.

    The first comes the shortest interval after the last data. Each further wait is twice the wait before, up to the
    longest interval. Only new data resets the wait, retransmissions do not; there are none before the first data (6.14
    as observed).

    Attributes:
        shortest, longest: Intervals in nanoseconds.
        number: The number of the next session message.
        due: Time at which it is due (ns); None: never.
    """

    shortest: int
    longest: int
    number: int = 0
    interval: int = 0
    due: int | None = None

    def on_data(self, now: int) -> None:
        """Note that data has left, which resets the wait."""
        self.interval = self.shortest
        self.due = now + self.shortest

    def is_due(self, now: int) -> bool:
        """Return whether a session message is due."""
        return self.due is not None and self.due <= now

    def advance(self, now: int) -> None:
        """Note that the session message is sent: the next wait is twice as long."""
        self.interval = min(2 * self.interval, self.longest)
        self.due = now + self.interval

    def next_number(self) -> int:
        """Return the number of a session message, and count it."""
        number = self.number
        self.number += 1
        return number


class SessionState(IntEnum):
    OPEN = 0
    LINGERING = 1
    CLOSED = 2


class SessionEvent(IntEnum):
    CLOSE = 0
    LAPSE = 1


class SessionChart(Chart):
    states = States.from_enum(
        SessionState, initial=SessionState.OPEN, final=SessionState.CLOSED, use_enum_instance=True
    )

    close = states.OPEN.to(states.LINGERING, on="send_the_rest")
    lapse = states.LINGERING.to(states.CLOSED, on="fall_silent")


@attrs.define
class SourceSession:
    """One session of a source.

    Attributes:
        number: The driver's number of the session.
        header: Bytes of a data datagram before its messages.
        limiter: The rate limiter of the context.
        out: The list for packets to send, which all sessions of a context share.
        copies: Number of copies of each datagram.
        answers: Recent answers, by requester.
    """

    number: int
    settings: SourceSettings
    header: int
    limiter: RateLimiter
    out: list[Addressed]
    window: TransmissionWindow
    batcher: Batcher
    heartbeat: Heartbeat
    marks: TopicMarks
    state: SessionState = SessionState.OPEN
    lapses_at: int = 0
    copies: int = 1
    answers: dict[str, NakAnswers] = attrs.field(factory=dict)
    statistics: SourceStatistics = attrs.field(factory=SourceStatistics)

    @classmethod
    def of(
        cls, number: int, settings: SourceSettings, header: int, limiter: RateLimiter, out: list[Addressed]
    ) -> "SourceSession":
        """Return a session before its first datagram. Raises MisuseError for a datagram maximum out of range."""
        if not MIN_DATAGRAM <= settings.datagram_max <= MAX_DATAGRAM:
            text = f"a datagram maximum of {settings.datagram_max} bytes is not in {MIN_DATAGRAM}..{MAX_DATAGRAM}"
            raise MisuseError(text)
        room = min(settings.datagram_max, UDP_BYTES) - header
        return cls(
            number,
            settings,
            header,
            limiter,
            out,
            TransmissionWindow(settings.window_bytes, settings.window_limit, settings.window_age_ns),
            Batcher(room, settings.batch_bytes, settings.batch_ns),
            Heartbeat(settings.sm_min_ns, settings.sm_max_ns),
            TopicMarks(settings.tsni_ns, settings.tsni_active_ns, room_for(room)),
        )

    def submit(self, event: Submit, now: int) -> None:
        """Send messages. Raises MisuseError if the session is closed or blocked, or if the messages do not fit."""
        if self.state is not SessionState.OPEN:
            raise MisuseError("the session is closed: open another")
        if self.limiter.blocked:
            raise MisuseError("the rate limit is reached: wait for the effect Unblocked")
        if len(event.block) > MAX_SUBMITTED:
            raise MisuseError(f"{len(event.block)} bytes exceed the {MAX_SUBMITTED} that may be submitted at once")
        datagrams = self.batcher.add(event.block, now, event.mark)
        last = self.batcher.last_at
        # The last message has the newest number of its topic.
        if event.block and event.block[last] == MessageKind.DATA:
            _, _, _, topic, number = DATA_HEADER.unpack_from(event.block, last)
            self.marks.on_data(topic, number, now)
        self._launch(datagrams, now)

    def flush(self, now: int) -> None:
        """Send the batch now, even below its floor."""
        self._launch(self.batcher.flush(), now)

    def close(self, linger: bool, now: int) -> None:
        """Accept no more messages. Without `linger` the session ends as soon as the rate limit permits."""
        fire(SESSION, self, SessionEvent.CLOSE, now)
        if not linger:
            self.lapses_at = now

    def transmit(self, number: int, now: int) -> None:
        """Send the next datagram for the first time, after the rate limit has released it."""
        self._leave(number, [self.window.datagrams[number]], now)

    def resend(self, number: int, to: str, now: int) -> None:
        """Retransmit a datagram if the window still has it."""
        payload = self.window.get(number)
        answers = self.answers[to]
        answers.queued.pop(number, None)
        if payload is None:
            return
        answers.on_sent(number, now)
        self._say(Datagram(serial.wire(number), serial.wire(self.window.trail), payload, again=True), to)
        self.statistics.rxs_sent += 1
        self.statistics.rx_bytes_sent += self.header + len(payload)

    def on_nak(self, numbers: tuple[int, ...], to: str, now: int) -> None:
        """Answer a NAK for these wire numbers."""
        self.statistics.nak_pckts_rcved += 1
        self.statistics.naks_rcved += len(numbers)
        # The trail already excludes datagrams that are too old: they must not be retransmitted.
        self.window.trim(now)
        answers = self.answers.setdefault(to, NakAnswers(self.settings.ignore_ns))
        refused: dict[Reason, list[int]] = {}
        for wanted in numbers:
            number = serial.extend(wanted, self.window.sent)
            payload = self.window.get(number)
            reason = None if payload is None else self._answer(number, len(payload), answers, to, now)
            if reason is not None:
                refused.setdefault(reason, []).append(wanted)
        for reason, those in refused.items():
            for start in range(0, len(those), MAX_NUMBERS):
                part = tuple(those[start : start + MAX_NUMBERS])
                self._say(NakRefusal(serial.wire(self.window.trail), reason, part), to)
                self.statistics.ncfs_sent += 1

    def standing(self, opening: bool = False) -> SessionStatus:
        """Return the next session message."""
        lead, trail = self.window.sent, self.window.trail
        return SessionStatus(self.heartbeat.next_number(), serial.wire(lead), serial.wire(trail), opening)

    def handle_timeout(self, now: int, marks: bool = True) -> None:
        """Perform what is due. Without `marks`, idle topics wait for the next call, which is due at once."""
        if not self.limiter.blocked:
            due = self.batcher.due()
            if due is not None and due <= now:
                self.flush(now)
            if marks:
                self._announce_marks(now)
        # While data waits for the rate limit, the session is not silent.
        if self.heartbeat.is_due(now) and self.window.sent == self.window.lead:
            self.heartbeat.advance(now)
            self.statistics.sms_sent += 1
            self._say(self.standing())
        if self.state is SessionState.LINGERING and self.lapses_at <= now and self.window.sent == self.window.lead:
            fire(SESSION, self, SessionEvent.LAPSE)

    def next_timeout(self) -> int | None:
        """Return when `handle_timeout` is due. Datagrams that wait for the rate limit are due with their release."""
        if self.window.sent != self.window.lead:
            return None
        batch = None if self.limiter.blocked else soonest(self.batcher.due(), self.marks.next)
        lapse = self.lapses_at if self.state is SessionState.LINGERING else None
        return soonest(batch, self.heartbeat.due, lapse)

    def send_the_rest(self, now: int) -> None:
        """Send the last batch, even an explicit one that was not ended."""
        self.flush(now)
        self.marks.topics.clear()
        self.marks.next = None
        self.lapses_at = now + self.settings.linger_ns

    def fall_silent(self) -> None:
        """Stop the session messages."""
        self.heartbeat.due = None

    def _announce_marks(self, now: int) -> None:
        """Announce idle topics, as far as the rate limit permits."""
        told = self.marks.due_message(now)
        while told:
            self._launch([*self.batcher.flush(), told], now)
            told = b"" if self.limiter.blocked else self.marks.due_message(now)

    def _launch(self, datagrams: list[bytes | memoryview], now: int) -> None:
        """Send new datagrams together if the rate limit permits all of them, the usual case; otherwise one by one."""
        if not datagrams:
            return
        # Each client of LBT-RU gets a copy, and the limit counts all copies.
        number, copies = self.window.add(datagrams), max(1, self.copies)
        if self.limiter.admits((sum(map(len, datagrams)) + len(datagrams) * self.header) * copies, now):
            self._leave(number, datagrams, now)
            return
        for payload in datagrams:
            if self.limiter.admit(QueuedDatagram(self.number, number, (self.header + len(payload)) * copies), now):
                self._leave(number, [payload], now)
            number += 1

    def _leave(self, number: int, payloads: list[bytes | memoryview], now: int) -> None:
        trail = self.window.leave(len(payloads), now)
        self._say(DatagramSeries(serial.wire(number), serial.wire(trail), payloads))
        self.heartbeat.on_data(now)
        self.statistics.msgs_sent += len(payloads)
        self.statistics.bytes_sent += len(payloads) * self.header + sum(map(len, payloads))

    def _answer(self, number: int, size: int, answers: NakAnswers, to: str, now: int) -> Reason | None:
        """Retransmit a datagram, or return the reason for a refusal; None if no NCF is to be sent."""
        statistics = self.statistics
        lately = answers.lately(number, now)
        if lately in (RecentAnswer.SENT, RecentAnswer.REFUSED):
            statistics.naks_ignored += 1
            return Reason.IGNORED if lately is RecentAnswer.SENT else None
        verdict = RepairVerdict.QUEUED
        if lately is RecentAnswer.NOTHING:
            verdict = self.limiter.repair(QueuedDatagram(self.number, number, self.header + size, to), now)
        if verdict is RepairVerdict.SENT:
            self.resend(number, to, now)
            return None
        if verdict is RepairVerdict.SHED:
            statistics.naks_shed += 1
            return Reason.SHED
        answers.queue(number)
        statistics.naks_rx_delay_ignored += 1
        return Reason.DELAYED

    def _say(self, packet: SourcePacket, to: str = EVERYBODY) -> None:
        self.out.append(Addressed(self.number, packet, to))


_S = SessionState
_E = SessionEvent
SESSION = lower(
    SessionChart,
    SourceSession,
    SessionState,
    SessionEvent,
    ignore={_S.LINGERING: (_E.CLOSE,), _S.CLOSED: (_E.CLOSE,)},
    reject={_S.OPEN: (_E.LAPSE,), _S.CLOSED: (_E.LAPSE,)},
)
