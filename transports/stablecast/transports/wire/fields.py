"""The declaration of a layout: an attrs class whose annotations define how each field stands on the wire.

    @attrs.frozen(kw_only=True)
    class StoreGroup:
        CODE: ClassVar[int] = 28
        flags: f.U8 = 0
        grp_idx: f.U8
        grp_sz: f.U16
        res1: f.U16 = 0

This declares a store group completely. `Layout` derives encoder and decoder from the annotations, in their order, and
`CodeSpace` finds the class by its code. All integers are big-endian, and nothing is padded. Flags and reserved fields
are ordinary fields, because a decoded record must encode to the same bytes.
"""

import struct
from collections.abc import Callable, Container, Iterable
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import attrs

from stablecast.transports.wire.errors import WireError

IGNORE = 0x8000
"""Flag of most headers and options: a peer that does not know the header may ignore it."""
IGNORE_SHORT = 0x80
"""The same flag, in headers and options whose flags are one byte."""
MAX_TAIL = 255
"""Bytes; the length of every header and option is one byte."""
PAIR = struct.Struct(">II")
WORD = struct.Struct(">I")


@attrs.frozen
class Fixed:
    """A field of fixed size.

    Attributes:
        form: Its `struct` character.
        decode: Converts the value that `struct` returns; None if no conversion is needed.
        encode: The inverse. Raises WireError for a value that has no such bytes.
        optional: A value of None leaves the field out, which shortens the layout.
    """

    form: str
    decode: Callable[[Any], Any] | None = None
    encode: Callable[[Any], Any] | None = None
    optional: bool = False


@attrs.frozen
class Tail:
    """A field of variable size.

    Attributes:
        decode: Splits bytes into the value and the bytes that follow it. Raises WireError.
        encode: Returns the bytes of a value. Raises WireError.
    """

    decode: Callable[[Any], tuple[Any, Any]]
    encode: Callable[[Any], bytes]


def dotted(address: bytes) -> str:
    """Return the dotted form of a four-byte address."""
    return ".".join(map(str, address))


def packed(address: str) -> bytes:
    """Return the four bytes of a dotted address. Raises WireError for any form that `dotted` does not write."""
    try:
        octets = bytes(map(int, address.split(".")))
    except ValueError as error:
        raise WireError(f"{address!r} is not an IPv4 address") from error
    if len(octets) != 4 or dotted(octets) != address:
        raise WireError(f"{address!r} is not an IPv4 address")
    return octets


def text_of(octets: bytes) -> str:
    """Decode a name. Bytes that are not UTF-8 become surrogates, so that `octets_of` restores them."""
    return octets.decode("utf-8", "surrogateescape")


def name_of(octets: bytes) -> str:
    """Decode a name, which ends at the first NUL."""
    return text_of(octets.partition(b"\0")[0])


def octets_of(text: str) -> bytes:
    """Encode a name. Raises WireError if it contains a NUL, because a NUL ends a name."""
    try:
        octets = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise WireError(f"the name {text!r} has no bytes: {error.reason}") from error
    if 0 in octets:
        raise WireError(f"the name {text!r} contains a NUL")
    return octets


def _exactly(size: int) -> Fixed:
    def encode(value: bytes) -> bytes:
        if len(value) != size:  # `struct` would cut or pad the value without an error
            raise WireError(f"a field of {size} bytes has a value of {len(value)} bytes")
        return value

    return Fixed(f"{size}s", encode=encode)


def _decode_text(octets: bytes) -> tuple[str, bytes]:
    text, nul, rest = octets.partition(b"\0")
    return text_of(text), nul + rest


def _decode_nuls(octets: bytes) -> tuple[int, bytes]:
    if octets.strip(b"\0"):
        raise WireError("a name goes on after its NUL")
    return len(octets), b""


def _encode_nuls(count: int) -> bytes:
    if not 0 <= count <= MAX_TAIL:
        raise WireError(f"{count} NULs cannot follow a name")
    return bytes(count)


