"""LBMC messages: a short header, chained headers, payload.

Messages follow each other in a datagram or a stream. The chain of a message with payload ends with code 0; the chain of
a message without payload ends with code 255. The kind of the message determines which code is correct.
"""

import struct
from enum import IntEnum

from stablecast.core.machine.records import record
from stablecast.transports.wire.chained_headers import MIN_LENGTH, decode_chain, encode_chain
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import Header, pack, unpack

PREFIX = struct.Struct(">BBH")
"""The first bytes of every message: version and kind, code of the first header, length of the message."""
DATA_HEADER = struct.Struct(">BBHII")
"""Header of a message with payload: `PREFIX`, topic index, sequence number."""
MAX_MESSAGE = 65_535
"""Bytes of a message with all its headers."""
PAYLOAD_FOLLOWS = 0
NOTHING_FOLLOWS = 255


class MessageKind(IntEnum):
    """The kinds of messages. The upper half of the same byte is the version, 0."""

    DATA = 0
    EOT = 1
    PROACTIVE = 2
    CONTROL = 8
    RETRANSMISSION = 10


PAYLOAD_KINDS = frozenset({MessageKind.DATA, MessageKind.PROACTIVE, MessageKind.RETRANSMISSION})
"""The kinds with topic index, sequence number and payload."""
_KINDS = {int(kind): kind for kind in MessageKind}
_SHORTEST = {k: DATA_HEADER.size if k in PAYLOAD_KINDS else PREFIX.size + MIN_LENGTH for k in MessageKind}


@record
class Message:
    """One message.

    Attributes:
        kind: Determines whether the message has topic index, sequence and payload; they are 0 and empty if it has not.
        topic_index: Index of the topic on its transport, 32 bits.
        sequence: Sequence number on the topic, 32 bits, wraps.
        headers: The chained headers, in order.
        payload: The application's data, or a piece of it.
    """

    kind: MessageKind
    topic_index: int = 0
    sequence: int = 0
    headers: tuple[Header, ...] = ()
    payload: bytes = b""


def encode(message: Message) -> bytes:
    """Encode a message.

    Raises:
        WireError: If a field does not fit or the message exceeds `MAX_MESSAGE`. Also if a message without payload has a
            number or a payload, or has no header, because public dissectors do not recognise such a message.
    """
    kind = message.kind
    if kind not in PAYLOAD_KINDS:
        return _encode_bare(message)
    first, chain = encode_headers(message.headers)
    length = DATA_HEADER.size + len(chain) + len(message.payload)
    if length > MAX_MESSAGE:
        raise WireError(f"a message of {length} bytes exceeds {MAX_MESSAGE}: send it in fragments")
    try:
        lead = DATA_HEADER.pack(kind, first, length, message.topic_index, message.sequence)
    except struct.error as error:
        raise WireError(f"topic index or sequence number of {kind.name} exceed 32 bits: {error}") from error
    return lead + chain + message.payload


def encode_headers(headers: tuple[Header, ...]) -> tuple[int, bytes]:
    """Return the code of the first header before a payload, and the bytes of all of them. Raises WireError."""
    return encode_chain(headers, PAYLOAD_FOLLOWS, pack)


def _encode_bare(message: Message) -> bytes:
    if message.topic_index or message.sequence or message.payload:
        raise WireError(f"a message of kind {message.kind.name} has no topic index, number or payload")
    if not message.headers:
        raise WireError(f"a message of kind {message.kind.name} needs a header")
    first, chain = encode_chain(message.headers, NOTHING_FOLLOWS, pack)
    length = PREFIX.size + len(chain)
    if length > MAX_MESSAGE:
        raise WireError(f"a message of {length} bytes exceeds {MAX_MESSAGE}: send its headers in several")
    return PREFIX.pack(message.kind, first, length) + chain


def frame(data: bytes | bytearray | memoryview, offset: int = 0) -> tuple[MessageKind, int]:
    """Return kind and length of the message that starts at `offset`, where at least `PREFIX` must be present.

    Raises:
        WireError: If version or kind are unknown, or if the length is too short for the kind.
    """
    version_kind, _, length = PREFIX.unpack_from(data, offset)
    kind = _KINDS.get(version_kind)  # a version other than 0 is in no key
    if kind is None:
        raise WireError(f"version {version_kind >> 4}, kind {version_kind & 0xF} is not a message")
    if length < _SHORTEST[kind]:
        raise WireError(f"a message of kind {kind.name} cannot be {length} bytes long")
    return kind, length


def decode(data: bytes | memoryview, offset: int = 0) -> tuple[Message, int]:
    """Decode the message that starts at `offset`, and return it with the position of its end.

    Raises:
        WireError: If the bytes are no whole message; see also `encode`.
    """
    if len(data) - offset < PREFIX.size:
        raise WireError(f"{len(data) - offset} bytes are too few for a message")
    kind, length = frame(data, offset)
    end = offset + length
    if end > len(data):
        raise WireError(f"a message of {length} bytes ends after {len(data) - offset}")
    octets = bytes(data[offset:end])
    if kind in PAYLOAD_KINDS:
        _, first, _, topic_index, sequence = DATA_HEADER.unpack_from(octets)
        headers, start = decode_chain(octets, DATA_HEADER.size, first, PAYLOAD_FOLLOWS, unpack)
        return Message(kind, topic_index, sequence, headers, octets[start:]), end
    headers, start = decode_chain(octets, PREFIX.size, octets[1], NOTHING_FOLLOWS, unpack)
    if start < length or not headers:
        raise WireError(f"a message of kind {kind.name} has {length - start} bytes after {len(headers)} headers")
    return Message(kind, 0, 0, headers), end
