"""The records of topic resolution packets: queries, and advertisements (TIRs) of sources."""

import struct
from enum import IntEnum
from typing import Any, assert_never

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import octets_of, text_of
from stablecast.transports.wire.resolution_options import (
    LENGTH_OPTION,
    TIR_LENGTH,
    TIR_OPTIONS,
    TRANSPORTS,
    TirOption,
    Transport,
    length_option,
    pack_options,
    unpack_options,
)

_TIR = struct.Struct(">BBHI")
_TRANSPORT_OPTIONS = 0x80
_TRANSPORT_MASK = 0x7F


class MalformedRecordError(WireError):
    """What a record says is none, but it ends where it should: those behind it can be read."""


class PatternType(IntEnum):
    """The languages of patterns."""

    PCRE = 1
    REGEX = 2


@attrs.frozen
class TopicQuery:
    """Asks for the sources of one topic (TQR)."""

    name: str


@attrs.frozen
class WildcardQuery:
    """Asks for the sources of all topics that match (WC-TQR)."""

    pattern_type: int
    pattern: str


Query = TopicQuery | WildcardQuery


@attrs.frozen
class Advertisement:
    """A source of a topic (TIR).

    Attributes:
        name: The topic.
        transport: Where its data is.
        ttl: Seconds, as far as is known; 16 is observed in the first one of a topic, 60 in later ones.
        index: Index of the topic on the transport, 32 bits.
        options: All options but the one that tells their length.
    """

    name: str
    transport: Transport
    ttl: int
    index: int
    options: tuple[TirOption, ...] = ()


def encode_query(query: Query) -> bytes:
    """The bytes of a query."""
    match query:
        case TopicQuery(name):
            return octets_of(name) + b"\0"
        case WildcardQuery(pattern_type, pattern):
            return struct.pack(">B", pattern_type) + octets_of(pattern) + b"\0"
        case _:
            assert_never(query)


def encode_tir(tir: Advertisement) -> bytes:
    """The bytes of an advertisement."""
    code, block = TRANSPORTS.pack(tir.transport)
    options = pack_options(TIR_OPTIONS, tir.options)
    if options:
        code |= _TRANSPORT_OPTIONS
        options = length_option(TIR_LENGTH, options) + options
    return octets_of(tir.name) + b"\0" + _TIR.pack(code, len(block), tir.ttl, tir.index) + options + block


class RecordReader:
    """Reads a packet from its start to `end`, one record after the other; WireError where one does not end in time."""

    def __init__(self, data: bytes, end: int) -> None:
        self._data = data
        self._end = end
        self.position = 0

    def octets(self, size: int) -> bytes:
        """The next `size` bytes."""
        start = self.position
        if size > self._end - start:
            raise WireError(f"{size} bytes are announced where {self._end - start} are left")
        self.position = start + size
        return self._data[start : self.position]

    def fixed(self, layout: struct.Struct) -> tuple[Any, ...]:
        """The next fields of fixed size."""
        return layout.unpack(self.octets(layout.size))

    def name(self) -> str:
        """The next name, without its NUL."""
        stop = self._data.find(b"\0", self.position, self._end)
        if stop < 0:
            raise WireError("a name has no end")
        name = text_of(self._data[self.position : stop])
        self.position = stop + 1
        return name

    def topic_query(self) -> Query:
        """The next record as a topic query."""
        return TopicQuery(self.name())

    def wildcard_query(self) -> Query:
        """The next record as a wildcard query."""
        return WildcardQuery(self.octets(1)[0], self.name())

    def advertisement(self) -> Advertisement:
        """The next record as an advertisement. Raises MalformedRecordError if only this one cannot be read."""
        name = self.name()
        code, length, ttl, index = self.fixed(_TIR)
        options = self._options() if code & _TRANSPORT_OPTIONS else None
        block = self.octets(length)
        try:
            transport = TRANSPORTS.unpack(code & _TRANSPORT_MASK, block)
            return Advertisement(
                name, transport, ttl, index, () if options is None else unpack_options(TIR_OPTIONS, options)
            )
        except WireError as error:
            raise MalformedRecordError(f"the advertisement of {name!r}: {error}") from error

    def _options(self) -> bytes:
        code, length, total = self.fixed(LENGTH_OPTION)
        if code != TIR_LENGTH or length != LENGTH_OPTION.size or total < LENGTH_OPTION.size:
            raise WireError("the options of an advertisement do not start with their length")
        return self.octets(total - LENGTH_OPTION.size)

    def finish(self) -> None:
        """Raises WireError unless the last record ended at `end`."""
        if self.position != self._end:
            raise WireError(f"{self._end - self.position} bytes follow the last record")
