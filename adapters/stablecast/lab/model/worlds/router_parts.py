"""Define the parts of the world of `tla/Router`: constants, routers, and what two of them tell each other."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import permutations

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.lab.model.canonical import Fn, ModelError, record
from stablecast.lab.model.clone import SharedMachine
from stablecast.transports.codec import places
from stablecast.transports.codec.lbttcp import Run, StreamDecoder, build
from stablecast.transports.reliable import high_water_marks
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.routing import link_messages as lm
from stablecast.transports.routing.network import DueItem, Matter
from stablecast.transports.routing.network_map import MAX_DOMAIN, NodeRecord, path_name
from stablecast.transports.routing.portals import PortalSettings
from stablecast.transports.routing.router import Router
from stablecast.transports.routing.sources import Sources
from stablecast.transports.routing.streams import Streams
from stablecast.transports.wire import lbmr, lbmr_extended
from stablecast.transports.wire.lbmc import Message

ROUTERS = (1, 2, 3)
HOME = 1
"""The domain of the source, which is that of router 1."""
TOPIC = "topic"
QUERY = lbmr.TopicQuery(TOPIC)
NOW = 3 * SECOND
"""The time of everything: portals have listened, and no timer fires but as an action."""
MOST_WORDS = 16_384
"""Most messages whose meaning is cached; they recur."""

Path = tuple[int, ...]
_HOLDER = lbmr.standard_options(b"receiver", lbmr.SourceType.APPLICATION)
WANTS = lbmr.Packet(lbmr.PacketKind.NORMAL, (QUERY,), (), _HOLDER)
"""A receiver asks for the topic."""
LEAVES = lbmr_extended.Packet(
    lbmr_extended.Management(records=(lbmr_extended.TopicRecord.of(QUERY, lbmr_extended.LEAVE, 0),)),
    lbmr.standard_options(b"receiver"),
)
"""It takes leave."""


@attrs.frozen
class RouterConstants:
    """Hold the constants. A link is the number of its two routers, such as 12, the lower one first."""

    Size: int
    Links: frozenset[int]
    Dear: frozenset[int]
    Weak: frozenset[int]
    Breaks: int
    Wants: frozenset[int]
    Turns: int
    Lives: int
    Messages: int
    Room: int
    Faults: frozenset[str]

    def peers(self, router: int) -> Path:
        """Return the routers that are linked to a router, in the order of its portals."""
        return tuple(sorted(sum(divmod(link, 10)) - router for link in self.Links if router in divmod(link, 10)))


def link_of(one: int, other: int) -> int:
    return 10 * min(one, other) + max(one, other)


def node_of(router: int) -> int:
    return MAX_DOMAIN + router


def number_of(node: int) -> int:
    return node - MAX_DOMAIN


@lru_cache
def origin_of(life: int) -> bytes:
    return places.otid(places.transport_of("10.0.1.1:14371", life), 1, 1, 2)


@lru_cache
def source(life: int) -> SourceRecord:
    """Return the place of a life of the source, as its domain knows it."""
    return SourceRecord("10.0.1.1:14371", life, 1, "10.0.1.1:14391", instance=b"sender01", origin=origin_of(life))


def life_of(origin: bytes) -> int:
    return next(life for life in range(1, 10) if origin_of(life) == origin)


def message(number: int) -> Run:
    """Return a message as the source's own stream has it."""
    return Run(1, number, 1, 1, build(1, number, [b"x"]))


def _names() -> dict[int, Path]:
    """Return all paths without a circle, by name. A path begins at the router of the domain."""
    found: dict[int, Path] = {0: ()}
    for length in ROUTERS:
        for path in permutations(ROUTERS, length):
            name = path_name(0, path[0])
            for router in path:
                name = path_name(name, node_of(router))
            found[name] = path
    return found


PATHS = _names()


@attrs.frozen
class Batch:
    """Hold what one step of a router says on a link, and its form in the model."""

    items: tuple[Run | Message, ...]
    seen: tuple[Fn, ...]

    def by(self) -> dict[tuple[int, int], Path]:
        """Return the routers that each message of the source has passed."""
        return {(one["life"], one["number"]): one["by"] for one in self.seen if one["kind"] == "data"}


HELLO = Batch((), (record(kind="hello"),))


@lru_cache(MOST_WORDS)
def items_of(octets: bytes) -> tuple[Run | Message, ...]:
    return tuple(StreamDecoder().feed(octets))


