"""RSocket frames: what topic resolution over TCP (SRS) travels in.

A frame is a length of three bytes, a stream, a kind with flags, for some kinds a number, perhaps metadata, and a
payload. `Decoder` splits a TCP stream into frames; `Setup` is the payload of the first one. What peers may extend is
the metadata: public dissectors let it pass. Resumption and leases are read but not offered.
"""

import struct
from enum import IntEnum

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import octets_of, text_of

MAX_FRAME = 1 << 20
"""Bytes of a frame that is accepted, without its length; a longer one is no SRS peer's, or a giant's."""

FOREVER = 0x7FFF_FFFF
"""The number of a request for a stream without end; also the highest stream."""

_HEAD = struct.Struct(">IH")
_SETUP = struct.Struct(">HHII")
_KIND_SHIFT = 10
_FLAGS = 0x03FF
_LENGTH = 3


class FrameKind(IntEnum):
    """The kinds of frames."""

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


class Flag(IntEnum):
    """Bits whose meaning depends on the kind, but for the first two."""

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
        kind: What it is.
        stream: Its stream; 0 for the connection.
        flags: All but METADATA, which `metadata` tells; of a SETUP frame all.
        number: KEEPALIVE: the last received position; ERROR: a code; REQUEST_STREAM, _CHANNEL and _N: how many.
        metadata: Bytes beside the payload, or None; of a SETUP frame they are left in the payload.
        payload: The rest.
    """

    kind: FrameKind
    stream: int = 0
    flags: int = 0
    number: int = 0
    metadata: bytes | None = None
    payload: bytes = b""


@attrs.frozen
class Setup:
    """How a client wants the connection kept: keepalive interval and lifetime in milliseconds, and two media types."""

    keepalive_ms: int
    lifetime_ms: int
    metadata_type: str = "application/octet-stream"
    data_type: str = "application/octet-stream"
    major: int = 1
    minor: int = 0


def setup_frame(setup: Setup) -> Frame:
    """The first frame of a connection.

    Raises:
        WireError: If a field does not fit.
    """
    try:
        head = _SETUP.pack(setup.major, setup.minor, setup.keepalive_ms, setup.lifetime_ms)
    except struct.error as error:
        raise WireError(f"{setup!r} does not fit its layout: {error}") from error
    return Frame(FrameKind.SETUP, payload=head + _give_type(setup.metadata_type) + _give_type(setup.data_type))


def parse_setup(frame: Frame) -> Setup:
    """What a SETUP frame asks for; what follows the media types is not looked at.

    Raises:
        WireError: If it is too short.
    """
    payload, at = frame.payload, _SETUP.size
    if len(payload) < at:
        raise WireError(f"a SETUP frame of {len(payload)} bytes is too short")
    major, minor, keepalive_ms, lifetime_ms = _SETUP.unpack_from(payload)
    if frame.flags & Flag.RESUME:
        at += 2 + int.from_bytes(payload[at : at + 2])
    metadata_type, at = _take_type(payload, at)
    data_type, _ = _take_type(payload, at)
    return Setup(keepalive_ms, lifetime_ms, metadata_type, data_type, major, minor)


def encode(frame: Frame) -> bytes:
    """The bytes of a frame, with its length.

    Raises:
        WireError: If a field does not fit.
    """
    flags, body = frame.flags, frame.payload
    if frame.metadata is not None:
        flags |= Flag.METADATA
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
    """The frame of some bytes, without their length.

    Raises:
        WireError: If they are none.
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
    if flags & Flag.METADATA:
        flags &= ~Flag.METADATA
        metadata, at = _take_counted(octets, at, _LENGTH)
    return Frame(kind, stream, flags, number, metadata, octets[at:])


@attrs.define
class Decoder:
    """Splits one TCP stream into frames; `pending` are the bytes of an incomplete one."""

    pending: bytes = b""

    def feed(self, data: bytes) -> list[Frame]:
        """Takes the next bytes of the stream and returns the frames that they complete.

        Raises:
            WireError: If the stream is broken, at whatever byte shows it; such a peer is cut off, not read on.
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
    """Bytes behind their length of `width` bytes, and where they end."""
    start = at + width
    end = start + int.from_bytes(octets[at:start])
    if start > len(octets) or end > len(octets):
        raise WireError("a counted field goes on behind its frame")
    return octets[start:end], end


def _take_type(octets: bytes, at: int) -> tuple[str, int]:
    media, end = _take_counted(octets, at, 1)
    return text_of(media), end


def _give_type(media: str) -> bytes:
    octets = octets_of(media)
    if len(octets) > 255:
        raise WireError(f"the media type {media!r} is too long")
    return bytes((len(octets),)) + octets
