"""The packets of topic resolution that are read here, and the trailer that the product ends each of them with."""

from enum import IntEnum
from typing import ClassVar

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.resolution_options import LocalDomain, PacketOption, SourceId, SourceType, Version
from stablecast.transports.wire.resolution_records import Advertisement, Query

VERSION = 1
"""The version that is sent; 0, of older releases, is read too."""
RELEASE = 0x060E0000
"""The release whose packets these are, 6.14.0.0, as the version option tells it."""


class PacketKind(IntEnum):
    """The kinds of plain packets. A NORMAL one without records is the resolver's keepalive."""

    NORMAL = 0
    WILDCARD = 1
    RECEIVER_ALIVE = 2
    SOURCE_ALIVE = 3


@attrs.frozen
class Packet:
    """A plain packet.

    Attributes:
        kind: A WILDCARD packet has wildcard queries, a NORMAL one topic queries, the others have no records.
        queries: At most `MAX_QUERIES`.
        advertisements: At most `MAX_ADVERTISEMENTS`.
        options: The trailer, without the option that tells its length.
        version: 0 or 1.
    """

    kind: PacketKind
    queries: tuple[Query, ...] = ()
    advertisements: tuple[Advertisement, ...] = ()
    options: tuple[PacketOption, ...] = ()
    version: int = VERSION


@attrs.frozen(kw_only=True)
class ContextInfo:
    """Asks for, or tells, where the context of a name is.

    Attributes:
        flags: All but `NAME`, which the name itself tells. Address and instance have their place without theirs.
        name: The name of a store, or None.
    """

    QUERY: ClassVar[int] = 0x8000
    ADDRESS: ClassVar[int] = 0x4000
    INSTANCE: ClassVar[int] = 0x2000
    GATEWAY_SOURCE: ClassVar[int] = 0x1000
    GATEWAY_RECEIVER: ClassVar[int] = 0x0800
    PROXY: ClassVar[int] = 0x0400
    NAME: ClassVar[int] = 0x0001
    flags: int
    hop_count: int = 0
    port: int = 0
    address: str = "0.0.0.0"  # noqa: S104  no address
    instance: bytes = bytes(8)
    name: str | None = None
    options: tuple[PacketOption, ...] = ()
    version: int = VERSION


@attrs.frozen(kw_only=True)
class ResolutionRequest:
    """Asks all contexts to speak again of what went quiet; `flags` tells of what."""

    ROUTER_INTEREST: ClassVar[int] = 0x40
    NAME_QUERIES: ClassVar[int] = 0x20
    NAMES: ClassVar[int] = 0x10
    ADVERTISEMENTS: ClassVar[int] = 0x04
    QUERIES: ClassVar[int] = 0x02
    PATTERN_QUERIES: ClassVar[int] = 0x01
    flags: int
    options: tuple[PacketOption, ...] = ()
    version: int = VERSION


AnyPacket = Packet | ContextInfo | ResolutionRequest
"""Everything that is read here."""


@attrs.frozen
class Reading:
    """What could be read of a datagram, and the first thing that could not; None for a whole packet."""

    packet: AnyPacket
    fault: WireError | None = None


def standard_options(
    instance: bytes, source_type: int = SourceType.APPLICATION, release: int = RELEASE, domain: int = 0
) -> tuple[PacketOption, ...]:
    """The trailer that the product ends each packet with, 36 bytes; `instance` names the sender's context."""
    return (
        SourceId(source_id=instance),
        SourceType(source_type=source_type),
        Version(version=release),
        LocalDomain(domain=domain),
    )
