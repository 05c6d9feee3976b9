"""Captures to decoded packets, one for each frame, whole or part by part, for judges and for people.

    plan = survey(path)
    for packet in packets(path, plan): ...

A part is the frames between two marks (`files.marks`). A plan is small and made once. A part that begins in the middle
of TCP streams finds its first messages by itself, but misses those that begin before it.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path

import attrs

from stablecast.core.machine.records import record
from stablecast.core.machine.units import SECOND
from stablecast.evidence.capture import layers
from stablecast.evidence.capture.connections import Direction, session_name, transport_of
from stablecast.evidence.capture.copies import COPY_NS, SOON_NS, RecentPackets
from stablecast.evidence.capture.files import CaptureFrame, CutError, FrameMark, frames
from stablecast.evidence.capture.ip import (
    TCP,
    UDP,
    Endpoint,
    FrameVerdict,
    PortUnreachable,
    TcpSegment,
    UdpDatagram,
    content,
    gravest,
)
from stablecast.evidence.capture.layers import CapturedLargeMessages, Decoded, Layer, LayerProblem, undecoded
from stablecast.evidence.capture.network import Carried, IpNetwork, WholePacket
from stablecast.evidence.capture.ports import PROTOCOLS, PortPlan, TrafficKind, TransportKey
from stablecast.evidence.capture.traffic_survey import survey
from stablecast.evidence.capture.uniform_layers import messages

FAULTS = (
    FrameVerdict.DIFFERENT,
    FrameVerdict.UNKNOWN,
    FrameVerdict.INCOMPLETE,
    FrameVerdict.DAMAGED,
    FrameVerdict.MALFORMED,
)
"""Verdicts on frames of ours that were not decoded to the end."""


MAX_DIRECTIONS = 1 << 16
"""Followed directions of TCP connections; the one silent for longest is dropped for a new one."""
SKEW_NS = 1 * SECOND
"""Frames captured at several places may be out of order, but not by more than this."""
_QUERIES, _ANSWERS = slice(1, 2), slice(2, 4)
"""The numbers of queries and of advertisements in a datagram of resolution."""
MAX_NAMES = 1 << 16
"""Flows and sessions whose kinds and names are cached."""


@record
class CapturePacket:
    """The contents of one frame, or the rest at the end of a stream.

    Attributes:
        number: The frame, from 1; 0 for the rest at the end of a stream.
        offset: Offset of its record in the file.
        time_ns: Time of capture, nanoseconds since 1970; the rest has the time of the last frame.
        source, target: The endpoints; None for traffic of others.
        kind: The protocol; None for traffic of others.
        transport: The source's transport, as in `PortPlan.topics`; None if there is none.
        session: The name of that transport, as in logs; empty if there is none.
        layers: The layers of all messages that this frame completes.
        verdict: The verdict on the frame; PART if a later packet settles it.
        problems: Defects of these layers.
        settles: Earlier frames with PART, and their final verdicts.
        lost: Bytes of the stream before or between its messages that were not captured.
        anew: Whether it opens another connection between endpoints that had one.
        refused: The datagram that a host without a listener refuses by ICMP.
        cut: Whether the capture has not all bytes of the frame.
        copied: Whether a packet of resolution or TCP was captured before. Datagrams with numbers tell it themselves.
    """

    number: int
    offset: int
    time_ns: int
    source: Endpoint | None
    target: Endpoint | None
    kind: TrafficKind | None
    transport: TransportKey | None
    session: str
    layers: tuple[Layer, ...]
    verdict: FrameVerdict
    problems: tuple[LayerProblem, ...] = ()
    settles: tuple[tuple[int, FrameVerdict], ...] = ()
    lost: int = 0
    anew: bool = False
    refused: PortUnreachable | None = None
    cut: bool = False
    copied: bool = False


@attrs.define
class CaptureTally:
    """Counts so far.

    Attributes:
        frames: Frames by their verdict.
        types: Layers by protocol and kind, and their parts by name.
    """

    frames: Counter[FrameVerdict] = attrs.field(factory=Counter)
    types: Counter[str] = attrs.field(factory=Counter)

    def add(self, packet: CapturePacket) -> None:
        if packet.number:
            self.frames[packet.verdict] += 1
        for _, verdict in packet.settles:
            self.frames[FrameVerdict.PART] -= 1
            self.frames[verdict] += 1
        for layer in packet.layers:
            self.types[layer.type] += 1
            self.types.update(layer.parts)

    @property
    def packets(self) -> int:
        return self.frames.total()

    @property
    def clean(self) -> bool:
        """Return whether something is ours and all of it was decoded."""
        return self.frames[FrameVerdict.DECODED] > 0 and not self.faulty

    @property
    def faulty(self) -> bool:
        """Return whether something that is ours was not decoded."""
        return any(self.frames[verdict] for verdict in FAULTS)

    def as_json(self) -> dict[str, object]:
        counts = {verdict.value: self.frames[verdict] for verdict in FrameVerdict if verdict is not FrameVerdict.PART}
        return {"packets": self.packets, **counts, "types": dict(sorted(self.types.items()))}


def packets(
    path: Path,
    plan: PortPlan | None = None,
    start: FrameMark | None = None,
    stop: int | None = None,
    roundtrip: bool = False,
    brief: bool = False,
    on_segment: "SegmentWatch | None" = None,
) -> Iterator[CapturePacket]:
    """Yield the packets of a capture, or of the part from `start` to before the offset `stop`.

    Args:
        path: The file.
        plan: The protocols of the endpoints; default: a survey of the whole file.
        start: The first frame; default: the first one of the file.
        stop: See `frames`.
        roundtrip: Whether to encode everything again and compare.
        brief: Whether equal messages make one layer (`uniform_layers`), as judges want it.
        on_segment: See `CaptureDecoder`.

    Raises:
        CaptureError: See `frames`. If a file was cut, all packets come before the error.
        OSError: If it cannot be read.
    """
    decoder = CaptureDecoder(survey(path) if plan is None else plan, roundtrip, brief, on_segment)
    try:
        for frame in frames(path, start, stop):
            yield from decoder.decode_frame(frame)
    except CutError:
        yield from decoder.close()
        raise
    yield from decoder.close()


_Readers = dict[TrafficKind, Callable[[bytes, bool], Decoded]]
_READERS: _Readers = {
    TrafficKind.LBMR: layers.resolution,
    TrafficKind.LBTRM: layers.multicast,
    TrafficKind.LBTRU: layers.unicast,
}
_BRIEF_READERS: _Readers = {
    **_READERS,
    TrafficKind.LBTRM: partial(layers.multicast, inside=messages),
    TrafficKind.LBTRU: partial(layers.unicast, inside=messages),
}


SegmentWatch = Callable[[TcpSegment, int, int, bool], None]
"""Take a segment, its time in ns since 1970, its frame, and whether its connection is known as ours."""


class CaptureDecoder:
    """Decoder of frames, one by one.

    Args:
        plan: The protocols of the endpoints.
        roundtrip: Whether to encode everything again and compare.
        brief: Whether equal messages make one layer.
        on_segment: Called with each TCP segment before the packet is made of it.
    """

    def __init__(
        self, plan: PortPlan, roundtrip: bool = False, brief: bool = False, on_segment: SegmentWatch | None = None
    ) -> None:
        self._plan = plan
        self._on_segment = on_segment
        self._roundtrip = roundtrip
        self._brief = brief
        self._readers = _BRIEF_READERS if brief else _READERS
        # A plan changes only before `refresh`.
        self._kind = lru_cache(MAX_NAMES)(plan.kind)
        self._line = lru_cache(MAX_NAMES)(partial(transport_of, plan))
        self._name = lru_cache(MAX_NAMES)(partial(session_name, plan))
        self._network = IpNetwork(plan.checking)
        self._directions: OrderedDict[tuple[Endpoint, Endpoint], Direction] = OrderedDict()
        self._large = CapturedLargeMessages()
        self._now_ns = 0
        self._recent, self._copied = RecentPackets(), False
        self._starts = plan.starts
        self._last = CaptureFrame(0, 0, 0, 0, b"", 0)

    def refresh(self) -> None:
        """Forget what was derived from the plan, because the plan has learned."""
        for cache in (self._kind, self._line, self._name):
            cache.cache_clear()

    def decode_frame(self, frame: CaptureFrame) -> Iterator[CapturePacket]:
        """Yield the packet of a frame, and the rest of a stream that it ends."""
        if frame.time_ns < self._now_ns - SKEW_NS:  # another capture begins, or the clock was set
            yield from self.close()
            self._now_ns, self._starts, self._recent = 0, {}, RecentPackets()
        self._now_ns = max(self._now_ns, frame.time_ns)
        self._last = frame
        carried = self._network.unwrap(frame)
        if carried is None:
            yield self._packet(FrameVerdict.PART, number=frame.number)
            for whole in self._network.abandon():
                yield self._abandoned(whole)
            return
        self._copied = self._repeats(carried)
        match carried.content:
            case UdpDatagram() | TcpSegment() as damaged if carried.damaged:
                yield self._damaged(damaged, carried.frames)
            case UdpDatagram() as datagram:
                yield self._datagram(datagram, carried.frames)
            case TcpSegment() as segment:
                yield from self._segment(segment, carried.frames)
            case PortUnreachable() as refused:
                yield attrs.evolve(self._foreign(carried.frames), refused=refused)
            case _:
                yield self._foreign(carried.frames)

    def _repeats(self, carried: Carried) -> bool:
        """Return whether a datagram of resolution, or a segment of ours, was captured before."""
        now_ns, ident = self._last.time_ns, carried.ident
        match carried.content:
            case UdpDatagram(source, target, payload) if self._kind(UDP, source, target) is TrafficKind.LBMR:
                # Several queries may have the same answer at once, so only a query is known again without a number.
                if ident or (payload[_QUERIES] > b"\0" and payload[_ANSWERS] == b"\0\0"):
                    within_ns = COPY_NS if ident else SOON_NS
                    return self._recent.repeats((source, target, ident, payload), now_ns, within_ns)
            case TcpSegment() as segment if ident or segment.payload:
                if self._kind(TCP, segment.source, segment.target) is not None:
                    return self._recent.repeats((ident, segment), now_ns)
        return False

    def close(self) -> Iterator[CapturePacket]:
        for whole in self._network.close():
            yield self._abandoned(whole)
        while self._directions:
            yield from self._close(next(iter(self._directions)))

    def _datagram(self, datagram: UdpDatagram, numbers: tuple[int, ...]) -> CapturePacket:
        kind = self._kind(UDP, datagram.source, datagram.target)
        return (
            self._foreign(numbers)
            if kind is None
            else self._ours(kind, datagram, numbers, self._decode(kind, datagram))
        )

    def _damaged(self, content: UdpDatagram | TcpSegment, numbers: tuple[int, ...]) -> CapturePacket:
        """Return the packet of damaged content. A lost segment comes again, or its bytes are missing."""
        kind = self._kind(UDP if isinstance(content, UdpDatagram) else TCP, content.source, content.target)
        damaged = undecoded(FrameVerdict.DAMAGED, "a checksum is wrong")
        return self._foreign(numbers) if kind is None else self._ours(kind, content, numbers, damaged)

    def _decode(self, kind: TrafficKind, datagram: UdpDatagram) -> Decoded:
        if datagram.missing > datagram.cut:
            text = f"the datagram announces {datagram.missing} bytes more than its packet has"
            return undecoded(FrameVerdict.MALFORMED, text)
        if datagram.missing:
            text = f"{datagram.missing} bytes of the datagram were not captured"
            return undecoded(FrameVerdict.INCOMPLETE, text)
        return self._readers[kind](datagram.payload, self._roundtrip)

    def _transport(
        self, kind: TrafficKind | None, ends: tuple[Endpoint, Endpoint], found: tuple[Layer, ...]
    ) -> TransportKey | None:
        if kind is None or PROTOCOLS[kind] == UDP:
            return transport_of(self._plan, kind, *ends, found)
        return self._line(kind, *ends, ())

    def _segment(self, segment: TcpSegment, numbers: tuple[int, ...]) -> Iterator[CapturePacket]:
        ends = (segment.source, segment.target)
        kind = self._kind(TCP, *ends)
        number = numbers[-1]
        if self._on_segment is not None:
            self._on_segment(segment, self._last.time_ns, number, kind is not None)
        if kind is None:
            yield self._foreign(numbers)
            return
        direction = self._directions.get(ends)
        anew = direction is not None and direction.ends_with(segment)
        if anew:
            yield from self._close(ends)
            direction = None
        if direction is None:
            start = self._starts.get(ends)
            direction = self._directions[ends] = Direction(kind, self._roundtrip, start, self._brief)
            if len(self._directions) > MAX_DIRECTIONS:
                yield from self._close(next(iter(self._directions)))
        self._directions.move_to_end(ends)
        progress = direction.read_segment(segment, *numbers)
        verdict = progress.settled.pop(number, FrameVerdict.PART)
        settles = tuple(progress.settled.items())
        packet = self._packet(verdict, number=number, ends=ends, kind=kind, found=progress.decoded, settles=settles)
        yield attrs.evolve(packet, lost=progress.lost, anew=anew) if progress.lost or anew else packet

    def _close(self, ends: tuple[Endpoint, Endpoint]) -> Iterator[CapturePacket]:
        direction = self._directions.pop(ends)
        progress = direction.close()
        if progress.settled or progress.decoded.layers:
            verdict = gravest(list(progress.settled.values()))
            settles = tuple(progress.settled.items())
            packet = self._packet(verdict, ends=ends, kind=direction.kind, found=progress.decoded, settles=settles)
            yield attrs.evolve(packet, lost=progress.lost)

    def _abandoned(self, whole: WholePacket) -> CapturePacket:
        """Return the packet, without a number, of an incomplete datagram; its first piece names its endpoints."""
        numbers = (*whole.frames, 0)
        first = content(whole.packet) if whole.packet.offset == 0 else None
        if first is None or isinstance(first, PortUnreachable):
            return self._foreign(numbers)
        kind = self._kind(whole.packet.protocol, first.source, first.target)
        if kind is None:
            return self._foreign(numbers)
        lost = undecoded(FrameVerdict.INCOMPLETE, "pieces of the datagram were not captured")
        return self._ours(kind, first, numbers, lost)

    def _foreign(self, numbers: tuple[int, ...]) -> CapturePacket:
        """Return the packet of traffic of others; it settles the frames before the last one."""
        return self._packet(FrameVerdict.OTHER, number=numbers[-1], settles=_earlier(numbers, FrameVerdict.OTHER))

    def _ours(
        self, kind: TrafficKind, content: UdpDatagram | TcpSegment, numbers: tuple[int, ...], found: Decoded
    ) -> CapturePacket:
        """Return the packet of content that came in these frames; its problems decide the verdict."""
        verdict = gravest([problem.verdict for problem in found.problems])
        ends, settles = (content.source, content.target), _earlier(numbers, verdict)
        return self._packet(verdict, number=numbers[-1], ends=ends, kind=kind, found=found, settles=settles)

    def _packet(
        self,
        verdict: FrameVerdict,
        number: int = 0,
        ends: tuple[Endpoint, Endpoint] | None = None,
        kind: TrafficKind | None = None,
        found: Decoded | None = None,
        settles: tuple[tuple[int, FrameVerdict], ...] = (),
    ) -> CapturePacket:
        source, target = ends or (None, None)
        found = found or Decoded()
        transport = self._transport(kind, ends, found.layers) if ends else None
        return CapturePacket(
            number=number,
            offset=self._last.offset,
            time_ns=self._last.time_ns,
            source=source,
            target=target,
            kind=kind,
            transport=transport,
            session=self._name(kind, transport),
            layers=self._large.reassemble(ends, found.layers) if ends and not self._brief else found.layers,
            verdict=verdict,
            problems=found.problems,
            settles=settles,
            cut=self._last.length > len(self._last.octets),
            copied=self._copied and kind is not None and number > 0,
        )


def _earlier(numbers: tuple[int, ...], verdict: FrameVerdict) -> tuple[tuple[int, FrameVerdict], ...]:
    return tuple((number, verdict) for number in numbers[:-1])
