"""RSocket frames, which carry topic resolution over TCP (SRS).

A frame is a length of three bytes, a stream, a kind with flags, for some kinds a number, optional metadata, and a
payload. `FrameDecoder` splits a TCP stream into frames, and `RsocketSetup` is the payload of the first one. Peers may
extend the metadata, because public dissectors ignore it. Resumption and leases are decoded but not offered.
"""

import struct
from enum import IntEnum

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import octets_of, text_of

MAX_FRAME = 1 << 20
"""Bytes of an accepted frame without its length. Peers of SRS send no longer frames."""

FOREVER = 0x7FFF_FFFF
"""The number in a request for an endless stream; also the highest stream."""

_HEAD = struct.Struct(">IH")
_SETUP = struct.Struct(">HHII")
_KIND_SHIFT = 10
_FLAGS = 0x03FF
_LENGTH = 3


class FrameKind(IntEnum):
    SETUP = 1
    LEASE = 2
    KEEPALIVE = 3
    REQUEST_RESPONSE = 4
    REQUEST_FNF = 5
    REQUEST_STREAM = 6
    REQUEST_CHANNEL = 7
    REQUEST_N = 8
    CANCEL = 9
    PAYLOAD = 10
    ERROR = 11
    METADATA_PUSH = 12
    RESUME = 13
    RESUME_OK = 14
    EXT = 63


_KINDS = {int(kind): kind for kind in FrameKind}
_NUMBERS = {
    FrameKind.KEEPALIVE: struct.Struct(">Q"),
    FrameKind.REQUEST_STREAM: struct.Struct(">I"),
    FrameKind.REQUEST_CHANNEL: struct.Struct(">I"),
    FrameKind.REQUEST_N: struct.Struct(">I"),
    FrameKind.ERROR: struct.Struct(">I"),
}


class FrameFlag(IntEnum):
    """Flags of frames. The meaning of all but the first two depends on the kind."""

    IGNORE = 0x200
    METADATA = 0x100
    RESUME = 0x80
    RESPOND = 0x80
    LEASE = 0x40
    COMPLETE = 0x40
    NEXT = 0x20


@attrs.frozen
class Frame:
    """One frame.

    Attributes:
        kind: Its kind.
        stream: Its stream; 0 for the connection.
        flags: All flags but METADATA, which follows from `metadata`. A SETUP frame has all flags here.
        number: KEEPALIVE: the last received position; ERROR: a code; REQUEST_STREAM, _CHANNEL and _N: a number of
            payloads.
        metadata: Bytes beside the payload, or None. The metadata of a SETUP frame stay in its payload.
        payload: The remaining bytes.
    """

    kind: FrameKind
    stream: int = 0
    flags: int = 0
    number: int = 0
    metadata: bytes | None = None
    payload: bytes = b""


@attrs.frozen
class RsocketSetup:
    """The client's terms of a connection: keepalive interval and lifetime in milliseconds, and two media types."""

    keepalive_ms: int
    lifetime_ms: int
    metadata_type: str = "application/octet-stream"
    data_type: str = "application/octet-stream"
    major: int = 1
    minor: int = 0


def setup_frame(setup: RsocketSetup) -> Frame:
    """Return the first frame of a connection. Raises WireError if a field does not fit."""
    try:
        head = _SETUP.pack(setup.major, setup.minor, setup.keepalive_ms, setup.lifetime_ms)
    except struct.error as error:
        raise WireError(f"{setup!r} does not fit its layout: {error}") from error
    return Frame(FrameKind.SETUP, payload=head + _give_type(setup.metadata_type) + _give_type(setup.data_type))


