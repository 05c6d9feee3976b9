"""SRS: the messages of topic resolution over TCP, which travel in RSocket frames.

A message is a 16-bit ID and a fixed layout. Each text in it follows a length byte that also counts the NUL of the text.
A message with ID 1 to 3 stands alone in a frame; others may follow each other. As in `fields`, an attrs class with
annotations declares a message completely. Here texts stand between the numbers, not only after them.

Routers send the messages with IDs 13 to 15, and newer services add 16 to 18 for names of stores. Stablecast decodes
these and sends none of them.

The metadata of a registration and of its answer carries a short text, because dissectors ignore metadata there. This
*hello* holds the number of the context's connection (formal design, 7.10).
"""

import struct
from itertools import groupby
from typing import Annotated, Any, ClassVar, cast, get_args

import attrs

from stablecast.transports.wire import fields as f
from stablecast.transports.wire.errors import WireError

ENDED = -1
"""The cost in a source's record that marks the end of the source (SER)."""

RELEASE = 0x060E0000
"""The release whose messages these are, 6.14.0.0."""

FLOOD, FILTER, ROUTED = 0, 1, 2
"""Interest modes: a context receives the records of all sources, or only of those that match its interest; a router
also receives the interest of contexts. The last two are bits."""

MAX_TEXT = 254
"""Bytes of a text without its NUL."""

MAX_WORDS = 0xFFFF
"""Numbers in one counted list."""

MAX_DIGITS = 18
"""Digits of the number of a connection."""

_ID = _COUNT = struct.Struct(">H")
_COST = struct.Struct(">i")
_HELLO = b"stablecast connection "


def _decode_text(octets: memoryview) -> tuple[str, memoryview]:
    end = 1 + (octets[0] if octets else 0)
    text = bytes(octets[1:end])
    if not text or end > len(octets) or text.find(0) != len(text) - 1:
        raise WireError("a text does not end with the one NUL that its length counts")
    return f.text_of(text[:-1]), octets[end:]


def _encode_text(text: str) -> bytes:
    octets = f.octets_of(text)
    if len(octets) > MAX_TEXT:
        raise WireError(f"the text {text!r} exceeds {MAX_TEXT} bytes")
    return bytes((len(octets) + 1,)) + octets + b"\0"


def _decode_words(octets: memoryview) -> tuple[tuple[int, ...], memoryview]:
    end = _COUNT.size + f.WORD.size * int.from_bytes(octets[: _COUNT.size])
    if end > len(octets):
        raise WireError("a message goes on after its frame")
    return f.WORDS.decode(octets[_COUNT.size : end])[0], octets[end:]


def _encode_words(words: tuple[int, ...]) -> bytes:
    if len(words) > MAX_WORDS:
        raise WireError(f"{len(words)} numbers exceed the {MAX_WORDS} that their count can hold")
    return _COUNT.pack(len(words)) + f.WORDS.encode(words)


COUNTED_TEXT = f.Tail(_decode_text, _encode_text)
"""A text after the length byte that counts it and its NUL."""
COUNTED_WORDS = f.Tail(_decode_words, _encode_words)
"""32-bit numbers after 16 bits that count them."""
Counted = Annotated[str, COUNTED_TEXT]
Domains = Annotated[tuple[int, ...], COUNTED_WORDS]


@attrs.frozen(kw_only=True)
class RegistrationRequest(f.Coded, code=1):
    """The first message of a context. Address and port are those of its connection; both IDs name the context."""

    APPLICATION: ClassVar[int] = 0
    ROUTER: ClassVar[int] = 1
    app_type: f.U8 = 0
    address: f.Ipv4
    port: f.U16
    session_id: f.U32
    host_id: f.U32
    version: f.U8 = 1
    interest_mode: f.U8 = FILTER
    domain: f.U32 = 0


@attrs.frozen(kw_only=True)
class RegistrationResponse(f.Coded, code=2):
    client_id: f.U64
    domain: f.U32 = 0
    version: f.U8 = 1


