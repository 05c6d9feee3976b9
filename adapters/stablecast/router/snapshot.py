"""What a router shows of itself, from its machine."""

from collections.abc import Sequence
from itertools import islice

import attrs

from stablecast.router.views import MAX_SHOWN, Flow, PortalView, QueueView, RouterView, RouteView, SymbolView
from stablecast.transports.routing.forwarding import UnicastDrop
from stablecast.transports.routing.portals import Drop, Portal
from stablecast.transports.routing.router import Router
from stablecast.transports.wire.lbmr import PatternLanguage, Query, TopicQuery, WildcardQuery


def view_of(name: str, router: Router, addresses: Sequence[str], *, brief: bool = False) -> RouterView:
    """Return the view of a router whose portals have these request ports.

    A `brief` one leaves out interest and proxies. Its cost does not grow with their number.
    """
    portals = tuple(_figures(router.portals[number], address) for number, address in enumerate(addresses))
    if not brief:
        portals = tuple(_with_interest(one, router, number) for number, one in enumerate(portals))
    routes = tuple(
        RouteView(one.settings.domain, one.settings.name, one.settings.cost) for one in router.portals if one.forwards
    )
    return RouterView(name, portals, routes)


def _with_interest(view: PortalView, router: Router, number: int) -> PortalView:
    """Return the view with what its domain and the others want, and the proxies for that."""
    portal = router.portals[number]
    wanted = list(portal.interest.wanted)
    sources = router.table.sources.values()
    return attrs.evolve(
        view,
        topics=sum(isinstance(query, TopicQuery) for query in wanted),
        pcre_patterns=_patterns(wanted, PatternLanguage.PCRE),
        regex_patterns=_patterns(wanted, PatternLanguage.REGEX),
        remote_topics=sum(isinstance(query, TopicQuery) for query in portal.wants),
        remote_patterns=sum(isinstance(query, WildcardQuery) for query in portal.wants),
        proxy_receivers=len({one.topic for one in sources if one.portal == number and one.joined is not None}),
        proxy_sources=sum(number in one.proxies for one in sources),
        interest=tuple(_symbol(router, number, portal, query) for query in islice(wanted, MAX_SHOWN)),
    )


def _figures(portal: Portal, address: str) -> PortalView:
    settings, counted = portal.settings, portal.counted
    return PortalView(
        settings.name,
        settings.domain,
        settings.cost,
        address,
        received=Flow(counted.received, counted.received_bytes),
        sent=Flow(counted.sent, counted.sent_bytes),
        lost=counted.lost,
        unidentified=counted.unidentified,
        unhandled=counted.unhandled,
        unicast_received=counted.unicast_received,
        unicast_sent=counted.unicast_sent,
        dropped={reason.value: counted.dropped[reason] for reason in Drop},
        unicast_dropped={reason.value: counted.unicast_dropped[reason] for reason in UnicastDrop},
        rejected=counted.rejected,
        queue=QueueView(portal.queues.size, portal.queues.peak, settings.queue_bytes),
        trouble=f"{portal.rival} is in this domain, and this portal stands aside" if portal.rival else "",
    )


def _patterns(wanted: Sequence[Query], kind: PatternLanguage) -> int:
    return sum(isinstance(query, WildcardQuery) and query.pattern_type == kind for query in wanted)


def _symbol(router: Router, number: int, portal: Portal, query: Query) -> SymbolView:
    name = query.name if isinstance(query, TopicQuery) else query.pattern
    topics = (name,) if isinstance(query, TopicQuery) else ()
    proxies = sum(number in one.proxies for one in router.table.of(topics))
    return SymbolView(name, (portal.settings.domain,), proxies)
