"""The declaration of a layout: an attrs class whose annotations say how each field stands on the wire.

    @attrs.frozen(kw_only=True)
    class StoreGroup:
        CODE: ClassVar[int] = 28
        flags: U8 = 0
        grp_idx: U8
        grp_sz: U16
        res1: U16 = 0

is all that there is about a store group: `Layout` derives encoder and decoder from the annotations, in their order, and
`Registry` finds the class by its code. All integers are big-endian, nothing is padded. Flags and reserved fields are
fields like all others, so that decoding and encoding again gives the same bytes.
"""

import struct
from collections.abc import Callable, Container, Iterable
from operator import attrgetter
from typing import Annotated, Any, Generic, TypeVar

import attrs

from stablecast.transports.wire.errors import WireError

IGNORE = 0x8000
"""Flag of most headers and options: who does not know this one may ignore it."""
IGNORE_SHORT = 0x80
"""The same where the flags are one byte."""


@attrs.frozen
class Fixed:
    """A field of fixed size.

    Attributes:
        form: Its `struct` character.
        read: From what `struct` gives to the value; None where that is the value.
        write: The inverse; raises WireError for a value that has no such bytes.
        optional: A value of None leaves the field out, which shortens the layout.
    """

    form: str
    read: Callable[[Any], Any] | None = None
    write: Callable[[Any], Any] | None = None
    optional: bool = False


@attrs.frozen
class Tail:
    """A field of variable size behind the fixed ones.

    Attributes:
        take: Splits bytes into the value and the bytes of the tails behind it.
        give: The bytes of a value.
    """

    take: Callable[[bytes], tuple[Any, bytes]]
    give: Callable[[Any], bytes]


def dotted(address: bytes) -> str:
    """The dotted form of a four-byte address."""
    return ".".join(map(str, address))


def packed(address: str) -> bytes:
    """The four bytes of a dotted address; the one form that `dotted` writes is accepted."""
    try:
        octets = bytes(map(int, address.split(".")))
    except ValueError as error:
        raise WireError(f"{address!r} is not an IPv4 address") from error
    if len(octets) != 4 or dotted(octets) != address:
        raise WireError(f"{address!r} is not an IPv4 address")
    return octets


def text_of(octets: bytes) -> str:
    """The name of some bytes; bytes that are no UTF-8 survive as surrogates."""
    return octets.decode("utf-8", "surrogateescape")


def octets_of(text: str) -> bytes:
    """The bytes of a name, which holds no NUL: that ends it."""
    try:
        octets = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise WireError(f"the name {text!r} has no bytes: {error.reason}") from error
    if 0 in octets:
        raise WireError(f"the name {text!r} holds a NUL")
    return octets


def _exactly(size: int) -> Fixed:
    def write(value: bytes) -> bytes:
        if len(value) != size:  # `struct` would cut or pad it in silence
            raise WireError(f"{len(value)} bytes stand where {size} must")
        return value

    return Fixed(f"{size}s", write=write)


def _take_text(octets: bytes) -> tuple[str, bytes]:
    text, nul, rest = octets.partition(b"\0")
    return text_of(text), nul + rest


def _take_nuls(octets: bytes) -> tuple[int, bytes]:
    if octets.strip(b"\0"):
        raise WireError("a name goes on after its NUL")
    return len(octets), b""


def _give_nuls(count: int) -> bytes:
    if not 0 <= count <= MAX_TAIL:
        raise WireError(f"{count} NULs cannot follow a name")
    return bytes(count)


PAIR = struct.Struct(">II")
WORD = struct.Struct(">I")
MAX_TAIL = 255
"""Bytes; the length of every header and option is one byte."""


def _take_pairs(octets: bytes) -> tuple[tuple[tuple[int, int], ...], bytes]:
    if len(octets) % PAIR.size:
        raise WireError(f"{len(octets)} bytes are no records of {PAIR.size} bytes")
    return tuple((first, second) for first, second in PAIR.iter_unpack(octets)), b""


def _give_pairs(pairs: tuple[tuple[int, int], ...]) -> bytes:
    try:
        return b"".join(PAIR.pack(*pair) for pair in pairs)
    except struct.error as error:
        raise WireError(f"a record does not fit {PAIR.size} bytes: {error}") from error


def _take_words(octets: bytes) -> tuple[tuple[int, ...], bytes]:
    if len(octets) % WORD.size:
        raise WireError(f"{len(octets)} bytes are no numbers of {WORD.size} bytes")
    return tuple(word for (word,) in WORD.iter_unpack(octets)), b""


def _give_words(words: tuple[int, ...]) -> bytes:
    try:
        return b"".join(map(WORD.pack, words))
    except struct.error as error:
        raise WireError(f"a number does not fit {WORD.size} bytes: {error}") from error


def _take_rest(octets: bytes) -> tuple[bytes, bytes]:
    return octets, b""


def _give_rest(octets: bytes) -> bytes:
    return octets


