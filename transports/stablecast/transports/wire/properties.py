"""Message properties: named values in a block at the end of a payload, in the byte order of their sender."""

import binascii
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import octets_of, text_of

MAGIC = 0xABACDABA
"""The first word of a block; its byte order is that of the block."""
VERSION = 0x10
"""Version 1 in the upper half, the normal kind in the lower."""
KNOWN_NAMES = 1_024
"""Keys whose bytes are remembered."""
KNOWN_BLOCKS = 256
"""Blocks whose values are remembered."""
KNOWN_BYTES = 512
"""Bytes of the longest of them."""
NO_BYTES = 0
STRING = 8

_HEAD = {"<": struct.Struct("<IHBB"), ">": struct.Struct(">IHBB")}
_FIELD = {"<": struct.Struct("<IIII"), ">": struct.Struct(">IIII")}
_SIZES = {NO_BYTES: 0, 1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 4, 7: 8}
"""Bytes of a value by its type: none, boolean, byte, short, int, long, float, double. A string ends with a NUL."""

_VALUES = {1: "?", 2: "b", 3: "h", 4: "i", 5: "q", 6: "f", 7: "d"}
_BOOLEAN, _LONG, _DOUBLE = 1, 5, 7

Order = Literal["<", ">"]
Value = bool | int | float | str | bytes | None
"""The value of a property for an application. None has no bytes: other senders may send it, and dissectors refuse it.

The wire has no type for bytes. They travel as a text: `BYTES_MARK`, then base64.
"""

BYTES_MARK = "\x01base64,"
"""The beginning of a text that stands for bytes."""


@attrs.frozen
class Property:
    """One property of a block.

    Attributes:
        key: Its name.
        kind: Type of the value.
        value: The value's bytes in the byte order of the block; a string has no NUL here.
        hash: As received; the function is not public.
        key_offset, value_offset: Positions of both in the block.
    """

    key: str
    kind: int
    value: bytes
    hash: int
    key_offset: int
    value_offset: int


@attrs.frozen
class Properties:
    """A block of properties; `octets` is the whole block, with the bytes that no field describes."""

    order: Order
    ver_type: int
    reserved: int
    properties: tuple[Property, ...]
    octets: bytes


def decode(octets: bytes) -> Properties:
    """Decode a block.

    Raises:
        WireError: If the bytes are no block, or if a key, a type or a value is missing.
    """
    order: Order | None = {MAGIC.to_bytes(4, "little"): "<", MAGIC.to_bytes(4, "big"): ">"}.get(octets[:4])  # type: ignore[assignment]
    if order is None or len(octets) < _HEAD[order].size:
        raise WireError("the message properties do not start with their magic number")
    _, count, ver_type, reserved = _HEAD[order].unpack_from(octets)
    if _HEAD[order].size + count * _FIELD[order].size > len(octets):
        raise WireError(f"{count} message properties do not fit {len(octets)} bytes")
    fields = (_FIELD[order].unpack_from(octets, _HEAD[order].size + at * _FIELD[order].size) for at in range(count))
    return Properties(order, ver_type, reserved, tuple(_property(octets, *field) for field in fields), octets)


def _property(octets: bytes, key_offset: int, value_offset: int, key_hash: int, kind: int) -> Property:
    key = text_of(_string(octets, key_offset))
    if kind == STRING:
        value = _string(octets, value_offset)
    elif kind in _SIZES:
        value = octets[value_offset : value_offset + _SIZES[kind]]
        if len(value) < _SIZES[kind]:
            raise WireError(f"the value of the property {key!r} is missing")
    else:
        raise WireError(f"the property {key!r} has the unknown type {kind}")
    return Property(key, kind, value, key_hash, key_offset, value_offset)


def _string(octets: bytes, offset: int) -> bytes:
    end = octets.find(b"\0", offset)
    if end < 0:
        raise WireError("a text of the message properties has no end")
    return octets[offset:end]


