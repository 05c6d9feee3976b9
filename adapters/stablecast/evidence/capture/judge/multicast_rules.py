"""The rules of LBT-RM and LBT-RU, M1 to M6: one judge for each session, and of LBT-RU for each client.

Intervals are options that no packet has, so observations bound them. An NCF *ignored* means that the ignore interval is
longer than the time since the last retransmission, and a retransmission that it is not. If no interval explains both,
M1 is broken. The answer to a NAK may not be captured; a receiver that asks again had none. If the capture misses
datagrams of the session that nobody asks for, it may miss answers, too.
"""

from typing import Final

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.evidence.capture.copies import RecentPackets
from stablecast.evidence.capture.ip import Endpoint
from stablecast.evidence.capture.judge.findings import CaptureFindings, RuleStanding
from stablecast.evidence.capture.ports import TransportKey
from stablecast.evidence.capture.statements import At, Ends, Reliable, StatedDatagram, is_repair
from stablecast.transports.reliable.settings import SourceSettings
from stablecast.transports.wire import lbtrm, lbtru
from stablecast.transports.wire.reliable_packets import Reason

MAX_NUMBERS: Final = 1 << 16
"""Datagrams of a session that are remembered, and open NAKs, at most."""

JITTER_NS: Final = 20 * MILLISECOND
"""Error of times in a capture."""

TRAVEL_NS: Final = 200 * MILLISECOND
"""Error of the time between two datagrams: each travels for half of it before it is captured."""

IGNORE_NS: Final = SourceSettings().ignore_ns
"""The default ignore interval, ns."""

ANSWER_NS: Final = 1 * SECOND
"""A source that is there answers a NAK within this time."""

REPEAT_NS: Final = 50 * MILLISECOND
"""NAKs of a receiver that are further apart are two; nearer ones may be of several receivers."""

PAUSE_NS: Final = 60 * SECOND
"""An idle source sends session messages more often than this."""

MAX_SESSIONS: Final = 1 << 12
"""Sessions that are followed; the first one is settled for a new one."""

MAX_ACCUSED: Final = 1 << 10
"""Accusations that wait for the end of the capture, at most."""


@attrs.define
class SentDatagram:
    """A datagram: time of its last retransmission, or None. `awaited`: asked for since its last answer."""

    again_ns: int | None = None
    awaited: bool = False


@attrs.define
class OpenNak:
    """NAKs for a number without an answer: frame of the first one, its time and that of the last one, count."""

    frame: int
    first_ns: int
    last_ns: int
    times: int = 1


