"""One connection at a service: frames in, frames out, and how long it may be silent.

What is said to a client within one input travels in as few frames as its size allows.
"""

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.resolution.srs.client import ServiceClient
from stablecast.transports.wire import rsocket, srs
from stablecast.transports.wire.rsocket import Frame, FrameFlag, FrameKind

MAX_PAYLOAD = 16 * 1024
"""Bytes of records that share a frame."""

GREETING_TIMEOUT = 10 * SECOND
"""Silence that a connection is allowed before it has said how often it speaks."""

MIN_LIFETIME, MAX_LIFETIME = SECOND, 600 * SECOND
"""Bounds of the silence that a client may ask for."""


@attrs.define
class ServiceSession:
    """One connection.

    Attributes:
        connection: Its number.
        peer: Where it comes from.
        heard_at: When the last bytes came (ns).
        lifetime: Silence after which it is cut (ns).
        set_up: Whether its first frame came.
        client: Whose connection it is, once registered.
        stream: The stream that records go out on; 0 until it was asked for.
        spent: Frames and records that count against its allowance, at `spent_at` (ns).
    """

    connection: int
    peer: str
    heard_at: int
    lifetime: int = GREETING_TIMEOUT
    set_up: bool = False
    client: ServiceClient | None = None
    stream: int = 0
    decoder: rsocket.FrameDecoder = attrs.field(factory=rsocket.FrameDecoder)
    records: list[bytes] = attrs.field(factory=list)
    size: int = 0
    spent: int = 0
    spent_at: int = 0
    frames: list[bytes] = attrs.field(factory=list)

    def on_setup(self, frame: Frame) -> None:
        """The first frame says how long the client may be silent. Raises WireError."""
        setup = rsocket.parse_setup(frame)
        self.lifetime = min(max(setup.lifetime_ms * MILLISECOND, MIN_LIFETIME), MAX_LIFETIME)
        self.set_up = True

    def spend(self, count: int, rate: int, now: int) -> int:
        """Frames or records came, `rate` a second are forgotten; returns how many count by now."""
        forgotten = (now - self.spent_at) * rate // SECOND
        if forgotten:
            self.spent, self.spent_at = max(0, self.spent - forgotten), now
        self.spent += count
        return self.spent

    def send(self, frame: Frame) -> None:
        """Sends a frame, behind the records said before."""
        self._pack()
        self.frames.append(rsocket.encode(frame))

    def say(self, record: bytes) -> None:
        """Sends a record on the stream, if it was asked for."""
        if self.stream:
            if self.size + len(record) > MAX_PAYLOAD:
                self._pack()
            self.records.append(record)
            self.size += len(record)

    def answer(self, message: srs.Message) -> None:
        """Sends a message back on the stream: what stands before it was said before it came."""
        if self.stream:
            self.send(Frame(FrameKind.PAYLOAD, self.stream, FrameFlag.NEXT, payload=srs.encode(message)))

    def take(self) -> bytes:
        """What there is to send."""
        self._pack()
        frames, self.frames = self.frames, []
        return b"".join(frames)

    def _pack(self) -> None:
        if self.records:
            payload, self.records, self.size = b"".join(self.records), [], 0
            self.frames.append(rsocket.encode(Frame(FrameKind.PAYLOAD, self.stream, FrameFlag.NEXT, payload=payload)))