U8 = Annotated[int, Fixed("B")]
U16 = Annotated[int, Fixed("H")]
U32 = Annotated[int, Fixed("I")]
U64 = Annotated[int, Fixed("Q")]
I32 = Annotated[int, Fixed("i")]
I64 = Annotated[int, Fixed("q")]
_INTEGERS = [Fixed(form) for form in "BHIQiq"]
OptionalU32 = Annotated[int | None, Fixed("I", optional=True)]
Ipv4 = Annotated[str, Fixed("4s", read=dotted, write=packed)]
Octets8 = Annotated[bytes, _exactly(8)]
Octets20 = Annotated[bytes, _exactly(20)]
Octets32 = Annotated[bytes, _exactly(32)]
TEXT = Tail(_take_text, octets_of)
NULS = Tail(_take_nuls, _give_nuls)
PAIRS = Tail(_take_pairs, _give_pairs)
WORDS = Tail(_take_words, _give_words)
Text = Annotated[str, TEXT]
REST = Tail(_take_rest, _give_rest)
Rest = Annotated[bytes, REST]
"""All that is left."""
Nuls = Annotated[int, NULS]
"""How many NULs follow the text before: 0 or 1, or more where a peer pads it."""
Pairs = Annotated[tuple[tuple[int, int], ...], PAIRS]
Words = Annotated[tuple[int, ...], WORDS]


RecordT = TypeVar("RecordT")


class _Form:
    """The fixed part of a layout, with or without its optional field."""

    def __init__(self, fields: list[tuple[str, Fixed]]) -> None:
        self.struct = struct.Struct(">" + "".join(field.form for _, field in fields))
        self.names = [name for name, _ in fields]
        self.reads = [(name, field.read) for name, field in fields if field.read]
        self.writes = [(index, field.write) for index, (_, field) in enumerate(fields) if field.write]

    def values(self, body: bytes) -> dict[str, Any]:
        values = dict(zip(self.names, self.struct.unpack_from(body), strict=True))
        for name, read in self.reads:
            values[name] = read(values[name])
        return values

    def octets(self, record: object) -> bytes:
        values = [getattr(record, name) for name in self.names]
        for index, write in self.writes:
            values[index] = write(values[index])
        try:
            return self.struct.pack(*values)
        except struct.error as error:
            raise WireError(f"{record!r} does not fit its layout: {error}") from error


class Layout(Generic[RecordT]):
    """Encoder and decoder of one declared class."""

    def __init__(self, record: type[RecordT]) -> None:
        kinds = [(name, kind) for name, kind in _annotations(record) if isinstance(kind, Fixed)]
        self._tails = [(name, kind) for name, kind in _annotations(record) if isinstance(kind, Tail)]
        self._record = record
        self._full = _Form(kinds)
        self._short = _Form([(name, kind) for name, kind in kinds if not kind.optional])
        optional = [name for name, kind in kinds if kind.optional]
        self._optional = attrgetter(optional[0]) if optional else None

    def unpack(self, body: bytes) -> RecordT:
        """Decodes a body of exactly the declared size; WireError for any other."""
        form = self._short if len(body) == self._short.struct.size else self._full
        size = form.struct.size
        if len(body) < size:
            raise WireError(f"{self._record.__name__} of {len(body)} bytes is shorter than its layout of {size}")
        values = form.values(body)
        if self._optional and form is self._short:
            values.update((name, None) for name in self._full.names if name not in values)
        rest = body[size:]
        for name, tail in self._tails:
            values[name], rest = tail.take(rest)
        if rest:
            raise WireError(f"{self._record.__name__} of {len(body)} bytes is longer than its layout of {size}")
        return self._record(**values)

    def pack(self, record: RecordT) -> bytes:
        """Encodes a record; WireError if a field does not fit."""
        form = self._short if self._optional and self._optional(record) is None else self._full
        octets = form.octets(record)
        for name, tail in self._tails:
            octets += tail.give(getattr(record, name))
        return octets


def plain_forms(record: type) -> dict[str, str]:
    """The `struct` characters of a declared class by name of the field; all of them are integers of fixed size."""
    kinds = _annotations(record)
    forms = {name: kind.form for name, kind in kinds if isinstance(kind, Fixed) and kind in _INTEGERS}
    if len(forms) < len(kinds):
        raise TypeError(f"{record.__name__} has fields that are not integers of fixed size")
    return forms


def _annotations(record: type) -> list[tuple[str, object]]:
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(record)
    return [(field.name, field.type.__metadata__[0]) for field in fields]  # type: ignore[union-attr]


class Registry(Generic[RecordT]):
    """The layouts of one code space, by code and by class; what has no layout is kept as it came.

    Args:
        records: The members of the union of all records: classes with a `CODE`, and `unknown`.
        unknown: The class of `code` and `body` that stands for every other code.
        codes: The codes that there may be.
    """

    def __init__(self, records: Iterable[type[RecordT]], unknown: type[RecordT], codes: Container[int]) -> None:
        known: list[Any] = [record for record in records if record is not unknown]
        self.classes: dict[int, type[RecordT]] = {record.CODE: record for record in known}
        self._unknown: Any = unknown
        self.codes = codes
        self._layouts: dict[type[RecordT], Layout[RecordT]] = {record: Layout(record) for record in known}
        self._by_code = {code: self._layouts[record] for code, record in self.classes.items()}

    def unpack(self, code: int, body: bytes) -> RecordT:
        """Decodes the body of the record that `code` announces."""
        layout = self._by_code.get(code)
        if layout:
            return layout.unpack(body)
        if code not in self.codes:
            raise WireError(f"there is no code {code} here")
        unknown: RecordT = self._unknown(code, body)
        return unknown

    def pack(self, record: Any) -> tuple[int, bytes]:
        """Encodes a record: its code and its body."""
        layout = self._layouts.get(type(record))
        if layout:
            return record.CODE, layout.pack(record)
        if record.code not in self.codes or record.code in self._by_code:
            raise WireError(f"code {record.code} does not name an unknown record")
        return record.code, record.body