@attrs.frozen(kw_only=True)
class StreamRequest(f.Coded, code=3):
    """The context has sent all its records and requests those of others. The service returns it after its records."""

    unused: f.U8 = 0


@attrs.frozen(kw_only=True)
class SourceInfo(f.Coded, code=4):
    """A source exists (SIR), or, with the cost `ENDED`, has ended (SER)."""

    otid: f.Octets32
    topic: Counted
    source: Counted
    host_id: f.U32 = 0
    topic_index: f.U32
    functionality: f.U32
    request_address: f.Ipv4
    request_port: f.U16
    domain: f.U32 = 0
    encryption: f.U8 = 0
    compression: f.U8 = 0
    ulb_source_id: f.U32 = 0
    ulb_queue_id: f.U32 = 0
    ulb_registration_id: f.U64 = 0
    instance: f.Octets8
    context_type: f.U8 = 0
    version: f.U32 = RELEASE
    version_flags: f.U32 = 0
    ttl: f.U16 = 60
    cost: f.I32 = 0


@attrs.frozen(kw_only=True)
class SourceDelete(f.Coded, code=5):
    """The context of a source reports its end (SDR)."""

    otid: f.Octets32
    topic: Counted


@attrs.frozen(kw_only=True)
class _Interest(f.Coded):
    """The fields of all records of interest; `name` is a topic or a pattern."""

    name: Counted
    domain: f.U32 = 0
    instance: f.Octets8
    context_type: f.U8 = 0
    version: f.U32 = RELEASE
    version_flags: f.U32 = 0
    reserved: f.U32 = 0


@attrs.frozen(kw_only=True)
class ReceiverInfo(_Interest, code=6):
    """A context has receivers of a topic (RIR)."""


@attrs.frozen(kw_only=True)
class ReceiverDelete(_Interest, code=7):
    """A context has no more receivers of a topic (RDR). The service returns it; records before it may be outdated."""


@attrs.frozen(kw_only=True)
class ReceiverEnd(_Interest, code=8):
    """No context has a receiver of a topic (RER), for routers."""


@attrs.frozen(kw_only=True)
class PatternInfo(_Interest, code=9):
    """A context has wildcard receivers of a pattern (WIR)."""


@attrs.frozen(kw_only=True)
class PatternDelete(_Interest, code=10):
    """A context has no more wildcard receivers of a pattern (WDR). The service returns it, like `ReceiverDelete`."""


@attrs.frozen(kw_only=True)
class PatternEnd(_Interest, code=11):
    """No context has a wildcard receiver of a pattern (WER), for routers."""


@attrs.frozen(kw_only=True)
class LeaveInfo(f.Coded, code=12):
    """A context has lost the transport of a source (SLR)."""

    otid: f.Octets32
    topic: Counted
    source: Counted
    instance: f.Octets8
    context_type: f.U8 = 0
    version: f.U32 = RELEASE
    version_flags: f.U32 = 0
    reserved: f.U32 = 0


@attrs.frozen(kw_only=True)
class _Route(f.Coded):
    """The fields of all records of routers."""

    domains: Domains
    address: f.Ipv4
    port: f.U16
    instance: f.Octets8
    context_type: f.U8 = 1
    version: f.U32 = RELEASE
    version_flags: f.U32 = 0
    route_index: f.U16 = 0
    reserved: f.U16 = 0


@attrs.frozen(kw_only=True)
class RouteInfo(_Route, code=13):
    """A router reaches these domains (RTIR)."""


@attrs.frozen(kw_only=True)
class RouteEnd(_Route, code=14):
    """A router no longer reaches these domains (RTER)."""


@attrs.frozen(kw_only=True)
class DomainInfo(f.Coded, code=15):
    """The domain of the contexts of a service (DIR), as routers report it."""

    domain: f.U32
    instance: f.Octets8
    context_type: f.U8 = 1
    version: f.U32 = RELEASE
    version_flags: f.U32 = 0
    reserved: f.U32 = 0


