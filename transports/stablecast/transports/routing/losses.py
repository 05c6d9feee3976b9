"""Messages to single contexts that may have been lost on their way through routers.

A context repeats what matters when its own connection breaks. Behind a router another one may break: a link, or the
connection to the destination. So whoever sent something there hears of it: its router ends the connections that
carried it, as if that router had been killed. Routers tell each other of broken destinations. Broken links and other
ways show in the map.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import link_messages as lm
from stablecast.transports.routing.network import DueItem, Matter, Network
from stablecast.transports.routing.network_map import Path
from stablecast.transports.routing.portals import Portal

PAUSE_NS = 200 * MILLISECOND
"""Time for which losses at one destination are told as one, in nanoseconds: who hears of them sends again."""


@attrs.define
class Losses:
    """Tells contexts and routers what may be lost; it shares portals, deadlines and effects with the router.

    Attributes:
        routes: The nodes by which messages go from each domain of this router to each other one.
    """

    portals: list[Portal]
    network: Network
    agenda: KeyedDeadlines[DueItem]
    outbox: list[fx.RouterEffect]
    routes: dict[tuple[int, int], Path] = attrs.field(factory=dict, init=False)

    def compare(self) -> None:
        """End what was sent by routes that have changed since the last call, or that a link broke on."""
        own = {one.settings.domain: number for number, one in enumerate(self.portals) if one.settings.domain}
        routes = {(domain, other): path for domain in own for other, path in self.network.paths(domain)}
        broken = self.network.take_broken()
        for key in sorted(self.routes.keys() | routes.keys()):
            before = self.routes.get(key, ())
            if before != routes.get(key, ()) or not broken.isdisjoint(_edges(before)):
                self.outbox.append(fx.Disconnect(own[key[0]], key[1]))
        self.routes = routes

    def on_failed(self, number: int, address: str, now: int) -> None:
        """Note that something was lost behind a portal: at an address of its domain, or on a link that is full."""
        self.agenda.arm((Matter.UNDELIVERED, number, address.encode()), now + PAUSE_NS)

    def look(self, number: int, address: bytes) -> None:
        """Tell what was noted."""
        domain = self.portals[number].settings.domain
        beyond: Iterable[int] = (one for one in self.network.ways if self.network.enters(one, number))
        for one in (domain,) if domain else tuple(beyond):
            self.tell(one, address.decode())

    def tell(self, domain: int, address: str) -> None:
        """Tell the other domains of this router, and the routers that reach the domain through it."""
        for number, portal in enumerate(self.portals):
            if portal.settings.domain not in (0, domain):
                self.outbox.append(fx.Disconnect(number, domain, address))
        for number in self.network.children(domain):
            self.outbox.append(fx.LinkSend(number, lm.encode(lm.MessageLost(domain, address))))


def _edges(path: Path) -> Iterator[tuple[int, int]]:
    for one, other in pairwise(path):
        yield from ((one, other), (other, one))
