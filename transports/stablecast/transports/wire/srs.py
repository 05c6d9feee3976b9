"""SRS: the messages of topic resolution over TCP, which travel in RSocket frames.

A message is a 16-bit ID and a fixed layout in which texts stand behind a length byte that counts their NUL. IDs 1 to 3
stand alone in a frame, 4 to 12 may follow each other. As in `fields`, an attrs class with annotations is all there is
about a message; here the texts stand among the numbers, so the classes have a codec of their own.

One small text rides in the metadata of the registration and of its answer, where dissectors let it pass: a context's
*hello* says which of its connections this is (formal design, 7.10).
"""

import struct
from itertools import groupby
from typing import Annotated, Any, ClassVar, get_args

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import (
    I32,
    U8,
    U16,
    U32,
    U64,
    Fixed,
    Ipv4,
    Octets8,
    Octets32,
    octets_of,
    text_of,
)

MAX_TEXT = 254
"""Bytes of a text without its NUL."""

MAX_DIGITS = 18
"""Digits of the number of a connection."""

ENDED = -1
"""The cost in a source's record that says: it is no more (SER)."""

RELEASE = 0x060E0000
"""The release whose messages these are, 6.14.0.0."""

FLOOD, FILTER = 0, 1
"""Interest modes: all sources are sent to a context, or those that match its interest."""


@attrs.frozen
class CountedText:
    """A field that is a text behind the length byte that counts it and its NUL."""


Counted = Annotated[str, CountedText()]


@attrs.frozen(kw_only=True)
class RegistrationRequest:
    """A context's first words; address and port are those of its connection, the two IDs together name it."""

    ID: ClassVar[int] = 1
    APPLICATION: ClassVar[int] = 0
    app_type: U8 = 0
    address: Ipv4
    port: U16
    session_id: U32
    host_id: U32
    version: U8 = 1
    interest_mode: U8 = FILTER
    domain: U32 = 0


@attrs.frozen(kw_only=True)
class RegistrationResponse:
    """The service's answer."""

    ID: ClassVar[int] = 2
    client_id: U64
    domain: U32 = 0
    version: U8 = 1


@attrs.frozen(kw_only=True)
class StreamRequest:
    """The context has told all, and wants to be told. The service sends it back when it has told all."""

    ID: ClassVar[int] = 3
    unused: U8 = 0


@attrs.frozen(kw_only=True)
class SourceInfo:
    """A source is there (SIR), or, with the cost `ENDED`, is no more (SER)."""

    ID: ClassVar[int] = 4
    otid: Octets32
    topic: Counted
    source: Counted
    host_id: U32 = 0
    topic_index: U32
    functionality: U32
    request_address: Ipv4
    request_port: U16
    domain: U32 = 0
    encryption: U8 = 0
    compression: U8 = 0
    ulb_source_id: U32 = 0
    ulb_queue_id: U32 = 0
    ulb_registration_id: U64 = 0
    instance: Octets8
    context_type: U8 = 0
    version: U32 = RELEASE
    version_flags: U32 = 0
    ttl: U16 = 60
    cost: I32 = 0


@attrs.frozen(kw_only=True)
class SourceDelete:
    """A source is no more (SDR), says its context."""

    ID: ClassVar[int] = 5
    otid: Octets32
    topic: Counted


@attrs.frozen(kw_only=True)
class _Interest:
    """What all records of interest hold; `name` is a topic or a pattern."""

    name: Counted
    domain: U32 = 0
    instance: Octets8
    context_type: U8 = 0
    version: U32 = RELEASE
    version_flags: U32 = 0
    reserved: U32 = 0


@attrs.frozen(kw_only=True)
class ReceiverInfo(_Interest):
    """A context has receivers of a topic (RIR)."""

    ID: ClassVar[int] = 6


@attrs.frozen(kw_only=True)
class ReceiverDelete(_Interest):
    """A context has no receiver of a topic any more (RDR). The service sends it back: nothing of before follows."""

    ID: ClassVar[int] = 7


@attrs.frozen(kw_only=True)
class ReceiverEnd(_Interest):
    """Nobody has a receiver of a topic (RER), for routers."""

    ID: ClassVar[int] = 8


@attrs.frozen(kw_only=True)
class PatternInfo(_Interest):
    """A context has wildcard receivers of a pattern (WIR)."""

    ID: ClassVar[int] = 9


@attrs.frozen(kw_only=True)
class PatternDelete(_Interest):
    """A context has no wildcard receiver of a pattern any more (WDR); sent back like `ReceiverDelete`."""

    ID: ClassVar[int] = 10


@attrs.frozen(kw_only=True)
class PatternEnd(_Interest):
    """Nobody has a wildcard receiver of a pattern (WER), for routers."""

    ID: ClassVar[int] = 11