def _numbers(layout: struct.Struct, values: Callable[[Iterable[Any]], Iterable[Any]]) -> Tail:
    """Numbers up to the end of the record; `values` maps unpacked tuples to values."""

    def decode(octets: bytes) -> tuple[tuple[Any, ...], bytes]:
        if len(octets) % layout.size:
            raise WireError(f"{len(octets)} bytes are no numbers of {layout.size} bytes")
        return tuple(values(layout.iter_unpack(octets))), b""

    def encode(items: Iterable[Any]) -> bytes:
        try:
            return b"".join(layout.pack(*item) if isinstance(item, tuple) else layout.pack(item) for item in items)
        except struct.error as error:
            raise WireError(f"a number does not fit {layout.size} bytes: {error}") from error

    return Tail(decode, encode)


U8 = Annotated[int, Fixed("B")]
U16 = Annotated[int, Fixed("H")]
U32 = Annotated[int, Fixed("I")]
U64 = Annotated[int, Fixed("Q")]
I32 = Annotated[int, Fixed("i")]
I64 = Annotated[int, Fixed("q")]
_INTEGERS = [Fixed(form) for form in "BHIQiq"]
OptionalU32 = Annotated[int | None, Fixed("I", optional=True)]
Ipv4 = Annotated[str, Fixed("4s", decode=dotted, encode=packed)]
Octets8 = Annotated[bytes, _exactly(8)]
Octets20 = Annotated[bytes, _exactly(20)]
Octets32 = Annotated[bytes, _exactly(32)]
TEXT = Tail(_decode_text, octets_of)
NULS = Tail(_decode_nuls, _encode_nuls)
PAIRS = _numbers(PAIR, tuple)
WORDS = _numbers(WORD, lambda items: (word for (word,) in items))
REST = Tail(lambda octets: (octets, b""), bytes)
Text = Annotated[str, TEXT]
Rest = Annotated[bytes, REST]
"""All bytes up to the end of the record."""
Nuls = Annotated[int, NULS]
"""Number of NULs after the text before: 0 or 1, or more if a peer pads the text."""
Pairs = Annotated[tuple[tuple[int, int], ...], PAIRS]
Words = Annotated[tuple[int, ...], WORDS]


RecordT = TypeVar("RecordT")


class Coded:
    """Give a record the code that announces it on the wire: `class Fragment(Coded, code=1)`."""

    __slots__ = ()
    CODE: ClassVar[int]

    def __init_subclass__(cls, code: int | None = None) -> None:
        """Keep the code. attrs makes each class a second time, with the attributes of the first one as its own."""
        if code is not None:
            cls.CODE = code


@attrs.frozen
class Spare:
    """The kind and the default of a field of `read_only`: flags and reserved fields have one."""

    kind: Any
    value: int = 0


def read_only(name: str, code: int, /, **fields: Any) -> type[Any]:
    """Return a class like those declared with annotations, for a record that stablecast only reads, in captures.

    No code names the fields of such a record, so a row is enough to declare it.
    """
    presets = {field: kind for field, kind in fields.items() if isinstance(kind, Spare)}
    kinds = {field: presets[field].kind if field in presets else kind for field, kind in fields.items()}
    defaults = {field: kind.value for field, kind in presets.items()}
    return attrs.frozen(kw_only=True)(type(name, (), {"__annotations__": kinds, "CODE": code, **defaults}))


class FixedPart:
    """Consecutive fields of fixed size, in one `struct`."""

    def __init__(self, fields: list[tuple[str, Fixed]]) -> None:
        self.struct = struct.Struct(">" + "".join(field.form for _, field in fields))
        self.names = [name for name, _ in fields]
        # `attrgetter` returns no tuple for one name.
        self._values_of = attrgetter(*self.names) if len(self.names) > 1 else None
        self._decoders = [(name, field.decode) for name, field in fields if field.decode]
        self._encoders = [(index, field.encode) for index, (_, field) in enumerate(fields) if field.encode]

    def values(self, body: bytes | memoryview) -> dict[str, Any]:
        """Return the values of the fields by name. The body must be long enough."""
        values = dict(zip(self.names, self.struct.unpack_from(body), strict=True))
        for name, decode in self._decoders:
            values[name] = decode(values[name])
        return values

    def octets(self, record: object) -> bytes:
        """Return the bytes of the record's fields. Raises WireError if a value does not fit."""
        values = self._values_of(record) if self._values_of else [getattr(record, name) for name in self.names]
        if self._encoders:
            values = list(values)
            for index, encode in self._encoders:
                values[index] = encode(values[index])
        try:
            return self.struct.pack(*values)
        except struct.error as error:
            raise WireError(f"{record!r} does not fit its layout: {error}") from error


