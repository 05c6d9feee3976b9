"""The rules of LBT-RM and LBT-RU: M1 to M6 (`findings.RULES`), one judge for each session, LBT-RU: and client.

Intervals are options that no packet tells, so they are bounded by what is seen. An NCF *ignored* says that the ignore
interval is longer than the time since the last retransmission, a retransmission that it is not: if no interval explains
both, M1 is broken. A NAK without an answer may have been answered where the capture was not looking; a receiver that
asks again had none. Where the capture misses datagrams of the session that nobody asks for, it may miss answers, too.
"""

from typing import Final

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.evidence.capture.ip import Endpoint
from stablecast.evidence.capture.judge.findings import Findings, Standing
from stablecast.evidence.capture.judge.statements import At, Datagram, Ends, Reliable, is_repair
from stablecast.evidence.capture.ports import TransportKey
from stablecast.transports.reliable.settings import SourceSettings
from stablecast.transports.wire import lbtrm, lbtru
from stablecast.transports.wire.reliable_packets import Reason

MAX_NUMBERS: Final = 1 << 16
"""Datagrams of a session that are remembered, and of those that are asked for in vain."""

JITTER_NS: Final = 20 * MILLISECOND
"""How far times in a capture may be off."""

TRAVEL_NS: Final = 200 * MILLISECOND
"""How far the time between two datagrams may be off where they are captured: each is on its way for half of it."""

IGNORE_NS: Final = SourceSettings().ignore_ns
"""The ignore interval by default."""

ANSWER_NS: Final = 1 * SECOND
"""A source that is there answers a NAK within this time."""

REPEAT_NS: Final = 50 * MILLISECOND
"""NAKs of a receiver that are further apart are two; nearer ones may be of several receivers."""

COPY_NS: Final = JITTER_NS
"""The same datagram within this time was captured twice: at two interfaces, or at two places."""

PAUSE_NS: Final = 60 * SECOND
"""A source that has nothing to say says so more often than this."""

MAX_COPIES: Final = 1 << 10
"""Datagrams that are remembered, to know them again."""


MAX_SESSIONS: Final = 1 << 12
"""Sessions that are followed; the first one is settled for a new one."""

MAX_ACCUSED: Final = 1 << 10
"""What looks wrong and is settled in the end."""


@attrs.define
class Shot:
    """A datagram: when it was sent again last, None: never. `awaited`: asked for since it was answered last."""

    again_ns: int | None = None
    awaited: bool = False


@attrs.define
class Asked:
    """NAKs for a number that have no answer: where the first one is, when it and the last one came, how often."""

    frame: int
    first_ns: int
    last_ns: int
    times: int = 1


