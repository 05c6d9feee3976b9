"""One connection at a service: frames in both directions, and the allowed silence.

Records for a client within one input travel in as few frames as their size allows.
"""

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.resolution.srs.client import ServiceClient
from stablecast.transports.wire import rsocket, srs
from stablecast.transports.wire.rsocket import Frame, FrameFlag, FrameKind

MAX_PAYLOAD = 16 * 1024
"""Bytes of records that share a frame."""

GREETING_TIMEOUT = 10 * SECOND
"""Allowed silence before the client has sent its own lifetime."""

MIN_LIFETIME, MAX_LIFETIME = SECOND, 600 * SECOND
"""Bounds of the silence that a client may request."""


@attrs.define
class ServiceSession:
    """One connection at a service.

    Attributes:
        connection: Its number.
        peer: Its other end.
        heard_at: Arrival of the last bytes (ns).
        lifetime: Silence after which it is closed (ns).
        set_up: True if its first frame has arrived.
        client: The registered client.
        router: True if the client is the context of a router's portal.
        hears: True if it gets the interest of contexts.
        stream: The stream for records; 0 before the request.
        spent: Frames and records that count against its allowance, at `spent_at` (ns).
        arrived: The number of received messages, by type.
        said: The number of records that were sent.
    """

    connection: int
    peer: str
    heard_at: int
    lifetime: int = GREETING_TIMEOUT
    set_up: bool = False
    client: ServiceClient | None = None
    router: bool = False
    hears: bool = False
    stream: int = 0
    decoder: rsocket.FrameDecoder = attrs.field(factory=rsocket.FrameDecoder)
    records: list[bytes] = attrs.field(factory=list)
    size: int = 0
    spent: int = 0
    spent_at: int = 0
    frames: list[bytes] = attrs.field(factory=list)
    arrived: dict[type, int] = attrs.field(factory=dict)
    said: int = 0

    def note(self, kind: type) -> None:
        """Count one received message of a type."""
        self.arrived[kind] = self.arrived.get(kind, 0) + 1

    def on_setup(self, frame: Frame) -> None:
        """Note the silence that the first frame allows. Raises WireError."""
        setup = rsocket.parse_setup(frame)
        self.lifetime = min(max(setup.lifetime_ms * MILLISECOND, MIN_LIFETIME), MAX_LIFETIME)
        self.set_up = True

    def spend(self, count: int, rate: int, now: int) -> int:
        """Count frames or records, of which `rate` a second are forgotten, and return the current count."""
        forgotten = (now - self.spent_at) * rate // SECOND
        if forgotten:
            self.spent, self.spent_at = max(0, self.spent - forgotten), now
        self.spent += count
        return self.spent

    def send(self, frame: Frame) -> None:
        """Send a frame after the records before it."""
        self._pack()
        self.frames.append(rsocket.encode(frame))

    def say(self, record: bytes) -> None:
        """Send a record on the stream, if the client has requested it."""
        if self.stream:
            if self.size + len(record) > MAX_PAYLOAD:
                self._pack()
            self.records.append(record)
            self.size += len(record)
            self.said += 1

    def answer(self, message: srs.Message) -> None:
        """Return a message on the stream, which shows that the records before it were sent before it arrived."""
        if self.stream:
            self.send(Frame(FrameKind.PAYLOAD, self.stream, FrameFlag.NEXT, payload=srs.encode(message)))

    def take_bytes(self) -> bytes:
        self._pack()
        frames, self.frames = self.frames, []
        return b"".join(frames)

    def _pack(self) -> None:
        if self.records:
            payload, self.records, self.size = b"".join(self.records), [], 0
            self.frames.append(rsocket.encode(Frame(FrameKind.PAYLOAD, self.stream, FrameFlag.NEXT, payload=payload)))