class Layout(Generic[RecordT]):
    """Encoder and decoder of one declared class: fields of fixed size, then tails."""

    def __init__(self, record: type[RecordT]) -> None:
        kinds = [(name, kind) for name, kind in declared(record) if isinstance(kind, Fixed)]
        self._tails = [(name, kind) for name, kind in declared(record) if isinstance(kind, Tail)]
        self._record = record
        self._full = FixedPart(kinds)
        self._short = FixedPart([(name, kind) for name, kind in kinds if not kind.optional])
        optional = [name for name, kind in kinds if kind.optional]
        self._optional = attrgetter(optional[0]) if optional else None

    def unpack(self, body: bytes) -> RecordT:
        """Decode a body of exactly the declared size. Raises WireError for any other."""
        part = self._short if len(body) == self._short.struct.size else self._full
        size = part.struct.size
        if len(body) < size:
            raise WireError(f"{self._record.__name__} of {len(body)} bytes is shorter than its layout of {size}")
        values = part.values(body)
        if self._optional and part is self._short:
            values.update((name, None) for name in self._full.names if name not in values)
        rest = body[size:]
        for name, tail in self._tails:
            values[name], rest = tail.decode(rest)
        if rest:
            raise WireError(f"{self._record.__name__} of {len(body)} bytes is longer than its layout of {size}")
        return self._record(**values)

    def pack(self, record: RecordT) -> bytes:
        """Encode a record. Raises WireError if a field does not fit."""
        part = self._short if self._optional and self._optional(record) is None else self._full
        octets = part.octets(record)
        for name, tail in self._tails:
            octets += tail.encode(getattr(record, name))
        return octets


def plain_forms(record: type) -> dict[str, str]:
    """Return the `struct` character of each field. Raises TypeError unless all are integers of fixed size."""
    kinds = declared(record)
    forms = {name: kind.form for name, kind in kinds if isinstance(kind, Fixed) and kind in _INTEGERS}
    if len(forms) < len(kinds):
        raise TypeError(f"{record.__name__} has fields that are not integers of fixed size")
    return forms


def declared(record: type) -> list[tuple[str, Fixed | Tail]]:
    """Return the name and the kind of each field of a declared class."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(record)
    return [(field.name, field.type.__metadata__[0]) for field in fields]  # type: ignore[union-attr]


class CodeSpace(Generic[RecordT]):
    """The layouts of one code space, by code and by class. A record with an undeclared code keeps its bytes.

    Args:
        records: The members of the union of all records: classes with a `CODE`, and `unknown`.
        unknown: The class of `code` and `body` that stands for every other code; None if there are no others.
        codes: The codes that are allowed besides those of the records.
    """

    def __init__(
        self, records: Iterable[type[RecordT]], unknown: type[RecordT] | None = None, codes: Container[int] = ()
    ) -> None:
        known: list[Any] = [record for record in records if record is not unknown]
        self.classes: dict[int, type[RecordT]] = {record.CODE: record for record in known}
        self._unknown: Any = unknown
        self.codes = codes
        self._layouts: dict[type[RecordT], Layout[RecordT]] = {record: Layout(record) for record in known}
        self._by_code = {code: self._layouts[record] for code, record in self.classes.items()}

    def unpack(self, code: int, body: bytes) -> RecordT:
        """Decode the body of the record that `code` announces. Raises WireError if the code is not allowed."""
        layout = self._by_code.get(code)
        if layout:
            return layout.unpack(body)
        if code not in self.codes:
            raise WireError(f"there is no code {code} here")
        unknown: RecordT = self._unknown(code, body)
        return unknown

    def pack(self, record: Any) -> tuple[int, bytes]:
        """Return the code and the body of a record. Raises WireError if a field does not fit."""
        layout = self._layouts.get(type(record))
        if layout:
            return record.CODE, layout.pack(record)
        if record.code not in self.codes or record.code in self._by_code:
            raise WireError(f"code {record.code} does not name an unknown record")
        return record.code, record.body
