"""The history of one session of LBT-RM or LBT-RU: what was sent, lost, asked for, repaired and refused.

A receiver that asks for a datagram has lost it. A repair ends the loss, unless the receiver asks again: then the
repair was lost, too. A refusal by the ignore interval (NCF) silences the receiver for its suppress interval.
"""

from collections import Counter, deque
from typing import Final

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.evidence.capture.doctor.send_bursts import SendBursts
from stablecast.evidence.capture.ip import Endpoint
from stablecast.evidence.capture.statements import At, Reliable, is_repair
from stablecast.transports.wire import lbtrm, lbtru
from stablecast.transports.wire.reliable_packets import Reason

MAX_NUMBERS: Final = 1 << 16
"""Datagrams of a session whose times are remembered, at most."""

MAX_LOSSES: Final = 1 << 17
"""Losses of a session that are followed, at most; the rest is counted."""

ANSWER_NS: Final = 1 * SECOND
"""A source that is there answers a NAK within this time."""

MAX_SKIPPED: Final = 1 << 10
"""Session messages in a row that may be missing; with more, the session began anew."""

HEADER_BYTES: Final = 20
"""Bytes of a datagram before its messages, as the rate limit counts them."""

SAME_NAK_NS: Final = 1 * MILLISECOND
"""A NAK that comes again sooner was captured twice, or doubled on its way."""


@attrs.define
class AskedLoss:
    """A datagram that a receiver asked for.

    Attributes:
        frame: The packet with the first NAK.
        sent_ns: Time at which it was sent; of the first NAK if that is not captured.
        asked_ns, last_ns: Times of the first and the last NAK.
        tail: Whether nothing newer was sent before the first NAK, so that only a session message showed the loss.
        passed: Whether the original is in the capture, so that it was lost behind the place of the capture.
        repaired_ns: Time of the repair after the last NAK, or None.
        repeats_ns: Times from a repair to the NAK that shows that it was lost.
        refused: Whether a NAK was refused because of an earlier repair.
    """

    frame: int
    sent_ns: int
    asked_ns: int
    last_ns: int
    tail: bool
    passed: bool
    repaired_ns: int | None = None
    repeats_ns: list[int] = attrs.field(factory=list)
    refused: bool = False


@attrs.frozen
class LateDatagram:
    """A datagram that came after its receiver had asked for it, by this time (ns); `frame` is that of the NAK."""

    frame: int
    wait_ns: int


@attrs.define
class Silence:
    """A pause of a source, until the packet `frame`."""

    length_ns: int = 0
    frame: int = 0


