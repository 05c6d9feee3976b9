"""Lives of processes by the ends of their TCP connections, as one capture shows them.

The system closes all connections of a process that dies, and refuses new ones at its port until another process listens
there. A process that hangs does neither.
"""

from typing import Final

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.evidence.capture.ip import Endpoint, TcpSegment

FIN: Final = 0x01
RST: Final = 0x04
ACK: Final = 0x10

QUIET_NS: Final = 200 * MILLISECOND
"""Time without a packet that is kept as a pause, ns. Shorter ones explain no gap."""

MAX_CONNECTIONS: Final = 1 << 16
"""Connections that are followed, at most; the oldest is forgotten for a new one."""

REFUSED: Final = "connections refused"
ENDED: Final = "connections ended"


@attrs.frozen
class Span:
    """A time without a process or without packets, with the frames at its ends; `until` is 0 while it lasts."""

    since: int
    frame: int
    until: int = 0
    last_frame: int = 0
    ending: str = ""


@attrs.define
class Pulse:
    """The packets of one sender: first, last, and pauses between them."""

    first: int = 0
    first_frame: int = 0
    last: int = 0
    frame: int = 0
    pauses: list[Span] = attrs.field(factory=list)

    def beat(self, time: int, frame: int) -> None:
        """Note a packet, and the pause before it if that is long."""
        if not self.first:
            self.first, self.first_frame = time, frame
        elif time - self.last > QUIET_NS:
            self.pauses.append(Span(self.last, self.frame, time, frame))
        self.last, self.frame = max(self.last, time), frame


@attrs.define
class Absences:
    """The times for which nothing listened at an endpoint, or a host had no connection of ours."""

    spans: list[Span] = attrs.field(factory=list)
    gone: Span | None = None

    def go(self, since: int, frame: int, ending: str) -> None:
        """Note that the process is gone, unless that is known."""
        if self.gone is None:
            self.gone = Span(since, frame, ending=ending)

    def come(self, time: int, frame: int) -> None:
        if self.gone is not None:
            if time - self.gone.since > QUIET_NS:
                self.spans.append(attrs.evolve(self.gone, until=time, last_frame=frame))
            self.gone = None

    def all(self) -> list[Span]:
        return [*self.spans, *([self.gone] if self.gone is not None else [])]


def _table() -> dict[Endpoint, Absences]:
    return {}


@attrs.define
class TcpLives:
    """The connections of a capture.

    Attributes:
        ports: By listening endpoint: when connections there were refused.
        hosts: By host: when all of its connections had ended, and by itself.
        pulses: By endpoint: segments with a payload.
        alive: By host: all segments, also those that its system sends for a process that hangs.
    """

    ports: dict[Endpoint, Absences] = attrs.field(factory=_table)
    hosts: dict[str, Absences] = attrs.field(factory=dict)
    pulses: dict[Endpoint, Pulse] = attrs.field(factory=dict)
    alive: dict[str, Pulse] = attrs.field(factory=dict)
    _asked: set[tuple[Endpoint, Endpoint]] = attrs.field(factory=set)
    _open: dict[str, dict[tuple[Endpoint, Endpoint], None]] = attrs.field(factory=dict)
    _left: set[tuple[Endpoint, Endpoint]] = attrs.field(factory=set)

    def add(self, segment: TcpSegment, time: int, frame: int) -> None:
        """Follow the next segment of our traffic."""
        ends = segment.source, segment.target
        back = segment.target, segment.source
        self.alive.setdefault(ends[0][0], Pulse()).beat(time, frame)
        if segment.flags & RST:
            if back in self._asked:
                self._asked.discard(back)
                self._refused(ends[0], time, frame)
            self._close(ends, time, frame)
        elif segment.syn and not segment.flags & ACK:
            if len(self._asked) < MAX_CONNECTIONS:
                self._asked.add(ends)
            self._left.discard(ends)
            self._left.discard(back)
            self.host(ends[0][0]).come(time, frame)
        elif segment.syn:
            self._asked.discard(back)
            self.port(ends[0]).come(time, frame)
            self.host(ends[0][0]).come(time, frame)
            self._begin(ends)
        elif segment.flags & FIN:
            self._close(ends, time, frame)
        elif segment.payload:
            self._begin(ends)
            self.port(ends[0]).come(time, frame)
            self.host(ends[0][0]).come(time, frame)
        if segment.payload:
            self.pulses.setdefault(ends[0], Pulse()).beat(time, frame)

    def port(self, at: Endpoint) -> Absences:
        return self.ports.setdefault(at, Absences())

    def host(self, address: str) -> Absences:
        return self.hosts.setdefault(address, Absences())

    def _refused(self, at: Endpoint, time: int, frame: int) -> None:
        pulse = self.pulses.get(at)
        since, first = (pulse.last, pulse.frame) if pulse is not None else (time, frame)
        host = self.host(at[0])
        gone = host.gone
        if gone is not None and gone.since >= since:
            since, first = gone.since, gone.frame
        self.port(at).go(since, first, REFUSED)

    def _begin(self, ends: tuple[Endpoint, Endpoint]) -> None:
        if ends in self._left or (ends[1], ends[0]) in self._left:
            return
        for one, other in (ends, (ends[1], ends[0])):
            connections = self._open.setdefault(one[0], {})
            connections[one, other] = None
            if len(connections) > MAX_CONNECTIONS:
                del connections[next(iter(connections))]

    def _close(self, ends: tuple[Endpoint, Endpoint], time: int, frame: int) -> None:
        """Note that the sender of a FIN or RST has ended a connection: by itself, if its peer has not before."""
        back = ends[1], ends[0]
        connections = self._open.get(ends[0][0], {})
        was_open = connections.pop(ends, False) is None
        if back in self._left:
            return
        if len(self._left) < MAX_CONNECTIONS:
            self._left.add(ends)
        if was_open and not connections:
            self.host(ends[0][0]).go(time, frame, ENDED)