def parse_setup(frame: Frame) -> RsocketSetup:
    """Return the terms in a SETUP frame. Bytes after the media types are ignored.

    Raises:
        WireError: If it is too short.
    """
    payload, at = frame.payload, _SETUP.size
    if len(payload) < at:
        raise WireError(f"a SETUP frame of {len(payload)} bytes is too short")
    major, minor, keepalive_ms, lifetime_ms = _SETUP.unpack_from(payload)
    if frame.flags & FrameFlag.RESUME:
        at += 2 + int.from_bytes(payload[at : at + 2])
    metadata_type, at = _take_type(payload, at)
    data_type, _ = _take_type(payload, at)
    return RsocketSetup(keepalive_ms, lifetime_ms, metadata_type, data_type, major, minor)


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame, with its length. Raises WireError if a field does not fit."""
    flags, body = frame.flags, frame.payload
    if frame.metadata is not None:
        flags |= FrameFlag.METADATA
        body = len(frame.metadata).to_bytes(_LENGTH) + frame.metadata + body
    number = _NUMBERS.get(frame.kind)
    try:
        if number is not None:
            body = number.pack(frame.number) + body
        octets = _HEAD.pack(frame.stream, frame.kind << _KIND_SHIFT | flags) + body
    except struct.error as error:
        raise WireError(f"{frame!r} does not fit its layout: {error}") from error
    if len(octets) > MAX_FRAME:
        raise WireError(f"a frame of {len(octets)} bytes exceeds {MAX_FRAME}")
    return len(octets).to_bytes(_LENGTH) + octets


def decode(octets: bytes) -> Frame:
    """Decode the bytes of one frame, without their length.

    Raises:
        WireError: If they are no frame.
    """
    if len(octets) < _HEAD.size:
        raise WireError(f"a frame of {len(octets)} bytes is too short")
    stream, word = _HEAD.unpack_from(octets)
    kind, flags, at = _KINDS.get(word >> _KIND_SHIFT), word & _FLAGS, _HEAD.size
    if kind is None:
        raise WireError(f"there is no frame of kind {word >> _KIND_SHIFT}")
    if kind is FrameKind.SETUP:
        return Frame(kind, stream, flags, payload=octets[at:])
    number, layout = 0, _NUMBERS.get(kind)
    if layout is not None:
        if len(octets) < at + layout.size:
            raise WireError(f"a frame of kind {kind.name} of {len(octets)} bytes is too short")
        number = layout.unpack_from(octets, at)[0]
        at += layout.size
    metadata = None
    if flags & FrameFlag.METADATA:
        flags &= ~FrameFlag.METADATA
        metadata, at = _take_counted(octets, at, _LENGTH)
    return Frame(kind, stream, flags, number, metadata, octets[at:])


@attrs.define
class FrameDecoder:
    """Splits one TCP stream into frames; `pending` holds the bytes of an incomplete frame."""

    pending: bytes = b""

    def feed(self, data: bytes) -> list[Frame]:
        """Feed the next bytes of the stream, and return the frames that they complete.

        Raises:
            WireError: If the stream is broken, at any byte. Disconnect the peer; the stream cannot be resumed.
        """
        data = self.pending + data
        found, at = [], 0
        while len(data) - at >= _LENGTH:
            end = at + _LENGTH + int.from_bytes(data[at : at + _LENGTH])
            if end - at - _LENGTH > MAX_FRAME:
                raise WireError(f"a frame of {end - at - _LENGTH} bytes exceeds {MAX_FRAME}")
            if end > len(data):
                break
            found.append(decode(data[at + _LENGTH : end]))
            at = end
        self.pending = data[at:]
        return found


def _take_counted(octets: bytes, at: int, width: int) -> tuple[bytes, int]:
    start = at + width
    end = start + int.from_bytes(octets[at:start])
    if start > len(octets) or end > len(octets):
        raise WireError("a counted field goes on after its frame")
    return octets[start:end], end


def _take_type(octets: bytes, at: int) -> tuple[str, int]:
    media, end = _take_counted(octets, at, 1)
    return text_of(media), end


def _give_type(media: str) -> bytes:
    octets = octets_of(media)
    if len(octets) > 255:
        raise WireError(f"the media type {media!r} is too long")
    return bytes((len(octets),)) + octets
