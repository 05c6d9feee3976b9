"""What routers told services: the number of the domain, and the other domains that each of them reaches.

The service passes it on to all contexts. It keeps what a lost router told for a while, because the router may only have
lost its connection. A router that is back repeats everything before it requests the stream.
"""

from collections.abc import Iterable, Iterator

import attrs

from stablecast.transports.resolution.udp.known_domains import MAX_ROUTES
from stablecast.transports.wire import srs

MAX_ROUTERS = 64
"""Routers of one service."""

MAX_ROUTED_DOMAINS = 4_096
"""Domains that one router reaches."""

RouterMessage = srs.DomainInfo | srs.RouteInfo | srs.RouteEnd
"""The records that only routers send."""


@attrs.define
class RouterRecords:
    """The records of one router, each with the connection that told it.

    Attributes:
        lost_at: When its connection broke; None while it is connected.
    """

    domains: dict[int, tuple[srs.DomainInfo, int]] = attrs.field(factory=dict)
    routes: dict[int, tuple[srs.RouteInfo, int]] = attrs.field(factory=dict)
    lost_at: int | None = None

    def everything(self) -> Iterator[srs.Message]:
        """Yield the records that a new context gets."""
        yield from (record for record, _ in self.domains.values())
        yield from (record for record, _ in self.routes.values())


@attrs.define
class Routers:
    """The routers of one service by the instance of their context.

    Attributes:
        domain: The number of the domain by the first router that told one; 0: none did.
        mismatched: Records with another number, which are dropped.
    """

    known: dict[bytes, RouterRecords] = attrs.field(factory=dict)
    domain: int = 0
    mismatched: int = 0

    def note(self, instance: bytes, connection: int, message: RouterMessage) -> list[srs.Message] | None:
        """Note a record, and return those to pass on; None if the router tells too much."""
        if instance not in self.known and len(self.known) == MAX_ROUTERS:
            return None
        records = self.known.setdefault(instance, RouterRecords())
        records.lost_at = None
        match message:
            case srs.DomainInfo(domain=domain):
                if self.domain not in (0, domain) or not domain:
                    self.mismatched += 1
                    return []
                self.domain = domain
                records.domains[domain] = message, connection
                return [message]
            case srs.RouteEnd(domains=domains):
                gone = [domain for domain in domains if records.routes.pop(domain, None) is not None]
                return [attrs.evolve(message, domains=tuple(gone))] if gone else []
        for domain in message.domains:
            self._take_over(instance, domain, message)
            records.routes[domain] = attrs.evolve(message, domains=(domain,)), connection
        return None if len(records.routes) > MAX_ROUTED_DOMAINS else [message]

    def _take_over(self, owner: bytes, domain: int, new: srs.RouteInfo) -> None:
        """Drop the route of an earlier router at the port of a new one: its end would end the new route, too.

        A router that was killed returns with another instance, most often at the same port.
        """
        for instance, records in self.known.items():
            old = records.routes.get(domain)
            if old is not None and instance != owner and (old[0].address, old[0].port) == (new.address, new.port):
                del records.routes[domain]

    def everything(self) -> list[srs.Message]:
        """Return the records that a new context gets."""
        return [record for records in self.known.values() for record in records.everything()]

    def complete(self, instance: bytes, connection: int) -> list[srs.Message]:
        """Drop the routes that a router did not repeat on this connection, and return their ends."""
        records = self.known.get(instance)
        if records is None:
            return []
        old = [domain for domain, (_, told) in records.routes.items() if told != connection]
        ends = [ended(records.routes.pop(domain)[0]) for domain in old]
        records.domains = {domain: one for domain, one in records.domains.items() if one[1] == connection}
        self._forget(instance)
        return ends

    def lost(self, instance: bytes, now: int) -> bool:
        """Note that the connection to a client is broken; return whether it is a router with records."""
        records = self.known.get(instance)
        if records is None:
            return False
        records.lost_at = now
        return True

    def lapse(self, instance: bytes) -> list[srs.Message]:
        """Drop the records of a router that did not come back, and return their ends."""
        records = self.known.get(instance)
        if records is None or records.lost_at is None:
            return []
        ends = [ended(record) for record, _ in records.routes.values()]
        records.routes.clear()
        records.domains.clear()
        self._forget(instance)
        return ends

    def _forget(self, instance: bytes) -> None:
        """Forget a router without records, and the number of the domain with the last router that told it."""
        if not self.known[instance].routes and not self.known[instance].domains:
            del self.known[instance]
        if not any(records.domains for records in self.known.values()):
            self.domain = 0


def ended(record: srs.RouteInfo) -> srs.Message:
    """Return the record that ends a route."""
    return srs.RouteEnd(**attrs.asdict(record, recurse=False))


@attrs.define
class RoutesOfService:
    """The routes that one service tells a context: domains, and the request ports of the routers.

    Attributes:
        fresh: Those that it told on this connection; None once it has told all.
    """

    known: set[tuple[int, str]] = attrs.field(factory=set)
    fresh: set[tuple[int, str]] | None = None

    def begin(self) -> None:
        """Note a new connection, on which the service repeats all routes."""
        self.fresh = set()

    def add(self, routes: Iterable[tuple[int, str]]) -> None:
        """Add routes, up to `MAX_ROUTES`."""
        for route in routes:
            if len(self.known) < MAX_ROUTES or route in self.known:
                self.known.add(route)
                if self.fresh is not None:
                    self.fresh.add(route)

    def remove(self, routes: Iterable[tuple[int, str]]) -> None:
        self.known.difference_update(routes)

    def end(self) -> set[tuple[int, str]]:
        """Note that the service has repeated all, and return the routes that it no longer has."""
        if self.fresh is None:
            return set()
        gone, self.fresh = self.known - self.fresh, None
        self.known -= gone
        return gone


def routes_of(record: srs.RouteInfo | srs.RouteEnd) -> list[tuple[int, str]]:
    return [(domain, f"{record.address}:{record.port}") for domain in record.domains]
