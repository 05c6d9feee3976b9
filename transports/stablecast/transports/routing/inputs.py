"""Inputs of a router. `portal` is the number of a portal, `source` an OTID; times are nanoseconds."""

import attrs

from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.codec.routed import Routed
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.routing.forwarding import UnicastDrop
from stablecast.transports.wire import lbmr, lbmr_extended
from stablecast.transports.wire.lbmc import Message


@attrs.frozen
class Overheard:
    """A packet of another context or router in the domain of a portal."""

    portal: int
    packet: lbmr.AnyPacket | lbmr_extended.Packet


@attrs.frozen
class InterestTold:
    """A service tells that contexts of the domain want a topic or a pattern, or that none does any more."""

    portal: int
    query: lbmr.Query
    on: bool


@attrs.frozen
class SourceFound:
    """A wanted topic has a source in the domain of a portal."""

    portal: int
    topic: str
    record: SourceRecord


@attrs.frozen
class SourceGone:
    """Such a source has withdrawn its advertisement."""

    portal: int
    topic: str
    record: SourceRecord


@attrs.frozen
class ItemsArrived:
    """The joined stream of a source brought items, in order; those of other topics are ignored."""

    source: bytes
    items: tuple[Run | Message, ...]


@attrs.frozen
class NumbersLost:
    """The transport of a joined stream gave up numbers of the source, from the wire number `first` on."""

    source: bytes
    first: int
    count: int


@attrs.frozen
class StreamEnded:
    """The joined stream of a source has ended."""

    source: bytes


@attrs.frozen
class ProxyOpened:
    """A proxy source sends on a stream.

    Attributes:
        session, index: Its names on this hop, 32 bits each.
        most_bytes: Bytes of the longest message that fits its transport; 0: any message.
    """

    portal: int
    source: bytes
    session: int
    index: int
    most_bytes: int = 0


@attrs.frozen
class ProxyFailed:
    """A proxy source could not be opened, or can send no more; `reason` is empty if it only moves."""

    portal: int
    source: bytes
    reason: str


@attrs.frozen
class ProxyHeld:
    """The transport of a proxy source takes nothing now, or takes messages again."""

    portal: int
    source: bytes
    held: bool


@attrs.frozen
class UnicastArrived:
    """The request port of a portal received one message, from the host that it names; or why it goes no further."""

    portal: int
    octets: bytes
    way: Routed | UnicastDrop


@attrs.frozen
class UnicastFailed:
    """A unicast message to the domain of a portal was dropped, or perhaps lost, because of its connection."""

    portal: int
    address: str
    reason: UnicastDrop = UnicastDrop.LINK_DOWN


@attrs.frozen
class LinkBegun:
    """A link begins: the other side has said who it is. The one before it on the portal has ended."""

    portal: int
    node: int
    name: str


@attrs.frozen
class LinkArrived:
    """A link brought items, in order, after its hello."""

    portal: int
    items: tuple[Run | Message, ...]


@attrs.frozen
class LinkHeld:
    """The connection of a link takes no data now, or takes them again."""

    portal: int
    held: bool


@attrs.frozen
class LinkEnded:
    """A link has ended, whichever side ended it."""

    portal: int
    reason: str


RouterInput = (
    Overheard
    | InterestTold
    | SourceFound
    | SourceGone
    | ItemsArrived
    | NumbersLost
    | StreamEnded
    | ProxyOpened
    | ProxyFailed
    | ProxyHeld
    | UnicastArrived
    | UnicastFailed
    | LinkBegun
    | LinkArrived
    | LinkHeld
    | LinkEnded
)
