"""Effects of a router, which a driver must perform in order. `portal` is the number of a portal, `source` an OTID."""

import attrs

from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.wire.lbmr import Query
from stablecast.transports.wire.lbmr_extended import RemoteRecord


@attrs.frozen
class Wake:
    """Request the contexts of a domain to repeat what they have stopped sending, every `interval` for `duration` ns."""

    portal: int
    flags: int
    interval: int
    duration: int


@attrs.frozen
class Want:
    """Find the sources of a topic or a pattern in the domain of a portal, or no longer."""

    portal: int
    query: Query
    on: bool


@attrs.frozen
class AskUse:
    """Ask a domain who uses these topics and patterns."""

    portal: int
    queries: tuple[Query, ...]


@attrs.frozen
class Announce:
    """Tell a domain which other domains are reached through its portal; without any, that the router is there."""

    portal: int
    domains: tuple[int, ...]


@attrs.frozen
class TellName:
    """Tell a domain where a store in another one is, or ask it for one on behalf of others."""

    portal: int
    record: RemoteRecord


@attrs.frozen
class JoinSource:
    """Join the stream of a source: the proxy receiver of its topic. It is joined nowhere else at this time."""

    portal: int
    source: bytes
    topic: str
    record: SourceRecord


@attrs.frozen
class LeaveSource:
    """Leave the stream of a source."""

    portal: int
    source: bytes


@attrs.frozen
class OpenProxy:
    """Open a source of its own for `source` in a portal, and advertise it; then feed `ProxyOpened` or `ProxyFailed`.

    Attributes:
        record: What its advertisement says besides the place: the request address and properties of the original
            source, its identity and domain, and the cost and hops up to this portal.
    """

    portal: int
    source: bytes
    topic: str
    record: SourceRecord


@attrs.frozen
class CloseProxy:
    """Close a proxy source, with a final advertisement."""

    portal: int
    source: bytes


@attrs.frozen
class Forward:
    """Send messages on the stream of a proxy source, or over a link."""

    portal: int
    source: bytes
    octets: bytes


@attrs.frozen
class LinkSend:
    """Tell something on a link, before all data that waits."""

    portal: int
    octets: bytes


@attrs.frozen
class LinkDrop:
    """End a link, and feed `LinkEnded`; the next one begins with everything."""

    portal: int
    reason: str


@attrs.frozen
class SendUnicast:
    """Send one message to a request port in the domain of a portal, or over a link (no address)."""

    portal: int
    address: str
    octets: bytes


@attrs.frozen
class Disconnect:
    """End the connections by which contexts sent to a domain, or to one address there: something may be lost."""

    portal: int
    domain: int
    address: str = ""


PortalEffect = (
    Wake
    | Want
    | AskUse
    | Announce
    | TellName
    | JoinSource
    | LeaveSource
    | OpenProxy
    | CloseProxy
    | Forward
    | SendUnicast
    | Disconnect
    | LinkSend
    | LinkDrop
)
RouterEffect = PortalEffect | Remark
