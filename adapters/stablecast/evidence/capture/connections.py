"""Directions of TCP connections: each orders segments, reads messages, and settles the verdict of each frame.

Names of transport sessions, as logs write them: they tell the source of a packet.
"""

from collections.abc import Sequence

from stablecast.core.machine.records import record
from stablecast.evidence.capture.ip import Endpoint, FrameVerdict, TcpSegment, gravest
from stablecast.evidence.capture.layers import Decoded, Layer, undecoded
from stablecast.evidence.capture.ports import PortPlan, TrafficKind, TransportKey
from stablecast.evidence.capture.streams import CapturedStreamReader, FrameReader, Item, MessageReader
from stablecast.evidence.capture.tcp import HalfStream, StreamChunk
from stablecast.evidence.capture.uniform_layers import BriefReader
from stablecast.transports.wire import lbtrm, lbtru

_NAMES = {TrafficKind.LBTRU: "LBTRU", TrafficKind.LBTTCP: "TCP", TrafficKind.STORE: "TCP", TrafficKind.SRS: "SRS"}
_TO_SOURCE = (lbtru.Nak, lbtru.Ack, lbtru.Request)


def transport_of(
    plan: PortPlan, kind: TrafficKind | None, source: Endpoint, target: Endpoint, layers: Sequence[Layer]
) -> TransportKey | None:
    """Return the source's transport that a packet belongs to; None if there is none, or it is unknown."""
    match kind, layers[0].record if layers else None:
        case TrafficKind.LBTRM, lbtrm.Nak() as nak:
            return target[0], nak.nak_port, nak.session_id
        case TrafficKind.LBTRM, lbtrm.Data() | lbtrm.SessionMessage() | lbtrm.Ncf() as packet:
            return source[0], packet.nak_port, packet.session_id
        case TrafficKind.LBTRU, record if isinstance(record, lbtru.Packet):
            end = target if isinstance(record, _TO_SOURCE) else source
            return *end, lbtru.session_of(record)
        case ((TrafficKind.LBTTCP | TrafficKind.STORE | TrafficKind.SRS), _):
            return *plan.listener(kind, source, target), None
        case _:
            return None


def session_name(plan: PortPlan, kind: TrafficKind | None, transport: TransportKey | None) -> str:
    """Return the name of a transport: kind, address, port, session, group and port as far as they are known."""
    if transport is None or kind is None:
        return ""
    address, port, session = transport
    if kind is not TrafficKind.LBTRM:
        return f"{_NAMES[kind]}:{address}:{port}" + ("" if session is None else f":{session:08x}")
    group = plan.groups.get(transport)
    return f"LBTRM:{address}:{port}:{session:08x}" + (f":{group[0]}:{group[1]}" if group else "")


@record
class StreamProgress:
    """The result of a segment, or of the end.

    Attributes:
        decoded: Layers and problems of the messages that are complete now.
        settled: Frames whose verdict is final now.
        lost: Bytes before or between them that were not captured.
    """

    decoded: Decoded
    settled: dict[int, FrameVerdict]
    lost: int = 0


class Direction:
    """A direction of a connection.

    Args:
        kind: The protocol.
        roundtrip: Whether to encode everything again and compare.
        start: The first sequence number, if it is known without a SYN.
        brief: Whether equal messages make one layer.
    """

    def __init__(self, kind: TrafficKind, roundtrip: bool, start: int | None = None, brief: bool = False) -> None:
        self.kind = kind
        self._roundtrip = roundtrip
        self._brief = brief
        self._half = HalfStream(start)
        self._reader: CapturedStreamReader | None = None
        self._lost = 0
        self._open: dict[int, FrameVerdict] = {}
        self._earlier: dict[int, list[int]] = {}

    def ends_with(self, segment: TcpSegment) -> bool:
        """Return whether a segment opens another connection between the same endpoints."""
        return segment.syn and self._half.opens_anew(segment.sequence)

    def read_segment(self, segment: TcpSegment, *frames: int) -> StreamProgress:
        """Read the next segment and settle the frames that it came in; the last one stands for all."""
        if not segment.payload and not segment.missing and not segment.syn and len(frames) == 1:
            # An acknowledgement of TCP: every second frame is one.
            return StreamProgress(Decoded(), {frames[0]: FrameVerdict.DECODED})
        *earlier, frame = frames
        if earlier:
            self._earlier[frame] = earlier
        first = segment.sequence
        if segment.syn:
            self._half.open(first)
            first += 1
        self._open[frame] = FrameVerdict.DECODED
        items = [_cut(segment, frame)] if segment.missing else []
        if segment.payload or segment.missing:
            items += self._read(self._half.feed(first, segment.payload, frame, segment.missing))
        return self._progress(items)

    def close(self) -> StreamProgress:
        """Read the rest after the last segment."""
        items = self._read(self._half.close())
        if self._reader is not None:
            items += self._reader.close()
        return self._progress(items)

    def _read(self, chunks: list[StreamChunk]) -> list[Item]:
        items = []
        for chunk in chunks:
            if self._reader is None:
                messages = BriefReader if self._brief else MessageReader
                reader = FrameReader if self.kind is TrafficKind.SRS else messages
                self._reader = reader(self._half.whole, self._roundtrip)
            if chunk.lost:
                self._lost += chunk.lost
                items += self._reader.lose(chunk.lost)
            items += self._reader.feed(chunk.octets, chunk.frame)
        return items

    def _progress(self, items: list[Item]) -> StreamProgress:
        for item in items:
            if item.decoded.problems:
                verdicts = [problem.verdict for problem in item.decoded.problems]
                for frame in item.frames:
                    self._open[frame] = gravest([self._open.get(frame, FrameVerdict.DECODED), *verdicts])
        layers = tuple([layer for item in items for layer in item.decoded.layers])
        problems = tuple([problem for item in items for problem in item.decoded.problems])
        lost, self._lost = self._lost, 0
        return StreamProgress(Decoded(layers, problems), self._settled(), lost)

    def _settled(self) -> dict[int, FrameVerdict]:
        """Return the frames without a waiting byte."""
        if self._half.idle and (self._reader is None or self._reader.idle):
            settled, self._open = self._open, {}
        else:
            waiting = self._half.frames if self._reader is None else self._half.frames | self._reader.frames
            settled = {frame: verdict for frame, verdict in self._open.items() if frame not in waiting}
            for frame in settled:
                del self._open[frame]
        for frame in [*settled] if self._earlier else ():
            settled.update(dict.fromkeys(self._earlier.pop(frame, []), settled[frame]))
        return settled


def _cut(segment: TcpSegment, frame: int) -> Item:
    text = f"{segment.missing} bytes of the segment were not captured"
    return Item(undecoded(FrameVerdict.INCOMPLETE, text), (frame,))
