"""Messages to single contexts that may have been lost on their way through routers.

A context repeats what matters when its own connection breaks. Behind a router another one may break: a link, or the
connection to the destination. So whoever sent something there hears of it: its router ends the connections that
carried it, as if that router had been killed. Routers tell each other of broken destinations. Broken links and other
ways show in the map.
"""

from collections.abc import Iterator
from itertools import pairwise

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.codec.places import split
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import link_messages as lm
from stablecast.transports.routing.network import DueItem, Matter, Network
from stablecast.transports.routing.network_map import Path
from stablecast.transports.routing.portals import Portal

PAUSE_NS, MOST_PAUSE_NS = 200 * MILLISECOND, 10 * SECOND
"""Time after which losses at one destination are told as one, in nanoseconds, and the most that it grows to.

It doubles for a host at which they repeat: who hears of them loses its other messages to the router, too, and an
attacker can break its connections again and again.
"""

CALM_NS = 60 * SECOND
"""Time without losses at a host after which its next one counts as its first, in nanoseconds."""

MAX_HOSTS = 1_024
"""Hosts whose losses are remembered; the one with the oldest is forgotten first."""


@attrs.define
class Losses:
    """Tells contexts and routers what may be lost; it shares portals, deadlines and effects with the router.

    Attributes:
        routes: The nodes by which messages go from each domain of this router to each other one.
        told: When losses at each host were told, and the time that the next one waits, in nanoseconds.
    """

    portals: list[Portal]
    network: Network
    agenda: KeyedDeadlines[DueItem]
    outbox: list[fx.RouterEffect]
    routes: dict[tuple[int, int], Path] = attrs.field(factory=dict, init=False)
    told: dict[tuple[int, str], tuple[int, int]] = attrs.field(factory=dict, init=False)

    def compare(self) -> None:
        """End what was sent by routes that have changed since the last call, or that a link broke on."""
        own = {one.settings.domain: number for number, one in enumerate(self.portals) if one.settings.domain}
        ways = [(domain, way) for domain in own if (way := self.network.ways.get(domain)) is not None]
        routes = {(domain, other): path for domain, way in ways for other, path in way.paths.items()}
        broken, self.network.broken = self.network.broken, set()
        for key in sorted(self.routes.keys() | routes.keys()):
            before = self.routes.get(key, ())
            if before != routes.get(key, ()) or not broken.isdisjoint(_edges(before)):
                self._disconnect(own[key[0]], key[1])
        self.routes = routes

    def on_failed(self, number: int, address: str, now: int) -> None:
        """Note that something was lost behind a portal: at an address of its domain, or on a link that is full."""
        _, pause = self._told(_host(number, address), now)
        self.agenda.arm((Matter.UNDELIVERED, number, address.encode()), now + pause)

    def on_refused(self, number: int, address: str) -> None:
        """Forget what was noted: nobody listens there any more, and who has ended misses nothing."""
        self.agenda.stop((Matter.UNDELIVERED, number, address.encode()))

    def look(self, number: int, address: str, now: int) -> None:
        """Tell what was noted."""
        host = _host(number, address)
        at, pause = self._told(host, now)
        if now > at:  # What breaks at one time counts once, for example all contexts of a host that was cut off.
            pause = min(MOST_PAUSE_NS, 2 * pause)
        self.told.pop(host, None)
        self.told[host] = now, pause
        if len(self.told) > MAX_HOSTS:
            del self.told[next(iter(self.told))]
        domain = self.portals[number].settings.domain
        for one in [domain] if domain else [one for one in self.network.ways if self.network.enters(one, number)]:
            self.tell(one, address)

    def tell(self, domain: int, address: str) -> None:
        """Tell the other domains of this router, and the routers that reach the domain through it."""
        for number, portal in enumerate(self.portals):
            if portal.settings.domain not in (0, domain):
                self._disconnect(number, domain, address)
        for number in self.network.children(domain):
            self.outbox.append(fx.LinkSend(number, lm.encode(lm.MessageLost(domain, address))))

    def _told(self, host: tuple[int, str], now: int) -> tuple[int, int]:
        """Return when losses at a host were told, and for how long the next one waits."""
        at, pause = self.told.get(host, (0, PAUSE_NS))
        return at, pause if now - at < CALM_NS else PAUSE_NS

    def _disconnect(self, number: int, domain: int, address: str = "") -> None:
        self.portals[number].counted.disconnects += 1
        self.outbox.append(fx.Disconnect(number, domain, address))


def _host(number: int, address: str) -> tuple[int, str]:
    return number, split(address)[0] if address else ""


def _edges(path: Path) -> Iterator[tuple[int, int]]:
    for one, other in pairwise(path):
        yield from ((one, other), (other, one))
