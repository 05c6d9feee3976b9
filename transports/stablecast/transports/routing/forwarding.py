"""Unicast through a router: to which portal a message goes, or why it is dropped.

A router knows the domains of its own portals. A message to one of them leaves there, directly to its address. Streams
of messages are numbered, so that a message that comes twice goes on once (R-203).

Contexts of other domains believe what a router passes on. So the origin that a message names must be who sent it: the
driver compares the host, which only it knows, and `route` the domain.
"""

from enum import Enum

import attrs

from stablecast.transports.codec.routed import MAX_HOPS, Routed, StreamWindow, destination_of, hopped
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.errors import WireError

MAX_STREAMS = 16_384
"""Streams of unicast messages whose numbers are remembered; the longest silent is forgotten first."""


class UnicastDrop(Enum):
    """Why a unicast message goes no further; the value is the word of the statistics."""

    MALFORMED = "malformed"
    NO_DESTINATION = "no destination"
    FOREIGN = "foreign origin"
    NO_ROUTE = "no route"
    NO_STREAM = "no stream"
    DUPLICATE = "duplicate"
    HOPS = "hops"
    BLOCKING = "blocking"
    LINK_DOWN = "link down"
    """The connection to the destination ended, perhaps with messages in it."""
    REFUSED = "refused"
    """Nobody listens at the destination: the process that did has ended."""


@attrs.frozen
class Onward:
    """A message that leaves through a portal to an address in its domain, or over a link, with one hop more."""

    portal: int
    address: str
    octets: bytes


def way_of(octets: bytes) -> Routed | UnicastDrop:
    """Return what one message says about its way, or why it has none."""
    try:
        message, _ = lbmc.decode(octets)
        way = destination_of(message)
    except WireError:
        return UnicastDrop.MALFORMED
    return UnicastDrop.NO_DESTINATION if way is None else way


@attrs.define
class Forwarding:
    """The routes of one router, which are the domains of its portals, and the streams that pass it."""

    portals: dict[int, int]
    streams: dict[tuple[bytes, int], StreamWindow] = attrs.field(factory=dict, init=False)

    def route(self, domain: int, octets: bytes, way: Routed, link: int | None = None) -> Onward | UnicastDrop:
        """Return where a message from a domain goes, which is then noted as passed, or why it does not.

        `link` is the portal by which its destination is reached unless it is in a domain of this router.
        """
        if way.origin.domain != domain:
            return UnicastDrop.FOREIGN
        portal = self.portals.get(way.destination.domain)
        address = f"{way.destination.ip}:{way.destination.port}"
        if portal is None:
            portal, address = link, ""
        if portal is None:
            return UnicastDrop.NO_ROUTE
        if way.stream is None:
            return UnicastDrop.NO_STREAM
        if way.hops >= MAX_HOPS:
            return UnicastDrop.HOPS
        if not self._window((way.stream.ctxinst, way.stream.stream_id)).first_time(way.stream.sqn):
            return UnicastDrop.DUPLICATE
        return Onward(portal, address, hopped(octets))

    def _window(self, stream: tuple[bytes, int]) -> StreamWindow:
        window = self.streams.pop(stream, None) or StreamWindow()
        self.streams[stream] = window  # at the end, so that the dictionary stays in the order of silence
        if len(self.streams) > MAX_STREAMS:
            del self.streams[next(iter(self.streams))]
        return window
