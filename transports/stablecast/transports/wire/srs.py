"""SRS: the messages of topic resolution over TCP, which travel in RSocket frames.

A message is a 16-bit ID and a fixed layout in which texts stand behind a length byte that counts their NUL. IDs 1 to 3
stand alone in a frame, the others may follow each other. As in `fields`, an attrs class with annotations is all there
is about a message; here the texts stand among the numbers, so the classes have a codec of their own.

One small text rides in the metadata of the registration and of its answer, where dissectors let it pass: a context's
*hello* says which of its connections this is (formal design, 7.10).
"""

import struct
from itertools import groupby
from typing import Any, get_args

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import WORD, Fixed, octets_of, text_of
from stablecast.transports.wire.srs_messages import (
    ENDED,
    FILTER,
    FLOOD,
    RELEASE,
    CountedText,
    CountedWords,
    DomainInfo,
    LeaveInfo,
    Message,
    NameEnd,
    NameInfo,
    NameQuery,
    PatternDelete,
    PatternEnd,
    PatternInfo,
    ReceiverDelete,
    ReceiverEnd,
    ReceiverInfo,
    RegistrationRequest,
    RegistrationResponse,
    RouteEnd,
    RouteInfo,
    SourceDelete,
    SourceInfo,
    StreamRequest,
)

__all__ = [
    "ENDED",
    "FILTER",
    "FLOOD",
    "MAX_DIGITS",
    "MAX_TEXT",
    "RELEASE",
    "CountedText",
    "CountedWords",
    "DomainInfo",
    "LeaveInfo",
    "Message",
    "NameEnd",
    "NameInfo",
    "NameQuery",
    "PatternDelete",
    "PatternEnd",
    "PatternInfo",
    "ReceiverDelete",
    "ReceiverEnd",
    "ReceiverInfo",
    "RegistrationRequest",
    "RegistrationResponse",
    "RouteEnd",
    "RouteInfo",
    "SourceDelete",
    "SourceInfo",
    "StreamRequest",
    "decode",
    "encode",
    "ended",
    "hello",
    "parse_hello",
]

MAX_TEXT = 254
"""Bytes of a text without its NUL."""

MAX_DIGITS = 18
"""Digits of the number of a connection."""

_ID = _COUNT = struct.Struct(">H")
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


class _Words:
    """Numbers behind their count."""

    def __init__(self, name: str) -> None:
        self._name = name

    def take(self, octets: bytes, at: int, into: dict[str, Any]) -> int:
        start = at + _COUNT.size
        end = start + WORD.size * int.from_bytes(octets[at:start])
        if end > len(octets):
            raise WireError("a message goes on behind its frame")
        into[self._name] = tuple(word for (word,) in WORD.iter_unpack(octets[start:end]))
        return end

    def give(self, record: Message) -> bytes:
        words = getattr(record, self._name)
        try:
            return _COUNT.pack(len(words)) + b"".join(map(WORD.pack, words))
        except struct.error as error:
            raise WireError(f"{record!r} does not fit its layout: {error}") from error


_Part = _Numbers | _Name | _Words


def _parts(record: type[Message]) -> list[_Part]:
    parts: list[_Part] = []
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(record)
    kinds = [(field.name, field.type.__metadata__[0]) for field in fields]  # type: ignore[union-attr]
    for fixed, run in groupby(kinds, lambda pair: isinstance(pair[1], Fixed)):
        members = list(run)
        if fixed:
            parts.append(_Numbers(members))
        else:
            parts += (_Words(name) if isinstance(kind, CountedWords) else _Name(name) for name, kind in members)
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