@attrs.define
class Session:
    """One session.

    `unseen`: numbers that were sent and are not in the capture; `ended_ns`: when it was heard last; `told_ns`: when it
    told last how far it is, which repairs and refusals do not. `lossy`: the capture misses some of it. `beats` is the
    number of the newest session message, `accused` what breaks a rule unless the answer is among what is missed: the
    rule, the datagram that is asked for in vain, frame, time and text.
    """

    name: str
    findings: Findings
    newest: int | None = None
    trail: int = 0
    ended_ns: int | None = None
    told_ns: int = 0
    shots: dict[int, Shot] = attrs.field(factory=dict)
    unseen: RangeSet = attrs.field(factory=RangeSet)
    asked: dict[int, Asked] = attrs.field(factory=dict)
    early: dict[int, At] = attrs.field(factory=dict)
    at_least_ns: int = 0
    at_most_ns: int | None = None
    lossy: bool = False
    beats: int | None = None
    accused: list[tuple[str, int | None, int, int, str]] = attrs.field(factory=list)

    def take(self, at: At, packet: Reliable) -> None:
        """The next datagram."""
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
        """The capture ends."""
        self._overdue(now_ns)
        for number, asked in self.asked.items():
            self._unanswered(number, asked, now_ns)
        for number, at in self.early.items():
            self._never_sent(number, at)
        vain = {number for _, number, *_ in self.accused}.union(self.asked)
        for start, stop in self.unseen:
            if vain.isdisjoint(range(start, min(stop, start + MAX_NUMBERS))):
                self.lossy = True
                text = f"datagrams {start} to {stop - 1} are not in the capture, and nobody asks for them"
                self.findings.cannot_tell("M5", self.name, 0, text)
        for rule, _, frame, time_ns, text in self.accused:
            standing, doubt = (
                (Standing.CANNOT_TELL, ": the capture misses some of the session")
                if self.lossy
                else (Standing.BROKEN, "")
            )
            self.findings.note(rule, standing, self.name, (frame, time_ns), text + doubt)

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
        """The source is there; what its trail has passed it cannot send again."""
        self.ended_ns = at.time_ns
        if (number := self._number(trail)) > self.trail:
            self.trail = number
            for passed in [one for one in self.asked if one < number]:
                del self.asked[passed]
                self.findings.fine("M2", self.name)
        self._overdue(at.time_ns)

    def _reach(self, stop: int) -> None:
        """Everything below was sent."""
        first = stop - 1 if self.newest is None else self.newest + 1
        self.unseen.add(first, stop)
        self.newest = stop - 1 if self.newest is None else max(self.newest, stop - 1)

    def _seen(self, number: int) -> None:
        if self.unseen.remove(number, number + 1):
            self.findings.fine("M5", self.name)
        self.shots.setdefault(number, Shot())
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
            text = f"datagram {number} comes again, and nobody asked: sent twice, or doubled on its way"
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
        """M1: is there an ignore interval that explains everything?"""
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
            self.asked[number] = Asked(at.frame, at.time_ns, at.time_ns)
        elif asked is not None and at.time_ns - asked.last_ns > REPEAT_NS:
            asked.times, asked.last_ns = asked.times + 1, at.time_ns

    def _overdue(self, now_ns: int) -> None:
        """M2: NAKs that a source left alone for long, although it is there."""
        ended_ns = -1 if self.ended_ns is None else self.ended_ns
        for number, asked in list(self.asked.items()):
            if min(now_ns, ended_ns) - asked.last_ns > ANSWER_NS:
                del self.asked[number]
                self._left_alone(number, asked)

    def _left_alone(self, number: int, asked: Asked) -> None:
        text = f"a NAK for datagram {number} has no answer"
        if asked.times > 1:
            self._accuse("M2", number, asked.frame, asked.first_ns, f"{text}, nor have {asked.times - 1} more")
        else:
            self.findings.cannot_tell("M2", self.name, asked.frame, f"{text}, and nobody asks again")

    def _unanswered(self, number: int, asked: Asked, now_ns: int) -> None:
        """M4: the source says nothing any more. Who asks once may be at the end of what was captured of them both."""
        text = f"a receiver asks for datagram {number}, and the source is not heard any more"
        if self.ended_ns is not None and asked.times > 1 and now_ns - asked.first_ns > ANSWER_NS:
            self._accuse("M4", number, asked.frame, asked.first_ns, text)
        else:
            self.findings.cannot_tell("M4", self.name, asked.frame, f"{text}: the capture ends too soon")

    def _never_sent(self, number: int, at: At) -> None:
        """M3: somebody spoke of a number that was not known to be sent."""
        text = f"datagram {number} is asked for or refused"
        if self.newest is None or self.ended_ns is None:
            self.findings.cannot_tell("M3", self.name, at.frame, f"{text}, and the source is not in the capture")
        elif number > self.newest and self.told_ns <= at.time_ns:
            text += ", and the source does not tell any more how far it is"
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
    """All sessions of a capture."""

    findings: Findings
    sessions: dict[tuple[TransportKey, Endpoint | None], Session] = attrs.field(factory=dict)
    now_ns: int = 0
    recent: dict[tuple[Ends, Reliable], int] = attrs.field(factory=dict)

    def take(self, datagram: Datagram) -> None:
        """The next datagram."""
        if self._copied(datagram):
            return
        self._resume(datagram.at.time_ns)
        key = datagram.session, datagram.client
        if key not in self.sessions:
            if len(self.sessions) >= MAX_SESSIONS:
                self.sessions.pop(next(iter(self.sessions))).close(self.now_ns)
            self.sessions[key] = Session(_name(*key), self.findings)
        self.sessions[key].take(datagram.at, datagram.packet)

    def _resume(self, now_ns: int) -> None:
        """After a long pause: the capture stood still, or the clock was set, for sessions never rest."""
        if self.sessions and now_ns - self.now_ns > PAUSE_NS:
            self.close(self.now_ns)
            self.sessions.clear()
        self.now_ns = now_ns

    def miss(self, ends: Ends) -> None:
        """A datagram between these could not be read: it is of the sessions of one of them."""
        for ((address, _, _), _), session in self.sessions.items():
            session.lossy |= address in (ends[0][0], ends[1][0])

    def _copied(self, datagram: Datagram) -> bool:
        """Whether it is in the capture twice."""
        key = datagram.at.ends, datagram.packet
        before = self.recent.pop(key, None)
        self.recent[key] = datagram.at.time_ns
        if len(self.recent) > MAX_COPIES:
            del self.recent[next(iter(self.recent))]
        return before is not None and datagram.at.time_ns - before < COPY_NS

    def close(self, now_ns: int) -> None:
        """The capture ends at this time."""
        for session in self.sessions.values():
            session.close(now_ns)
