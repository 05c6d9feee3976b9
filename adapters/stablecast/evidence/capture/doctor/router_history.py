"""Routers in a capture: who announces routes where, the numbers of domains, and sources behind no route.

A domain is known by the addresses at which its datagrams pass: the group or relay, and each of its contexts. So one
capture of a router's host has several domains, apart.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from stablecast.evidence.capture.doctor.findings import CaptureAdvice
from stablecast.evidence.capture.doctor.thresholds import Thresholds
from stablecast.evidence.capture.ip import Endpoint, endpoint_text
from stablecast.evidence.capture.statements import At
from stablecast.transports.resolution.records import PORTAL_BYTES
from stablecast.transports.resolution.udp.known_domains import ROUTE_LIFETIME
from stablecast.transports.wire import lbmr, lbmr_extended

MAX_PLACES: Final = 1 << 12
"""Addresses of resolution that are followed, at most."""

MAX_KNOWN: Final = 64
"""Numbers, portals and routes of one address that are followed, at most."""

ResolutionPacket = lbmr.AnyPacket | lbmr_extended.Packet


@attrs.define
class _Place:
    """What was heard at one address.

    Attributes:
        numbers: The packet that first names each domain as its own.
        portals: Address and packet of the last routes of each portal, by the lasting part of its name.
        turns: How often a portal announced a route that another one had announced shortly before.
        routes: The portal that announced each domain last, and the time.
        unreached: Advertisements of sources of each domain to which no router led.
        shown: The first packet of each of them.
    """

    began_ns: int
    numbers: dict[int, int] = attrs.field(factory=dict)
    portals: dict[bytes, tuple[str, int]] = attrs.field(factory=dict)
    turns: int = 0
    routes: dict[int, tuple[bytes, int]] = attrs.field(factory=dict)
    unreached: Counter[int] = attrs.field(factory=Counter)
    shown: dict[int, int] = attrs.field(factory=dict)


@attrs.define
class RouterHistory:
    """What routers, and contexts beside them, say in the resolution of a capture."""

    _places: dict[Endpoint, _Place] = attrs.field(factory=dict)

    def add(self, at: At, packet: ResolutionPacket) -> None:
        """Follow the next datagram of topic resolution."""
        instance, number = b"", 0
        for option in packet.options:
            if isinstance(option, lbmr.SourceId):
                instance = option.source_id
            elif isinstance(option, lbmr.LocalDomain):
                number = option.domain
        body = packet.body if isinstance(packet, lbmr_extended.Packet) else None
        told = packet.advertisements if isinstance(packet, lbmr.Packet) else ()
        if not number and not isinstance(body, lbmr_extended.DomainRoute):
            return
        for end in at.ends:
            place = self._places.get(end)
            if place is None:
                if len(self._places) >= MAX_PLACES:
                    return
                place = self._places[end] = _Place(at.time_ns)
            if number and len(place.numbers) < MAX_KNOWN:
                place.numbers.setdefault(number, at.frame)
            if isinstance(body, lbmr_extended.DomainRoute):
                _announce(place, at, instance[:PORTAL_BYTES], body)
            for one in told:
                _advertise(place, at, one)

    def findings(self, thresholds: Thresholds) -> Iterator[CaptureAdvice]:
        """Yield the findings of each domain, at the first of its addresses that shows them."""
        seen: set[tuple[str, object]] = set()
        for end, place in self._places.items():
            for mark, one in _of(endpoint_text(end), place, thresholds):
                if (one.code, mark) not in seen:
                    seen.add((one.code, mark))
                    yield one


def _announce(place: _Place, at: At, portal: bytes, route: lbmr_extended.DomainRoute) -> None:
    now, reached = at.time_ns, [one for one in route.domains if one in place.routes or len(place.routes) < MAX_KNOWN]
    before = [place.routes[domain] for domain in reached if domain in place.routes]
    place.turns += any(other != portal and now - last < ROUTE_LIFETIME for other, last in before)
    if portal in place.portals or len(place.portals) < MAX_KNOWN:
        place.portals[portal] = f"{route.address}:{route.port}", at.frame
    place.routes.update(dict.fromkeys(reached, (portal, now)))


def _advertise(place: _Place, at: At, told: lbmr.Advertisement) -> None:
    of = next((one.domain for one in told.options if isinstance(one, lbmr.DomainId)), 0)
    if not of or of in place.numbers or at.time_ns - place.began_ns < ROUTE_LIFETIME:
        return
    route = place.routes.get(of)
    known = route is not None and at.time_ns - route[1] < ROUTE_LIFETIME
    if not known and (of in place.unreached or len(place.unreached) < MAX_KNOWN):
        place.unreached[of] += 1
        place.shown.setdefault(of, at.frame)


def _of(where: str, place: _Place, thresholds: Thresholds) -> Iterator[tuple[object, CaptureAdvice]]:
    """Yield the findings of one address, each with what it is about."""
    whose = f"the domain at {where}"
    if len(place.numbers) > 1 and len(place.numbers) >= thresholds.domain_numbers > 0:
        numbers = sorted(place.numbers)
        yield (
            tuple(numbers),
            CaptureAdvice(
                "domain-numbers",
                whose,
                f"has the numbers {' and '.join(map(str, numbers))}; contexts stay with the first that they hear",
                "Give all portals of this domain one domain-id, and leave resolver_domain_id out of its contexts.",
                len(numbers),
                thresholds.domain_numbers,
                tuple(sorted(place.numbers.values())[:2]),
                {"domains": numbers},
            ),
        )
    if place.turns >= thresholds.second_router > 0:
        routers = sorted(address for address, _ in place.portals.values())
        yield (
            tuple(routers),
            CaptureAdvice(
                "second-router",
                whose,
                f"has two routers with the same routes, {' and '.join(routers)}, which take turns {place.turns} times",
                "Stop one of them: both repeat the same messages. If each should stand by for the other, let them "
                "hear each other in this domain.",
                place.turns,
                thresholds.second_router,
                tuple(frame for _, frame in place.portals.values()),
                {"routers": routers},
            ),
        )
    for domain, count in place.unreached.items():
        if count >= thresholds.no_route > 0:
            yield (
                domain,
                CaptureAdvice(
                    "no-route",
                    whose,
                    f"hears sources of domain {domain} {count} times while no router announces a way there",
                    "Registrations and requests to that domain wait and are lost. Check that its router runs, and that "
                    "its portal here is not the one that stands aside.",
                    count,
                    thresholds.no_route,
                    (place.shown[domain],),
                    {"domain": domain},
                ),
            )
