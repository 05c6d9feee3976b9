"""The messages of SRS: their numbers and their fields, in the order in which they stand.

IDs 13 to 18 are those of routers and of names of stores, which newer services add: stablecast reads them in captures,
takes them, and says none.
"""

from typing import Annotated, ClassVar

import attrs

from stablecast.transports.wire.fields import I32, U8, U16, U32, U64, Ipv4, Octets8, Octets32

ENDED = -1
"""The cost in a source's record that says: it is no more (SER)."""

RELEASE = 0x060E0000
"""The release whose messages these are, 6.14.0.0."""

FLOOD, FILTER = 0, 1
"""Interest modes: all sources are sent to a context, or those that match its interest."""


@attrs.frozen
class CountedText:
    """A field that is a text behind the length byte that counts it and its NUL."""


@attrs.frozen
class CountedWords:
    """A field that is 32-bit numbers behind 16 bits that count them."""


Counted = Annotated[str, CountedText()]
Domains = Annotated[tuple[int, ...], CountedWords()]


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


@attrs.frozen(kw_only=True)
class _Route:
    """What is said of a router."""

    domains: Domains
    address: Ipv4
    port: U16
    instance: Octets8
    context_type: U8 = 1
    version: U32 = RELEASE
    version_flags: U32 = 0
    route_index: U16 = 0
    reserved: U16 = 0


@attrs.frozen(kw_only=True)
class RouteInfo(_Route):
    """A router reaches these domains (RTIR)."""

    ID: ClassVar[int] = 13


@attrs.frozen(kw_only=True)
class RouteEnd(_Route):
    """It reaches them no more (RTER)."""

    ID: ClassVar[int] = 14


@attrs.frozen(kw_only=True)
class DomainInfo:
    """The domain that a service's contexts are in (DIR), as routers told it."""

    ID: ClassVar[int] = 15
    domain: U32
    instance: Octets8
    context_type: U8 = 1
    version: U32 = RELEASE
    version_flags: U32 = 0
    reserved: U32 = 0


@attrs.frozen(kw_only=True)
class NameQuery(_Interest):
    """A context asks where the store of a name is (CNQR)."""

    ID: ClassVar[int] = 16


@attrs.frozen(kw_only=True)
class _Named:
    """Where the store of a name is; `origin` is its own context, `instance` that of who says it."""

    name: Counted
    domain: U32 = 0
    address: Ipv4
    port: U16
    origin: Octets8
    instance: Octets8
    context_type: U8 = 2
    version: U32 = RELEASE
    version_flags: U32 = 0
    reserved: U32 = 0


@attrs.frozen(kw_only=True)
class NameInfo(_Named):
    """It is there (CNIR)."""

    ID: ClassVar[int] = 17


@attrs.frozen(kw_only=True)
class NameEnd(_Named):
    """It is there no more."""

    ID: ClassVar[int] = 18


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
