"""Drive the machines of the transports for `tla/Router`: three routers that are linked, and a domain beside each.

Each router is a whole `Router`, and they exchange their own messages. The world adds connections, which keep their
order and break, the source in domain 1 with what its router's portal finds of it, and receivers in all domains. A turn
of a router follows each input. The clock stands still: a timer fires as an action, at any time or in silence.

The world notes beside each message of the source which routers it has passed, so that a circle shows.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import attrs

from stablecast.lab.model.canonical import Fn, ModelError, Value, record
from stablecast.lab.model.explorer import Action, State
from stablecast.lab.model.worlds import router_parts as parts
from stablecast.lab.model.worlds.router_parts import HELLO, HOME, NOW, ROUTERS, Batch, Path, RouterNode
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing.network import Matter

End = tuple[int, int]
"""A router, and the one to which it is linked."""
Message = tuple[int, int]
"""A life of the source, and a number."""
Way = Mapping[Message, Path]


@attrs.define
class RouterWorld:
    """Drive the routers.

    Attributes:
        wires: What each router has said on its links, and the other side has not read.
        alive: The links that are connected.
        life, sent, found: The life of the source, what it has sent, and the lives that the portal there has found.
        got: What the receiver of each domain has got since it is there.
        base: The generations of the routers' records at the beginning, which counts as 0.
    """

    constants: parts.RouterConstants
    nodes: list[RouterNode]
    wires: dict[End, tuple[Batch, ...]]
    alive: frozenset[int]
    breaks: int
    turns: int
    life: int = 1
    sent: int = 0
    found: frozenset[int] = frozenset()
    got: dict[int, tuple[Message, ...]] = attrs.field(factory=lambda: dict.fromkeys(ROUTERS, ()))
    base: Fn = Fn()

    @classmethod
    def create(cls, constants: Mapping[str, Any]) -> Self:
        """Return the initial state: all links are up, all routers know all, and receivers of `Wants` are served."""
        known = parts.RouterConstants(**constants)
        nodes = [RouterNode.create(number, known) for number in ROUTERS]
        ends = {(one, other): () for one in ROUTERS for other in known.peers(one)}
        world = cls(known, nodes, dict(ends), frozenset(), known.Breaks, known.Turns)
        for link in sorted(known.Links):
            world._connect(link)
        world._settle()
        records = {number: world.nodes[number - 1].machine.network.map.records for number in ROUTERS}
        world.base = Fn({number: records[number][parts.node_of(number)].generation for number in ROUTERS})
        for domain in sorted(known.Wants):
            world._feed(domain, (ev.Overheard(0, parts.WANTS),))
            world._settle()
        if ("Resolve",) in world.actions():
            world.do(("Resolve",))
        world._settle()
        return world

    def _settle(self) -> None:
        """Let everything arrive that was said."""
        while ends := [end for end, wire in self.wires.items() if wire]:
            self._deliver(*ends[0])

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
        constants = self.constants
        yield from (("Deliver", *end) for end, wire in self.wires.items() if wire)
        if sum(map(len, self.wires.values())) > constants.Room:
            return
        for domain in ROUTERS[1:]:
            if self.turns:
                yield ("Leave" if self._wanted(domain) else "Want", domain)
        if self._looks() and self.life not in self.found:
            yield ("Resolve",)
        yield from (("Gone", life) for life in sorted(self.found) if life != self.life)
        if self.life < constants.Lives:
            yield ("Restart",)
        if self.sent < constants.Messages:
            yield ("Send",)
        for link in sorted(constants.Weak):
            yield from self._of_link(link)
        yield from self._timers()

    def _of_link(self, link: int) -> Iterator[Action]:
        ends = divmod(link, 10)
        states = {end: self._link(*end) for end in (ends, ends[::-1])}
        if link in self.alive:
            if self.breaks:
                yield ("Cut", link)
        else:
            yield from (("Notice", *end) for end, state in states.items() if state != "none")
            if set(states.values()) == {"none"}:
                yield ("Connect", link)

    def _timers(self) -> Iterator[Action]:
        late = "slow" in self.constants.Faults or not any(self.wires.values())
        for node in self.nodes:
            for peer in node.peers:
                if node.armed(Matter.STEADY, peer=peer):
                    yield ("Steady", node.number, peer)
            if late and node.armed(Matter.HELD):
                yield ("Hold", node.number)
            for life in range(1, self.constants.Lives + 1):
                if late and node.armed(Matter.LOST, life=life):
                    yield ("End", node.number, life)

    def _wanted(self, domain: int) -> bool:
        return parts.QUERY in self.nodes[domain - 1].machine.portals[0].interest.wanted

    def _looks(self) -> bool:
        """Return whether the portal beside the source looks for it."""
        return parts.QUERY in self.nodes[HOME - 1].machine.portals[0].wants

    def _link(self, router: int, peer: int) -> str:
        node = self.nodes[router - 1]
        portal = node.machine.portals[node.portal(peer)]
        return "none" if portal.link is None else "up" if portal.forwards else "begun"

    # Effects of actions.

    def do(self, action: Action) -> None:
        name, *words = action
        match name, *words:
            case "Want", int(domain):
                self.turns -= 1
                self._feed(domain, (ev.Overheard(0, parts.WANTS),))
            case "Leave", int(domain):
                self.turns -= 1
                self.got[domain] = ()
                self._feed(domain, (ev.Overheard(0, parts.LEAVES),))
            case ("Resolve",):
                self.found |= {self.life}
                self._feed(HOME, (ev.SourceFound(0, parts.TOPIC, parts.source(self.life)),))
            case "Gone", int(life):
                self.found -= {life}
                self._feed(HOME, (ev.SourceGone(0, parts.TOPIC, parts.source(life)),))
            case ("Restart",):
                self.life, self.sent = self.life + 1, 0
            case ("Send",):
                self.sent += 1
                run = parts.message(self.sent)
                self._feed(HOME, (ev.ItemsArrived(parts.origin_of(self.life), (run,)),))
            case "Deliver", int(router), int(peer):
                self._deliver(router, peer)
            case "Cut", int(link):
                self.breaks -= 1
                self.alive -= {link}
                one, other = divmod(link, 10)
                self.wires[one, other] = self.wires[other, one] = ()
            case "Connect", int(link):
                self._connect(link)
            case "Notice", int(router), int(peer):
                self._feed(router, (ev.LinkEnded(self.nodes[router - 1].portal(peer), "cut"),))
            case _:
                self._fire(str(name), *words)

    def _connect(self, link: int) -> None:
        one, other = divmod(link, 10)
        self.alive |= {link}
        self.wires[one, other] = self.wires[other, one] = (HELLO,)

    def _deliver(self, router: int, peer: int) -> None:
        """Let the other side of a link read what one step has said."""
        batch, *rest = self.wires[router, peer]
        self.wires[router, peer] = tuple(rest)
        portal = self.nodes[peer - 1].portal(router)
        if batch is HELLO:
            self._feed(peer, (ev.LinkBegun(portal, parts.node_of(router), f"r{router}"),))
        else:
            self._feed(peer, (ev.LinkArrived(portal, batch.items),), batch.by())

    def _fire(self, name: str, router: int, which: int = 0) -> None:
        node = self.nodes[router - 1]
        machine = node.own()
        match name:
            case "Steady":
                node.due(machine, Matter.STEADY, peer=which)
            case "Hold":
                node.due(machine, Matter.HELD)
            case _:
                node.due(machine, Matter.LOST, life=which)
        self._feed(router, ())

    def _feed(self, router: int, events: Iterable[ev.RouterInput], by: Way | None = None) -> None:
        """Feed inputs to a router, let it have its turn, and do what it wants."""
        node = self.nodes[router - 1]
        machine = node.own()
        says: dict[int, list[tuple[bytes, Fn]]] = {}
        for event in events:
            machine.receive(event, NOW)
        machine.handle_timeout(NOW)
        for effect in machine.take_effects():
            match effect:
                case fx.LinkSend(portal, octets):
                    says.setdefault(portal, []).append((octets, parts.told(octets, self.base)))
                case fx.Forward(portal, origin, octets):
                    seen = parts.streamed(octets, parts.life_of(origin), by or {}, router)
                    if portal:
                        says.setdefault(portal, []).append((octets, seen))
                    elif seen["kind"] == "data":
                        self.got[router] = (*self.got[router], (seen["life"], seen["number"]))
                case fx.OpenProxy(portal, origin):
                    machine.receive(ev.ProxyOpened(portal, origin, 99, parts.life_of(origin)), NOW)
                case fx.Want(on=False) if router == HOME:
                    self.found = frozenset()
                case fx.LinkDrop(portal, reason):
                    raise ModelError(f"router {router} drops its link to {node.exit(portal)}: {reason}")
                case _:
                    assert isinstance(effect, QUIET), effect
        node.fold()
        for portal, said in says.items():
            self._say(router, node.exit(portal), said)

    def _say(self, router: int, peer: int, said: list[tuple[bytes, Fn]]) -> None:
        if parts.link_of(router, peer) in self.alive:
            items = tuple(item for octets, _ in said for item in parts.items_of(octets))
            batch = Batch(items, tuple(seen for _, seen in said))
            self.wires[router, peer] = (*self.wires[router, peer], batch)

    # The model's variables.

    def abstract(self) -> State:
        return {
            "map": tuple(self._map(node) for node in self.nodes),
            "way": tuple(_ways(node) for node in self.nodes),
            "link": tuple(tuple(self._seen(node, peer) for peer in ROUTERS) for node in self.nodes),
            "table": tuple(self._table(node) for node in self.nodes),
            "remote": tuple(_remote(node) for node in self.nodes),
            "held": tuple(node.armed(Matter.HELD) for node in self.nodes),
            "want": tuple(self._wanted(domain) for domain in ROUTERS),
            "source": record(life=self.life, sent=self.sent, found=self.found),
            "wire": tuple(
                tuple(tuple(batch.seen for batch in self.wires.get((one, other), ())) for other in ROUTERS)
                for one in ROUTERS
            ),
            "alive": self.alive,
            "got": tuple(self.got.values()),
            "breaks": self.breaks,
            "turns": self.turns,
        }

    def _map(self, node: RouterNode) -> Value:
        records = node.machine.network.map.records
        found = []
        for number in ROUTERS:
            one = records[parts.node_of(number)]
            to = frozenset(parts.number_of(beside.node) for beside in one.neighbours) & frozenset(ROUTERS)
            found.append(record(gen=one.generation - self.base[number], to=to))
        return tuple(found)

    def _seen(self, node: RouterNode, peer: int) -> Fn:
        state = "none" if peer not in node.peers else self._link(node.number, peer)
        link = None if state == "none" else node.machine.portals[node.portal(peer)].link
        if link is None:
            nothing: frozenset[int] = frozenset()
            return record(state=state, paths=((),) * 3, hears=nothing, told=nothing, offers=nothing, taken=nothing)
        return record(
            state=state,
            paths=tuple(parts.PATHS[link.paths.get(domain, 0)] for domain in ROUTERS),
            hears=frozenset(domain for domain, symbols in link.interest.items() if symbols),
            told=frozenset(link.told.get(parts.QUERY, ())),
            offers=frozenset(map(parts.life_of, link.sources)),
            taken=frozenset(map(parts.life_of, link.offered)),
        )

    def _table(self, node: RouterNode) -> Value:
        found = []
        for life in range(1, self.constants.Lives + 1):
            source = node.machine.table.sources.get(parts.origin_of(life))
            if source is None:
                found.append(UNKNOWN)
                continue
            if source.elsewhere:
                raise ModelError(f"router {node.number} knows a source at two places")
            proxies = {node.exit(portal): proxy for portal, proxy in source.proxies.items()}
            passed = tuple(
                frozenset(number for low, high in proxies[one].window.seen for number in range(low, high))
                if one in proxies
                else frozenset()
                for one in ROUTERS
            )
            found.append(
                record(
                    at=node.exit(source.portal),
                    there=source.record is not None,
                    joined=source.joined is not None,
                    high=source.high or 0,
                    exits=frozenset(proxies),
                    passed=passed,
                )
            )
        return tuple(found)


UNKNOWN = record(at=0, there=False, joined=False, high=0, exits=frozenset(), passed=(frozenset(),) * 3)
QUIET = (fx.Want, fx.JoinSource, fx.LeaveSource, fx.CloseProxy, fx.Announce, fx.AskUse, fx.Wake, fx.Disconnect, Remark)
"""Effects of which the model has nothing besides the state of the router."""


def _ways(node: RouterNode) -> Value:
    """Return the path from each domain; of one that is not reached there is none."""
    ways = node.machine.network.ways
    return tuple(parts.PATHS[ways[domain].name] if domain in ways else () for domain in ROUTERS)


def _remote(node: RouterNode) -> Value:
    remote = node.machine.network.remote
    return frozenset(domain for domain, interest in remote.items() if parts.QUERY in interest.wanted)