@lru_cache(MOST_WORDS)
def told(octets: bytes, base: Fn) -> Fn:
    """Return the form of what routers tell each other; `base` has the generations of the records at the beginning."""
    (item,) = items_of(octets)
    assert isinstance(item, Message)
    match lm.decode(item):
        case NodeRecord(node, _, generation, neighbours):
            router = number_of(node)
            to = frozenset(number_of(one.node) for one in neighbours if one.node > MAX_DOMAIN)
            return record(kind="record", of=router, gen=generation - base.get(router, 0), to=to)
        case lm.PathsTold(names):
            return record(kind="paths", of=frozenset(record(domain=one, path=PATHS[name]) for one, name in names))
        case lm.InterestTold(_, domain, on):
            return record(kind="interest", domain=domain, on=on)
        case lm.SourceTold(_, found, on):
            return record(kind="source", life=life_of(found.origin), on=on)
        case other:
            raise ModelError(f"no message of the model: {other}")


def streamed(octets: bytes, life: int, by: Mapping[tuple[int, int], Path], router: int) -> Fn:
    """Return the form of what a source sends; `by` has the routers that its messages passed on the way to this one."""
    (item,) = items_of(octets)
    if isinstance(item, Run):
        return record(kind="data", life=life, number=item.first, by=(*by.get((life, item.first), ()), router))
    ((_, high),) = high_water_marks.marks(item)
    return record(kind="mark", life=life, number=high)


_NOTHING = Router.create((), 0)


@attrs.define
class RouterNode:
    """Hold a router and the routers beside it, in the order of its portals, of which the first is its domain's."""

    number: int
    peers: Path
    shared: SharedMachine[Router]

    @classmethod
    def create(cls, number: int, constants: RouterConstants) -> "RouterNode":
        peers = constants.peers(number)
        settings = [PortalSettings("domain", number, (b"portal%02d" % number,), wake_ns=0)]
        for peer in peers:
            cost = 2 if link_of(number, peer) in constants.Dear else 1
            settings.append(PortalSettings(f"to {peer}", 0, cost=cost))
        node = cls(number, peers, SharedMachine(Router.create(settings, 0, node_of(number), f"r{number}")))
        node.own().handle_timeout(NOW)
        return node

    @property
    def machine(self) -> Router:
        """The machine; do not change it."""
        return self.shared.machine

    def portal(self, peer: int) -> int:
        """Return the portal that leads to another router, or to the own domain."""
        return 0 if peer == self.number else self.peers.index(peer) + 1

    def exit(self, portal: int) -> int:
        """Return the router to which a portal leads; itself: to its domain."""
        return (self.number, *self.peers)[portal]

    def own(self) -> Router:
        """Return the machine for a change; `fold` it afterwards."""
        machine = self.shared.own()
        # Its parts share portals, table, deadlines and effects, which a copy does not preserve.
        network = machine.network
        network.portals, network.agenda, network.outbox = machine.portals, machine.agenda, machine.outbox
        losses = machine.losses
        losses.portals, losses.network = machine.portals, network
        losses.agenda, losses.outbox = machine.agenda, machine.outbox
        machine.streams = Streams(machine.portals, machine.table, machine.outbox)
        machine.sources = Sources(
            machine.portals, network, machine.streams, machine.table, machine.agenda, machine.outbox
        )
        return machine

    def fold(self) -> None:
        """Leave each part in one place, so that copies are cheap."""
        machine = self.shared.machine
        if machine.sources.unsettled:
            raise ModelError("a source waits for the next turn of its router")
        network = machine.network
        network.portals, network.agenda, network.outbox = [], KeyedDeadlines(), []
        losses = machine.losses
        losses.portals, losses.network, losses.agenda, losses.outbox = [], _NOTHING.network, KeyedDeadlines(), []
        machine.streams, machine.sources = _NOTHING.streams, _NOTHING.sources

    def armed(self, matter: Matter, peer: int = 0, life: int = 0) -> bool:
        return self._item(matter, peer, life) in self.machine.agenda.deadlines

    def due(self, machine: Router, matter: Matter, peer: int = 0, life: int = 0) -> None:
        """Let a timer be due now."""
        machine.agenda.arm(self._item(matter, peer, life), NOW)

    def _item(self, matter: Matter, peer: int, life: int) -> DueItem:
        return matter, self.portal(peer) if peer else 0, origin_of(life) if life else b""