def encode(block: Properties) -> bytes:
    """Return the bytes of a block: its fields, written over the bytes of which it was decoded.

    Raises:
        WireError: If a field does not fit.
    """
    written = bytearray(block.octets)
    head, layout = _HEAD[block.order], _FIELD[block.order]
    try:
        _write(written, 0, head.pack(MAGIC, len(block.properties), block.ver_type, block.reserved))
        for at, entry in enumerate(block.properties):
            packed = layout.pack(entry.key_offset, entry.value_offset, entry.hash, entry.kind)
            _write(written, head.size + at * layout.size, packed)
            _write(written, entry.key_offset, octets_of(entry.key) + b"\0")
            _write(written, entry.value_offset, entry.value + (b"\0" if entry.kind == STRING else b""))
    except struct.error as error:
        raise WireError(f"a message property does not fit: {error}") from error
    return bytes(written)


def _write(target: bytearray, offset: int, octets: bytes) -> None:
    end = offset + len(octets)
    if end > len(target):
        raise WireError(f"{len(octets)} bytes at {offset} do not fit a block of {len(target)}")
    target[offset:end] = octets


def block(properties: Mapping[str, Value]) -> bytes:
    """Return the block of an application's properties, in network order.

    Raises:
        TypeError: If a key is no str, or a value is no bool, int, float, str or bytes.
        ValueError: If a key is empty, if a text contains a NUL, is no UTF-8 or begins with `BYTES_MARK`, or if an int
            exceeds 64 bits.
    """
    head, field = _HEAD[">"], _FIELD[">"]
    fields, at = [head.pack(MAGIC, len(properties), VERSION, 0)], head.size + len(properties) * field.size
    contents: list[bytes] = []
    for key, value in properties.items():
        if not isinstance(key, str):
            raise TypeError(f"the key of a property must be a str, not {type(key).__name__}: {key!r}")
        name = _name(key)
        kind, octets = _encoded(key, value)
        start = at + len(name)
        fields.append(field.pack(at, start, 0, kind))
        contents.append(name)
        contents.append(octets)
        at = start + len(octets)
    return b"".join(fields + contents)


def values(octets: bytes) -> dict[str, Value]:
    """Return the values in a block by key. Raises WireError like `decode`."""
    return _values(octets) if len(octets) > KNOWN_BYTES else dict(_known_values(octets))


def _values(octets: bytes) -> dict[str, Value]:
    found = decode(octets)
    return {entry.key: _value(found.order, entry) for entry in found.properties}


_known_values = lru_cache(KNOWN_BLOCKS)(_values)
"""Messages of one kind often have the same properties, and an application asks a message for several."""


@lru_cache(KNOWN_NAMES)
def _name(key: str) -> bytes:
    """Return the bytes of a key with its NUL; the messages of a source repeat theirs. Raises ValueError."""
    if not key:
        raise ValueError("a property needs a key")
    return _text(key) + b"\0"


def _text(text: str) -> bytes:
    octets = text.encode()
    if 0 in octets:
        raise ValueError(f"a text of message properties must not contain a NUL: {text!r}")
    return octets


def _encoded(key: str, value: Value) -> tuple[int, bytes]:
    if value.__class__ is str and not value.startswith("\x01"):
        return STRING, _text(value) + b"\0"
    match value:
        case bool():
            return _BOOLEAN, bytes((value,))
        case int() if -(1 << 63) <= value < 1 << 63:
            return _LONG, struct.pack(">q", value)
        case int():
            raise ValueError(f"the property {key!r} exceeds 64 bits")
        case float():
            return _DOUBLE, struct.pack(">d", value)
        case str() if value.startswith(BYTES_MARK):
            raise ValueError(f"the property {key!r} begins like bytes in a text: pass bytes")
        case str():
            return STRING, _text(value) + b"\0"
        case bytes():
            return STRING, BYTES_MARK.encode() + binascii.b2a_base64(value, newline=False) + b"\0"
    raise TypeError(f"the property {key!r} must be a bool, int, float, str or bytes, not {type(value).__name__}")


def _bytes_or_text(text: str) -> bytes | str:
    """Return the bytes that a text stands for, or the text; a text of another sender may begin like bytes."""
    if not text.startswith(BYTES_MARK):
        return text
    try:
        return binascii.a2b_base64(text[len(BYTES_MARK) :], strict_mode=True)
    except ValueError:
        return text


def _value(order: Order, entry: Property) -> Value:
    if entry.kind == STRING:
        return _bytes_or_text(text_of(entry.value))
    if entry.kind == NO_BYTES:
        return None
    value: bool | int | float = struct.unpack(order + _VALUES[entry.kind], entry.value)[0]
    return value