@attrs.frozen(kw_only=True)
class NameQuery(_Interest, code=16):
    """A context requests the address of the store with a name (CNQR)."""


@attrs.frozen(kw_only=True)
class _Named(f.Coded):
    """The address of the store with a name; `origin` is the store's context, `instance` the context of the sender."""

    name: Counted
    domain: f.U32 = 0
    address: f.Ipv4
    port: f.U16
    origin: f.Octets8
    instance: f.Octets8
    context_type: f.U8 = 2
    version: f.U32 = RELEASE
    version_flags: f.U32 = 0
    reserved: f.U32 = 0


@attrs.frozen(kw_only=True)
class NameInfo(_Named, code=17):
    """The store with a name has this address (CNIR)."""


@attrs.frozen(kw_only=True)
class NameEnd(_Named, code=18):
    """The store with a name no longer has this address."""


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
    | RouteInfo
    | RouteEnd
    | DomainInfo
    | NameQuery
    | NameInfo
    | NameEnd
)


_CLASSES: dict[int, type[Message]] = {record.CODE: record for record in get_args(Message)}
_ALONE = (RegistrationRequest, RegistrationResponse, StreamRequest)


def _parts(record: type[Message]) -> list[f.FixedPart | tuple[str, f.Tail]]:
    parts: list[f.FixedPart | tuple[str, f.Tail]] = []
    for fixed, run in groupby(f.declared(record), lambda pair: isinstance(pair[1], f.Fixed)):
        if fixed:
            parts.append(f.FixedPart(cast("list[tuple[str, f.Fixed]]", list(run))))
        else:
            parts += cast("list[tuple[str, f.Tail]]", list(run))
    return parts


_PARTS = {record: _parts(record) for record in _CLASSES.values()}


def encode(message: Message) -> bytes:
    """Encode a message. Raises WireError if a field does not fit."""
    octets = [_ID.pack(message.CODE)]
    for part in _PARTS[type(message)]:
        if isinstance(part, f.FixedPart):
            octets.append(part.octets(message))
        else:
            octets.append(part[1].encode(getattr(message, part[0])))
    return b"".join(octets)


def decode(payload: bytes) -> list[Message]:
    """Decode a payload: one message of a kind that stands alone, or any number of the others.

    Raises:
        WireError: If it holds anything else.
    """
    found: list[Message] = []
    rest = memoryview(payload)
    while rest:
        message, rest = _decode_one(rest)
        found.append(message)
    if len(found) > 1 and any(isinstance(message, _ALONE) for message in found):
        raise WireError("a message that stands alone is not alone")
    return found


def _decode_one(octets: memoryview) -> tuple[Message, memoryview]:
    record = _CLASSES.get(int.from_bytes(octets[: _ID.size]))
    if record is None or len(octets) < _ID.size:
        raise WireError("there is no such message")
    values: dict[str, Any] = {}
    rest = octets[_ID.size :]
    for part in _PARTS[record]:
        if isinstance(part, f.FixedPart):
            if len(rest) < part.struct.size:
                raise WireError("a message goes on after its frame")
            values |= part.values(rest)
            rest = rest[part.struct.size :]
        else:
            values[part[0]], rest = part[1].decode(rest)
    return record(**values), rest


def ended(octets: bytes) -> bytes:
    """Return the record of a source, changed to mark the end of the source. The cost is the last field."""
    return octets[: -_COST.size] + _COST.pack(ENDED)


def hello(counter: int) -> bytes:
    """Return the metadata of a registration and of its answer for connection number `counter`, from 1."""
    return _HELLO + str(counter).encode()


def parse_hello(metadata: bytes | None) -> int:
    """Return the connection number in a hello; 0 if the peer does not number its connections."""
    digits = (metadata or b"").removeprefix(_HELLO)
    return int(digits) if metadata != digits and digits.isdigit() and len(digits) <= MAX_DIGITS else 0
