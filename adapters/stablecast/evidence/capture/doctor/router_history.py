"""Routers in a capture: who announces routes where, the numbers of domains, and sources behind no route.

A domain is known by the addresses at which its datagrams pass: the group or relay, and each of its contexts. So one
capture of a router's host has several domains, apart. A service is such an address, too. It tells each context once, so
a route stands there until its end is told.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.capture.doctor.findings import CaptureAdvice
from stablecast.evidence.capture.doctor.thresholds import Thresholds
from stablecast.evidence.capture.doctor.use_questions import TRIES, UseQuestions
from stablecast.evidence.capture.ip import Endpoint, endpoint_text
from stablecast.evidence.capture.statements import At
from stablecast.transports.resolution.records import PORTAL_BYTES
from stablecast.transports.resolution.udp.known_domains import ROUTE_LIFETIME
from stablecast.transports.wire import lbmr, lbmr_extended, srs

MAX_PLACES: Final = 1 << 12
"""Addresses of resolution that are followed, at most."""

MAX_KNOWN: Final = 64
"""Numbers, portals and routes of one address that are followed, at most."""

LAPSE_NS: Final = 30 * SECOND
"""Time for which a service keeps the routes of a router that it lost, ns: meanwhile another one may follow it."""

TURN_NS: Final = SECOND
"""Time in which two routers announce the same routes once each over UDP, ns; over services they count so, too."""

ResolutionPacket = lbmr.AnyPacket | lbmr_extended.Packet
ServiceRecord = srs.DomainInfo | srs.RouteInfo | srs.RouteEnd | srs.SourceInfo


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
        standing: By domain: the portals whose route to it a service told, and did not end.
        doubled: By domain: since when there are two of them, ns.
        questions: What routers asked about topics and patterns.
    """

    began_ns: int
    numbers: dict[int, int] = attrs.field(factory=dict)
    portals: dict[bytes, tuple[str, int]] = attrs.field(factory=dict)
    turns: int = 0
    routes: dict[int, tuple[bytes, int]] = attrs.field(factory=dict)
    unreached: Counter[int] = attrs.field(factory=Counter)
    shown: dict[int, int] = attrs.field(factory=dict)
    standing: dict[int, set[bytes]] = attrs.field(factory=dict)
    doubled: dict[int, int] = attrs.field(factory=dict)
    questions: UseQuestions = attrs.field(factory=UseQuestions)

    def leave(self, domain: int, portal: bytes, now: int) -> None:
        """Note that a service ended a route, and count how long another portal had one to the same domain."""
        portals = self.standing.get(domain, set())
        portals.discard(portal)
        if len(portals) < 2 and domain in self.doubled:
            self.turns += _turns(now - self.doubled.pop(domain))

    def join(self, domain: int, portal: bytes, now: int) -> None:
        """Note that a service told a route."""
        if domain not in self.standing and len(self.standing) >= MAX_KNOWN:
            return
        portals = self.standing.setdefault(domain, set())
        if len(portals) < MAX_KNOWN:
            portals.add(portal)
        if len(portals) > 1:
            self.doubled.setdefault(domain, now)


@attrs.define
class RouterHistory:
    """What routers, and contexts beside them, say in the resolution of a capture."""

    _places: dict[Endpoint, _Place] = attrs.field(factory=dict)

    def add(self, at: At, packet: ResolutionPacket) -> None:
        """Follow the next datagram of topic resolution."""
        instance, number, router = b"", 0, False
        for option in packet.options:
            if isinstance(option, lbmr.SourceId):
                instance = option.source_id
            elif isinstance(option, lbmr.SourceType):
                router = option.source_type == lbmr.SourceType.GATEWAY
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
            place.questions.add(at, packet, instance, router=router)

    def add_record(self, at: At, record: ServiceRecord) -> None:
        """Follow the next record on a connection to a service; that has the lower port."""
        place = self._places.get(end := min(at.ends, key=lambda one: one[1]))
        if place is None:
            if len(self._places) >= MAX_PLACES:
                return
            place = self._places[end] = _Place(at.time_ns)
        match record:
            case srs.DomainInfo(domain=number) if number and len(place.numbers) < MAX_KNOWN:
                place.numbers.setdefault(number, at.frame)
            case srs.RouteInfo(instance=instance):
                portal = instance[:PORTAL_BYTES]
                if portal in place.portals or len(place.portals) < MAX_KNOWN:
                    place.portals[portal] = f"{record.address}:{record.port}", at.frame
                for domain in record.domains:
                    place.join(domain, portal, at.time_ns)
            case srs.RouteEnd(instance=instance):
                for domain in record.domains:
                    place.leave(domain, instance[:PORTAL_BYTES], at.time_ns)
            case srs.SourceInfo(domain=domain) if place.numbers and record.cost >= 0:
                _unreached(place, at, domain, known=bool(place.standing.get(domain)))

    def findings(self, thresholds: Thresholds, end_ns: int = 0) -> Iterator[CaptureAdvice]:
        """Yield the findings of each domain, at the first of its addresses that shows them; `end_ns` is now."""
        seen: set[tuple[str, object]] = set()
        for end, place in self._places.items():
            turns = place.turns + sum(_turns(end_ns - since) for since in place.doubled.values())
            for mark, one in _of(endpoint_text(end), place, turns, thresholds):
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
    route = place.routes.get(of)
    _unreached(place, at, of, known=route is not None and at.time_ns - route[1] < ROUTE_LIFETIME)


def _unreached(place: _Place, at: At, of: int, known: bool) -> None:
    """Count a source of another domain, unless a way there is known, or may not have been told yet."""
    if known or not of or of in place.numbers or at.time_ns - place.began_ns < ROUTE_LIFETIME:
        return
    if of in place.unreached or len(place.unreached) < MAX_KNOWN:
        place.unreached[of] += 1
        place.shown.setdefault(of, at.frame)


def _turns(span_ns: int) -> int:
    return max(0, span_ns - LAPSE_NS) // TURN_NS


def _of(where: str, place: _Place, turns: int, thresholds: Thresholds) -> Iterator[tuple[object, CaptureAdvice]]:
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
    if turns >= thresholds.second_router > 0:
        routers = sorted(address for address, _ in place.portals.values())
        yield (
            tuple(routers),
            CaptureAdvice(
                "second-router",
                whose,
                f"has two routers with the same routes, {' and '.join(routers)}, for {turns} turns",
                "Stop one of them: both repeat the same messages. If each should stand by for the other, let them "
                "hear each other in this domain.",
                turns,
                thresholds.second_router,
                tuple(frame for _, frame in place.portals.values()),
                {"routers": routers},
            ),
        )
    unanswered = place.questions.unanswered
    if len(unanswered) >= thresholds.unanswered > 0:
        query, frames = next(iter(unanswered.items()))
        symbols = sorted(_text(one) for one in unanswered)
        yield (
            tuple(symbols),
            CaptureAdvice(
                "unanswered",
                whose,
                f"has contexts that want {_text(query)} and did not answer a router that asked {TRIES} times for it, "
                f"{len(unanswered)} topics and patterns in all",
                "The router stops repeating them until they are asked for again. Use a release that knows routers, and "
                "check that the questions reach its contexts.",
                len(unanswered),
                thresholds.unanswered,
                frames,
                {"symbols": symbols},
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


def _text(query: lbmr.Query) -> str:
    return repr(query.name if isinstance(query, lbmr.TopicQuery) else query.pattern)