@attrs.frozen(kw_only=True)
class LeaveInfo:
    """A context has lost the transport of a source (SLR)."""

    ID: ClassVar[int] = 12
    otid: Octets32
    topic: Counted
    source: Counted
    instance: Octets8
    context_type: U8 = 0
    version: U32 = RELEASE
    version_flags: U32 = 0
    reserved: U32 = 0


Message = (
    RegistrationRequest
    | RegistrationResponse
    | StreamRequest
    | SourceInfo
    | SourceDelete
    | ReceiverInfo
    | ReceiverDelete
    | ReceiverEnd
    | PatternInfo
    | PatternDelete
    | PatternEnd
    | LeaveInfo
)
_ID = struct.Struct(">H")
_COST = struct.Struct(">i")
_HELLO = b"stablecast connection "
_ALONE = (RegistrationRequest, RegistrationResponse, StreamRequest)


class _Numbers:
    """Consecutive fields of fixed size."""

    def __init__(self, fields: list[tuple[str, Fixed]]) -> None:
        self._struct = struct.Struct(">" + "".join(kind.form for _, kind in fields))
        self._fields = fields

    def take(self, octets: bytes, at: int, into: dict[str, Any]) -> int:
        end = at + self._struct.size
        if end > len(octets):
            raise WireError("a message goes on behind its frame")
        for (name, kind), value in zip(self._fields, self._struct.unpack_from(octets, at), strict=True):
            into[name] = kind.read(value) if kind.read else value
        return end

    def give(self, record: Message) -> bytes:
        fields = ((kind, getattr(record, name)) for name, kind in self._fields)
        values = [kind.write(value) if kind.write else value for kind, value in fields]
        try:
            return self._struct.pack(*values)
        except struct.error as error:
            raise WireError(f"{record!r} does not fit its layout: {error}") from error


class _Name:
    """A text behind its length."""

    def __init__(self, name: str) -> None:
        self._name = name

    def take(self, octets: bytes, at: int, into: dict[str, Any]) -> int:
        end = at + 1 + (octets[at] if at < len(octets) else 0)
        text = octets[at + 1 : end]
        if not text or end > len(octets) or text.find(0) != len(text) - 1:
            raise WireError("a text does not end with the one NUL that its length counts")
        into[self._name] = text_of(text[:-1])
        return end

    def give(self, record: Message) -> bytes:
        octets = octets_of(getattr(record, self._name))
        if len(octets) > MAX_TEXT:
            raise WireError(f"the text {text_of(octets)!r} exceeds {MAX_TEXT} bytes")
        return bytes((len(octets) + 1,)) + octets + b"\0"


def _parts(record: type[Message]) -> list[_Numbers | _Name]:
    parts: list[_Numbers | _Name] = []
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(record)
    kinds = [(field.name, field.type.__metadata__[0]) for field in fields]  # type: ignore[union-attr]
    for fixed, run in groupby(kinds, lambda pair: isinstance(pair[1], Fixed)):
        members = list(run)
        parts += [_Numbers(members)] if fixed else [_Name(name) for name, _ in members]
    return parts


_CLASSES: dict[int, type[Message]] = {record.ID: record for record in get_args(Message)}
_PARTS = {record: _parts(record) for record in _CLASSES.values()}


def encode(message: Message) -> bytes:
    """The bytes of a message.

    Raises:
        WireError: If a field does not fit.
    """
    return _ID.pack(message.ID) + b"".join(part.give(message) for part in _PARTS[type(message)])


def decode(payload: bytes) -> list[Message]:
    """The messages of a payload, one of a kind that stands alone or any number of the others.

    Raises:
        WireError: If it holds anything else.
    """
    found: list[Message] = []
    at = 0
    while at < len(payload):
        message, at = _take(payload, at)
        found.append(message)
    if len(found) > 1 and any(isinstance(message, _ALONE) for message in found):
        raise WireError("a message that stands alone is not alone")
    return found


def _take(payload: bytes, at: int) -> tuple[Message, int]:
    record = _CLASSES.get(int.from_bytes(payload[at : at + _ID.size]))
    if record is None or at + _ID.size > len(payload):
        raise WireError("there is no such message")
    values: dict[str, Any] = {}
    at += _ID.size
    for part in _PARTS[record]:
        at = part.take(payload, at, values)
    return record(**values), at


def ended(octets: bytes) -> bytes:
    """The bytes of a source's record, changed to say that it is no more: the cost stands at the end."""
    return octets[: -_COST.size] + _COST.pack(ENDED)


def hello(counter: int) -> bytes:
    """Metadata of a registration and of its answer: the context's connection number `counter`, from 1."""
    return _HELLO + str(counter).encode()


def parse_hello(metadata: bytes | None) -> int:
    """The connection number of a hello; 0 if the peer does not speak of it."""
    digits = (metadata or b"").removeprefix(_HELLO)
    return int(digits) if metadata != digits and digits.isdigit() and len(digits) <= MAX_DIGITS else 0
