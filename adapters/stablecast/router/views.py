"""What a router shows of itself, as plain data: its pages, its JSON and its metrics have the same figures."""

from collections.abc import Callable, Mapping

import attrs

from stablecast.runtime.logs import Severity

Write = Callable[[Severity, str, str, str], None]
"""A function that writes a line of the log: severity, speaker, code, text."""

MAX_SHOWN = 1_000
"""Most entries of each list in one view of a portal; the counters are those of all."""


@attrs.frozen
class Flow:
    """Messages and bytes that were counted since the router started."""

    messages: int = 0
    bytes: int = 0


@attrs.frozen
class QueueView:
    """The data that wait to leave through a portal: bytes now, most bytes so far, and the limit."""

    now: int = 0
    peak: int = 0
    limit: int = 0


@attrs.frozen
class SymbolView:
    """A topic or pattern that is wanted: by which domains, and how many proxies it has."""

    symbol: str
    domains: tuple[int, ...] = ()
    proxies: int = 0


@attrs.frozen
class LinkView:
    """The link of a peer portal.

    Attributes:
        router: The name of the router at its other end; empty: there is no link now.
        trips: How often a sign of life was answered.
        shortest_ns, mean_ns, longest_ns, last_ns: The time to the other router and back.
        stray: Messages of sources that came over the link while another way counted.
        untold: Patterns that were too long to be told.
    """

    router: str = ""
    trips: int = 0
    shortest_ns: int = 0
    mean_ns: int = 0
    longest_ns: int = 0
    last_ns: int = 0
    stray: int = 0
    untold: int = 0


@attrs.frozen
class PortalView:
    """One portal.

    Attributes:
        name: Its name.
        domain: The number of its domain; 0: it leads to another router.
        cost: Its cost.
        address: Its request port, `ip:port`, through which contexts reach other domains; or that of its link.
        topics, pcre_patterns, regex_patterns: Interest of its own domain.
        remote_topics, remote_patterns: Interest of the other domains, for which it looks for sources here.
        proxy_receivers: Topics whose sources it has joined here.
        proxy_sources: Sources of other domains that it offers here.
        received, sent: Messages of topics that came in from its domain, and that left into it.
        lost: Numbers of messages that the transports of its domain lost before it.
        unidentified: Sources of its domain that are never forwarded, because they have no identity (R-053).
        unhandled: Control messages of its domain that no router passes on.
        unicast_received, unicast_sent: Messages to single contexts.
        dropped: Messages of topics that did not leave through it, by reason (R-167); each reason is there.
        unicast_dropped: Messages to single contexts that came in through it and went no further, by reason, likewise.
        disconnects: How often contexts here were to connect again, because what they sent may be lost.
        rejected: Topics and sources that an access list keeps out.
        queue: Data that wait to leave.
        interest: Topics and patterns that are wanted here, `MAX_SHOWN` at most.
        link: The link of a peer portal.
        trouble: A sentence about what keeps the portal from its work; empty: nothing.
    """

    name: str
    domain: int
    cost: int = 1
    address: str = ""
    topics: int = 0
    pcre_patterns: int = 0
    regex_patterns: int = 0
    remote_topics: int = 0
    remote_patterns: int = 0
    proxy_receivers: int = 0
    proxy_sources: int = 0
    received: Flow = Flow()
    sent: Flow = Flow()
    lost: int = 0
    unidentified: int = 0
    unhandled: int = 0
    unicast_received: int = 0
    unicast_sent: int = 0
    dropped: Mapping[str, int] = attrs.field(factory=dict)
    unicast_dropped: Mapping[str, int] = attrs.field(factory=dict)
    disconnects: int = 0
    rejected: int = 0
    queue: QueueView = QueueView()
    interest: tuple[SymbolView, ...] = ()
    link: LinkView | None = None
    trouble: str = ""


@attrs.frozen
class RouteView:
    """The way to a domain: through which portal, and the cost of all portals on the way."""

    domain: int
    portal: str
    cost: int = 0


@attrs.frozen
class KnownRouter:
    """A router of the network: its node, its name, the domains beside it, and the names of the routers beside it."""

    node: str
    name: str
    domains: tuple[int, ...] = ()
    routers: tuple[str, ...] = ()


@attrs.frozen
class RouterView:
    """A whole router.

    Attributes:
        name: Its name.
        portals: Its portals in the order of its file: those in domains, and then those to other routers.
        routes: The domains that it reaches.
        node: Its place in the network, 16 hexadecimal digits, another one for each life.
        signature: The checksum of its map; equal on all routers that agree.
        routers: All routers that it reaches, itself included.
    """

    name: str
    portals: tuple[PortalView, ...] = ()
    routes: tuple[RouteView, ...] = ()
    node: str = ""
    signature: int = 0
    routers: tuple[KnownRouter, ...] = ()