@attrs.define
class DatagramSession:
    """A session of a transport, or of one of its clients.

    `unseen`: numbers that were sent and are not in the capture; `ended_ns`: time of its last datagram; `told_ns`: time
    of its last new number, which repairs and refusals do not give. `lossy`: the capture misses some of it. `beats` is
    the number of the newest session message. `accused` has broken rules whose excuse may be missing: rule, datagram
    asked for in vain, frame, time and text.
    """

    name: str
    findings: CaptureFindings
    newest: int | None = None
    trail: int = 0
    ended_ns: int | None = None
    told_ns: int = 0
    shots: dict[int, SentDatagram] = attrs.field(factory=dict)
    unseen: RangeSet = attrs.field(factory=RangeSet)
    asked: dict[int, OpenNak] = attrs.field(factory=dict)
    early: dict[int, At] = attrs.field(factory=dict)
    at_least_ns: int = 0
    at_most_ns: int | None = None
    lossy: bool = False
    beats: int | None = None
    accused: list[tuple[str, int | None, int, int, str]] = attrs.field(factory=list)

    def judge_datagram(self, at: At, packet: Reliable) -> None:
        match packet:
            case lbtrm.Data() | lbtru.Data():
                self._heard(at, packet.trail)
                number = self._number(packet.sqn)
                if is_repair(packet):
                    self._on_again(at, number)
                else:
                    self._on_new(at, number)
            case lbtru.SessionMessage(flags=flags) if flags & lbtru.SessionMessage.SYN:
                self._heard(at, packet.trail)  # of what was sent before, a client that is new gets nothing
                self.told_ns = at.time_ns
                number = self._number(packet.lead)
                self.newest = number if self.newest is None else max(self.newest, number)
            case lbtrm.SessionMessage() | lbtru.SessionMessage():
                self._heard(at, packet.trail)
                self._beat(packet.sm_sqn)
                self.told_ns = at.time_ns
                self._reach(self._number(packet.lead) + 1)
            case lbtrm.Nak() | lbtru.Nak():
                for sqn in packet.sqns:
                    self._on_nak(at, self._number(sqn))
            case lbtrm.Ncf() | lbtru.Ncf():
                self._heard(at, packet.trail)
                for sqn in packet.sqns:
                    self._on_ncf(at, self._number(sqn), packet.reason)

    def close(self, now_ns: int) -> None:
        """Judge open NAKs and accusations at the end of the capture."""
        self._overdue(now_ns)
        self.lossy |= any(self._unheard(number, at) for number, at in self.early.items())
        for number, asked in self.asked.items():
            self._unanswered(number, asked, now_ns)
        for number, at in self.early.items():
            self._never_sent(number, at)
        vain = {number for _, number, *_ in self.accused}.union(self.asked)
        for start, stop in self.unseen:
            if vain.isdisjoint(range(start, min(stop, start + MAX_NUMBERS))):
                self.lossy = True
                text = f"datagrams {start} to {stop - 1} are not in the capture, and no receiver asks for them"
                self.findings.cannot_tell("M5", self.name, 0, text)
        for rule, _, frame, time_ns, text in self.accused:
            standing, doubt = (
                (RuleStanding.CANNOT_TELL, ": the capture misses some of the session")
                if self.lossy
                else (RuleStanding.BROKEN, "")
            )
            self.findings.note(rule, standing, self.name, (frame, time_ns), text + doubt)

    def advertised(self, now_ns: int) -> None:
        """Note that the source's context lives: if its datagrams ended before, the capture misses later ones."""
        self.lossy |= self.ended_ns is not None and now_ns - self.ended_ns > ANSWER_NS

    def _unheard(self, number: int, at: At) -> bool:
        """Return whether a receiver knows of a number that the source told nobody in the capture."""
        return self.newest is not None and number > self.newest and self.told_ns <= at.time_ns

    def _accuse(self, rule: str, number: int | None, frame: int, time_ns: int, text: str) -> None:
        if len(self.accused) < MAX_ACCUSED:
            self.accused.append((rule, number, frame, time_ns, text))

    def _beat(self, sqn: int) -> None:
        beat = serial.extend(sqn, self.beats or 0)
        self.lossy |= self.beats is not None and beat > self.beats + 1
        self.beats = beat if self.beats is None else max(self.beats, beat)

    def _number(self, sqn: int) -> int:
        return serial.extend(sqn, self.newest or 0)

    def _heard(self, at: At, trail: int) -> None:
        """Note a datagram of the source; it cannot repair numbers below its trail."""
        self.ended_ns = at.time_ns
        if (number := self._number(trail)) > self.trail:
            self.trail = number
            for passed in [one for one in self.asked if one < number]:
                del self.asked[passed]
                self.findings.fine("M2", self.name)
        self._overdue(at.time_ns)

    def _reach(self, stop: int) -> None:
        """Note that all numbers below were sent."""
        first = stop - 1 if self.newest is None else self.newest + 1
        self.unseen.add(first, stop)
        self.newest = stop - 1 if self.newest is None else max(self.newest, stop - 1)

    def _seen(self, number: int) -> None:
        if self.unseen.remove(number, number + 1):
            self.findings.fine("M5", self.name)
        self.shots.setdefault(number, SentDatagram())
        if len(self.shots) > MAX_NUMBERS:
            del self.shots[next(iter(self.shots))]

    def _on_new(self, at: At, number: int) -> None:
        if self.newest is None or number > self.newest:
            self._reach(number + 1)
            self.told_ns = at.time_ns
            self.findings.fine("M6", self.name)
        elif number in self.unseen:
            text = f"datagram {number} comes behind datagram {self.newest}: late from the source, or from the network"
            self.findings.cannot_tell("M6", self.name, at.frame, text)
        elif number in self.shots:
            text = f"datagram {number} comes again as a new one: sent twice, or captured twice"
            self.findings.cannot_tell("M6", self.name, at.frame, text)
        self._seen(number)
        self.asked.pop(number, None)

    def _on_again(self, at: At, number: int) -> None:
        if self.newest is None or number > self.newest:
            self._reach(number + 1)
        self._seen(number)
        if self.asked.pop(number, None) is not None:
            self.findings.fine("M2", self.name)
        shot = self.shots.get(number)
        if shot is None:
            return
        if shot.again_ns is not None and not shot.awaited and at.time_ns - shot.again_ns < IGNORE_NS - JITTER_NS:
            text = f"datagram {number} comes again without a NAK: sent twice, or doubled on its way"
            self.findings.cannot_tell("M1", self.name, at.frame, text)
            return
        if shot.again_ns is not None:
            spent = at.time_ns - shot.again_ns
            self.at_most_ns = spent if self.at_most_ns is None else min(self.at_most_ns, spent)
            self._consistent(at, f"datagram {number} is sent again {spent // MILLISECOND} ms after the last time")
        shot.again_ns, shot.awaited = at.time_ns, False

    def _on_ncf(self, at: At, number: int, reason: int) -> None:
        if self.newest is not None and number > self.newest:
            self._note_early(number, at)
            return
        if self.asked.pop(number, None) is not None:
            self.findings.fine("M2", self.name)
        shot = self.shots.get(number)
        if reason == Reason.IGNORED and shot is not None and shot.again_ns is not None and shot.awaited:
            shot.awaited = False
            spent = at.time_ns - shot.again_ns
            self.at_least_ns = max(self.at_least_ns, spent)
            self._consistent(at, f"a NAK for datagram {number} is ignored {spent // MILLISECOND} ms after a repair")

    def _consistent(self, at: At, text: str) -> None:
        """Judge M1: is there an ignore interval that explains everything?"""
        if self.at_most_ns is None:
            self.findings.fine("M1", self.name)
            return
        bounds = f"the ignore interval is at most {self.at_most_ns // MILLISECOND} ms"
        if self.at_least_ns > self.at_most_ns + TRAVEL_NS:
            bounds += f" and at least {self.at_least_ns // MILLISECOND} ms"
            self._accuse("M1", None, at.frame, at.time_ns, f"{text}: {bounds}, which cannot be")
        elif self.at_most_ns < IGNORE_NS - JITTER_NS:
            text = f"{text}: {bounds}, by default it is {IGNORE_NS // MILLISECOND}"
            self.findings.cannot_tell("M1", self.name, at.frame, text)
        else:
            self.findings.fine("M1", self.name)

    def _note_early(self, number: int, at: At) -> None:
        if len(self.early) < MAX_NUMBERS:
            self.early.setdefault(number, at)

    def _on_nak(self, at: At, number: int) -> None:
        if self.newest is None or number > self.newest:
            self._note_early(number, at)
            return
        shot = self.shots.get(number)
        again_ns = None if shot is None else shot.again_ns
        if shot is not None:
            shot.awaited = True
        if number < self.trail or (again_ns is not None and at.time_ns - again_ns < max(IGNORE_NS, self.at_least_ns)):
            return
        asked = self.asked.get(number)
        if asked is None and len(self.asked) < MAX_NUMBERS:
            self.asked[number] = OpenNak(at.frame, at.time_ns, at.time_ns)
        elif asked is not None and at.time_ns - asked.last_ns > REPEAT_NS:
            asked.times, asked.last_ns = asked.times + 1, at.time_ns

    def _overdue(self, now_ns: int) -> None:
        """Judge M2: close NAKs that a present source has not answered for long."""
        ended_ns = -1 if self.ended_ns is None else self.ended_ns
        for number, asked in list(self.asked.items()):
            if min(now_ns, ended_ns) - asked.last_ns > ANSWER_NS:
                del self.asked[number]
                self._left_alone(number, asked)

    def _left_alone(self, number: int, asked: OpenNak) -> None:
        text = f"a NAK for datagram {number} has no answer"
        if asked.times > 1:
            self._accuse("M2", number, asked.frame, asked.first_ns, f"{text}, nor have {asked.times - 1} more")
        else:
            self.findings.cannot_tell("M2", self.name, asked.frame, f"{text}, and it is not repeated")

    def _unanswered(self, number: int, asked: OpenNak, now_ns: int) -> None:
        """Judge M4: the source is silent. A receiver that asks once may be at the end of the capture."""
        text = f"a receiver asks for datagram {number}, and the source is silent"
        if self.ended_ns is not None and asked.times > 1 and now_ns - asked.first_ns > ANSWER_NS:
            self._accuse("M4", number, asked.frame, asked.first_ns, text)
        else:
            self.findings.cannot_tell("M4", self.name, asked.frame, f"{text}: the capture ends too soon")

    def _never_sent(self, number: int, at: At) -> None:
        """Judge M3: a number was asked for or refused before it was known to be sent."""
        text = f"datagram {number} is asked for or refused"
        if self.newest is None or self.ended_ns is None:
            self.findings.cannot_tell("M3", self.name, at.frame, f"{text}, and the source is not in the capture")
        elif self._unheard(number, at):
            text += ", and the source does not send its newest number after that"
            self.findings.cannot_tell("M3", self.name, at.frame, text)
        elif number > self.newest:
            self.findings.broken("M3", self.name, at.frame, f"{text}, and {self.newest} is the newest that was sent")
        else:
            self.findings.cannot_tell("M3", self.name, at.frame, f"{text} before it is seen")