@attrs.define
class SessionHistory:
    """The traffic of a session, or of one client of LBT-RU, as far as the capture has it.

    Attributes:
        name: As in logs.
        prefix: The beginning of the names of the transport's options.
        sent: New datagrams in the capture.
        oldest: The first number that the capture shows as new.
        beats: Session messages in the capture.
        skipped: Session messages that are missing between them, and the first packets after a gap.
        topics: Messages by the index of their topic.
        losses: By receiver and number.
        late: Datagrams that came late, so that they were no losses, by receiver and number.
        uncounted: Losses beyond `MAX_LOSSES`.
        confirmed: Numbers in NCFs by their reason.
        refused_ns: Longest time between a repair and the refusal of the next.
        served_ns: Shortest time between two repairs of a datagram that was asked for again.
        repairs, unasked: Repairs, and those that no NAK preceded.
        rate: Time, frame and number of NAKed numbers of the busiest second.
        unseen: Numbers that were sent and are not in the capture.
        source_ns: Time of the source's last datagram; 0 if none is captured.
        called: The highest number that receivers asked for.
        called_frame: The packet of its first NAK.
        pause: The longest pause of the source that it ended itself.
        bursts: Its bursts of new datagrams.
    """

    name: str
    prefix: str
    sent: int = 0
    oldest: int | None = None
    beats: int = 0
    skipped: int = 0
    skipped_frames: list[int] = attrs.field(factory=list)
    newest: int | None = None
    first_ns: int = 0
    source_ns: int = 0
    called: int | None = None
    called_frame: int = 0
    topics: Counter[int] = attrs.field(factory=Counter)
    losses: dict[tuple[Endpoint, int], AskedLoss] = attrs.field(factory=dict)
    late: dict[tuple[Endpoint, int], LateDatagram] = attrs.field(factory=dict)
    uncounted: int = 0
    confirmed: Counter[int] = attrs.field(factory=Counter)
    limited_frames: list[int] = attrs.field(factory=list)
    refused_ns: int = 0
    served_ns: int | None = None
    repairs: int = 0
    unasked: int = 0
    unasked_frames: list[int] = attrs.field(factory=list)
    rate: tuple[int, int] = (0, 0)
    unseen: RangeSet = attrs.field(factory=RangeSet)
    pause: Silence = attrs.field(factory=Silence)
    bursts: SendBursts = attrs.field(factory=SendBursts)
    _newest_beat: int | None = None
    _newest_data: int = -1
    _sent_ns: dict[int, int] = attrs.field(factory=dict)
    _repaired_ns: dict[int, int] = attrs.field(factory=dict)
    _awaited: set[int] = attrs.field(factory=set)
    _askers: dict[int, list[Endpoint]] = attrs.field(factory=dict)
    _recent: deque[tuple[int, int]] = attrs.field(factory=deque)
    _asked_now: int = 0

    def add(self, at: At, packet: Reliable) -> None:
        match packet:
            case lbtrm.Nak() | lbtru.Nak():
                self._count_asked(at, len(packet.sqns))
                for sqn in packet.sqns:
                    self._asked(at, self._number(sqn))
                return
            case lbtrm.Data() | lbtru.Data() if is_repair(packet):
                self._repaired(at, self._number(packet.sqn))
            case lbtrm.Data() | lbtru.Data():
                self.bursts.add(at.time_ns, HEADER_BYTES + len(packet.payload), at.frame)
                self._first_sent(at, self._number(packet.sqn))
            case lbtrm.SessionMessage() | lbtru.SessionMessage():
                self._reached(self._number(packet.lead) + 1)
                self._beat(at, packet.sm_sqn)
            case lbtrm.Ncf() | lbtru.Ncf():
                for sqn in packet.sqns:
                    self._confirmed(at, self._number(sqn), packet.reason)
        if self.source_ns and at.time_ns - self.source_ns > self.pause.length_ns:
            self.pause = Silence(at.time_ns - self.source_ns, at.frame)
        self.first_ns = self.first_ns or at.time_ns
        self.source_ns = max(self.source_ns, at.time_ns)

    @property
    def span(self) -> int:
        """Return how many datagrams the source sent while it was captured, also those that the capture lacks."""
        if self.oldest is None or self.newest is None:
            return self.sent
        return max(self.sent, self.newest - self.oldest + 1)

    @property
    def unheard(self) -> bool:
        """Return whether receivers know of datagrams that the capture does not show: the source goes on unseen."""
        return self.called is not None and (self.newest is None or self.called > self.newest)

    def _beat(self, at: At, number: int) -> None:
        """Count session messages, which have numbers of their own."""
        self.beats += 1
        if self._newest_beat is not None:
            step = serial.extend(number, self._newest_beat) - self._newest_beat
            if 1 < step <= MAX_SKIPPED:
                self.skipped += step - 1
                self.skipped_frames.append(at.frame)
                del self.skipped_frames[8:]
            number = self._newest_beat + max(step, 0)
        self._newest_beat = number

    def _number(self, sqn: int) -> int:
        return serial.extend(sqn, self.newest or 0)

    def _reached(self, stop: int) -> None:
        """Note that all numbers below were sent; before the first datagram of the capture nothing is known."""
        if self.newest is not None:
            self.unseen.add(self.newest + 1, max(stop, self.newest + 1))
        self.newest = stop - 1 if self.newest is None else max(self.newest, stop - 1)

    def _first_sent(self, at: At, number: int) -> None:
        self.sent += 1
        self.oldest = number if self.oldest is None and self.newest is None else self.oldest
        if self.oldest is None and self.newest is not None:
            self.oldest = self.newest + 1
        self._reached(number + 1)
        self.unseen.remove(number, number + 1)
        if number in self._askers and number not in self._sent_ns and number not in self._repaired_ns:
            self._came_late(at, number)
        self._newest_data = max(self._newest_data, number)
        self._sent_ns[number] = at.time_ns
        if len(self._sent_ns) > MAX_NUMBERS:
            del self._sent_ns[next(iter(self._sent_ns))]

    def _came_late(self, at: At, number: int) -> None:
        """Note that a datagram was overtaken: receivers that asked for it had not lost it.

        A capture at the source has the original before the NAK, and cannot show this.
        """
        for receiver in self._askers.pop(number):
            loss = self.losses.pop((receiver, number))
            if len(self.late) >= MAX_LOSSES:
                del self.late[next(iter(self.late))]
            self.late[receiver, number] = LateDatagram(loss.frame, at.time_ns - loss.asked_ns)

    def _asked(self, at: At, number: int) -> None:
        if self.called is None or number > self.called:
            self.called, self.called_frame = number, at.frame
        key = at.ends[0], number
        loss = self.losses.get(key)
        if loss is None and key not in self.late:
            self._lost(at, key)
        elif loss is None:
            pass  # This NAK was on its way when the datagram came.
        elif at.time_ns - loss.last_ns > SAME_NAK_NS:
            loss.last_ns = at.time_ns
            if loss.repaired_ns is not None:
                loss.repeats_ns.append(at.time_ns - loss.repaired_ns)
                loss.repaired_ns = None
        if key in self.losses:
            self._awaited.add(number)

    def _lost(self, at: At, key: tuple[Endpoint, int]) -> None:
        number = key[1]
        if len(self.losses) >= MAX_LOSSES:
            self.uncounted += 1
            return
        tail = 0 <= self._newest_data <= number <= (self.newest or 0)
        sent_ns = self._sent_ns.get(number)
        passed = sent_ns is not None
        self.losses[key] = AskedLoss(at.frame, sent_ns or at.time_ns, at.time_ns, at.time_ns, tail, passed)
        self._askers.setdefault(number, []).append(key[0])

    def _repaired(self, at: At, number: int) -> None:
        self.repairs += 1
        self._reached(number + 1)
        self.unseen.remove(number, number + 1)
        before = self._repaired_ns.get(number)
        if before is not None and number in self._awaited:
            spent = at.time_ns - before
            self.served_ns = spent if self.served_ns is None else min(self.served_ns, spent)
        elif number not in self._awaited:
            self.unasked += 1
            self.unasked_frames.append(at.frame)
            del self.unasked_frames[8:]
        self._awaited.discard(number)
        self._repaired_ns[number] = at.time_ns
        if len(self._repaired_ns) > MAX_NUMBERS:
            del self._repaired_ns[next(iter(self._repaired_ns))]
        for receiver in self._askers.get(number, ()):
            loss = self.losses[receiver, number]
            loss.repaired_ns = loss.repaired_ns or at.time_ns

    def _confirmed(self, at: At, number: int, reason: int) -> None:
        self.confirmed[reason] += 1
        if reason in (Reason.DELAYED, Reason.SHED):
            self.limited_frames.append(at.frame)
            del self.limited_frames[8:]
        repaired_ns = self._repaired_ns.get(number)
        if reason == Reason.IGNORED and repaired_ns is not None:
            self.refused_ns = max(self.refused_ns, at.time_ns - repaired_ns)
            for receiver in self._askers.get(number, ()):
                loss = self.losses[receiver, number]
                loss.refused |= bool(loss.repeats_ns)

    def _count_asked(self, at: At, count: int) -> None:
        self._recent.append((at.time_ns, count))
        self._asked_now += count
        while self._recent[0][0] <= at.time_ns - SECOND:
            self._asked_now -= self._recent.popleft()[1]
        if self._asked_now > self.rate[0]:
            self.rate = self._asked_now, at.frame