def _name(session: TransportKey, client: Endpoint | None) -> str:
    address, port, number = session
    name = f"{address}:{port}:{number or 0:08x}"
    return f"LBTRM:{name}" if client is None else f"LBTRU:{name}:{client[0]}:{client[1]}"


@attrs.define
class Multicast:
    findings: CaptureFindings
    sessions: dict[tuple[TransportKey, Endpoint | None], DatagramSession] = attrs.field(factory=dict)
    now_ns: int = 0
    recent: RecentPackets = attrs.field(factory=RecentPackets)

    def judge_datagram(self, datagram: StatedDatagram) -> bool:
        """Judge the next datagram of any session; return False if it was captured before."""
        if self.recent.repeats((datagram.at.ends, datagram.packet), datagram.at.time_ns):
            return False
        self._resume(datagram.at.time_ns)
        key = datagram.session, datagram.client
        if key not in self.sessions:
            if len(self.sessions) >= MAX_SESSIONS:
                self.sessions.pop(next(iter(self.sessions))).close(self.now_ns)
            self.sessions[key] = DatagramSession(_name(*key), self.findings)
        self.sessions[key].judge_datagram(datagram.at, datagram.packet)
        return True

    def _resume(self, now_ns: int) -> None:
        """Settle all sessions after a long pause: sessions never rest, so the capture stopped or the clock was set."""
        if self.sessions and now_ns - self.now_ns > PAUSE_NS:
            self.close(self.now_ns)
            self.sessions.clear()
        self.now_ns = now_ns

    def miss(self, ends: Ends) -> None:
        """Note a malformed datagram between these: it is of the sessions of one of them."""
        for ((address, _, _), _), session in self.sessions.items():
            session.lossy |= address in (ends[0][0], ends[1][0])

    def advertised(self, session: TransportKey, now_ns: int) -> None:
        """Note an advertisement of a session, which shows that its source lives."""
        for (key, _), followed in self.sessions.items():
            if key == session:
                followed.advertised(now_ns)

    def close(self, now_ns: int) -> None:
        """Settle all sessions at the end of the capture."""
        for session in self.sessions.values():
            session.close(now_ns)
