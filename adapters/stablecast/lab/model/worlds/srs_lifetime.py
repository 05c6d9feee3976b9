"""Drive the machines of the transports for `tla/SrsLifetime`: contexts and a resolution service (SRS).

The service is a whole `ResolutionService`, each context a whole `SrsContext` of one service, and they exchange their
own bytes. The world adds connections, which keep their order, break and hang. It also keeps former connections, from
which the service still reads earlier bytes. The service accepts a connection when its first bytes arrive.

Time passes when nothing is due. An application may try to connect at any time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import attrs

from stablecast.lab.model.canonical import Fn, ModelError, Value, record
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.explorer import Action, State
from stablecast.lab.model.worlds import srs_lifetime_parts as parts
from stablecast.transports.resolution.srs import events
from stablecast.transports.resolution.srs.client import ServiceClient
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.service import Matter, ResolutionService
from stablecast.transports.resolution.srs.service_link import LinkState, LinkTimer, ServiceLink
from stablecast.transports.resolution.srs.session import ServiceSession
from stablecast.transports.resolution.udp.inputs import AddReceiver, RemoveReceiver, RemoveSource, Unresolved


@attrs.define
class SrsLifetimeWorld:
    """Drive the service and its contexts. `left` are the remaining breaks, `numbers` the connections so far."""

    constants: parts.SrsConstants
    shared: SharedMachine[ResolutionService]
    nodes: list[parts.ContextNode]
    left: int
    numbers: int = 0
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Any]) -> Self:
        """Return the initial state: applications run, and nobody is connected."""
        known = parts.SrsConstants(**constants)
        nodes = [parts.ContextNode(number, "new") for number in range(1, known.Contexts + 1)]
        for node in nodes:
            if node.number not in known.Heirs:
                node.begin(known)
        return cls(known, SharedMachine(ResolutionService(1, known.service())), nodes, known.Breaks)

    @property
    def service(self) -> ResolutionService:
        """The service; do not change it."""
        return self.shared.machine

    def _own_service(self) -> ResolutionService:
        service = self.shared.own()
        for session in service.sessions.values():
            if session.client is not None:
                # Sessions and service share the client, which a copy does not preserve.
                session.client = service.clients[session.client.instance]
        return service

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
        faults = self.constants.Faults
        room = all(len(node.wire.back) < self.constants.Room for node in self.nodes)
        for node in self.nodes:
            if node.app == "up":
                yield from ((name, node.number) for name in self._of_context(node))
            elif self._may_begin(node):
                yield ("Begin", node.number)
            if node.wire.there and room:
                yield ("ToService", node.number)
            if (node.former.there or node.former.ends) and room:
                yield ("FromFormer", node.number)
            if node.wire.back:
                yield ("ToClient", node.number)
        service_due = self._service_due()
        if service_due:
            yield ("ServiceTimer",)
        if "restart" in faults and self.left:
            yield ("Restart",)
        if not service_due and not any(self._blocks(node) for node in self.nodes):
            yield ("Tick",)

    def _of_context(self, node: parts.ContextNode) -> Iterator[str]:
        faults, number, wanted = self.constants.Faults, node.number, bool(node.context.topics)
        link = node.context.links[0]
        clear = self._clear(node)
        if "die" in faults and number + 1 in self.constants.Heirs and clear:
            yield "Die"
        if not link.told or len(node.wire.there) < self.constants.Room:
            if number in self.constants.Sources and not node.context.sources:
                yield "Add"
            if "remove" in faults and node.context.sources:
                yield "Remove"
            if number in self.constants.Wants and not wanted:
                yield "Want"
            if "unwant" in faults and wanted:
                yield "Unwant"
            if "lose" in faults and link.told and wanted and not node.wire.hung and known_of(node.context):
                yield "Lose"
        if link.state is LinkState.WAITING:
            yield "Connect"
        elif self._due(node):
            yield "ContextTimer"
        if self.left and link.state is not LinkState.WAITING and not node.wire.hung and clear:
            yield from (name for name in ("Break", "Hang") if name.lower() in faults)

    def _may_begin(self, node: parts.ContextNode) -> bool:
        return node.app == "new" and self.nodes[node.number - 2].app == "dead"

    def _clear(self, node: parts.ContextNode) -> bool:
        """Return whether the service has finished with the previous connection."""
        return not node.former.ends and node.former.number not in self.service.sessions

    def _due(self, node: parts.ContextNode) -> bool:
        due = node.context.next_timeout() if node.app == "up" else None
        return due is not None and due <= self.now and node.context.links[0].state is not LinkState.WAITING

    def _service_due(self) -> bool:
        service, now = self.service, self.now
        return (
            any(records_over(client, now) for client in service.clients.values())
            or any(silent(session, now) for session in service.sessions.values())
            or any(now >= due for node in self.nodes if (due := leave_of(service, node.number)) is not None)
        )

    def _blocks(self, node: parts.ContextNode) -> bool:
        """Return whether time cannot pass because of a context."""
        if node.wire.there or node.wire.back or self._due(node):
            return True
        away = "away" in self.constants.Faults or node.wire.hung or node.app != "up"
        return not away and node.context.links[0].state is not LinkState.CURRENT

    # Effects of actions.

    def do(self, action: Action) -> None:
        name, *parameters = action
        match name:
            case "Tick":
                self.now += self.constants.tick
                self._run_service(spurious=True)
            case "ServiceTimer":
                self._run_service()
            case "Restart":
                self._restart()
            case _:
                (number,) = parameters
                assert isinstance(number, int)
                self._do(str(name), self.nodes[number - 1])

    def _do(self, name: str, node: parts.ContextNode) -> None:
        match name:
            case "Begin":
                node.begin(self.constants)
            case "Connect":
                self._connect(node)
            case "ToService":
                said, *rest = node.wire.there
                node.wire = attrs.evolve(node.wire, there=tuple(rest))
                self._read(node.wire.number, said)
            case "FromFormer":
                self._from_former(node)
            case "ToClient":
                said, *rest = node.wire.back
                node.wire = attrs.evolve(node.wire, back=tuple(rest))
                self._feed(node, events.BytesReceived(node.context.links[0].connection, said.octets))
            case "ContextTimer":
                self._run(node)
            case "Hang":
                node.wire = parts.Wire(node.wire.number, hung=True)
            case "Break" | "Die":
                self._leave(node, name)
            case _:
                self._feed(node, _application(name, node))
        self.left -= name in ("Break", "Hang")

    def _connect(self, node: parts.ContextNode) -> None:
        """Let the application connect successfully."""
        context = node.own()
        context.handle_timeout(self.now)
        self._perform(node, context)
        self.numbers += 1
        node.wire = parts.Wire(self.numbers)
        self._feed(node, events.ConnectionOpened(node.context.links[0].connection, parts.LOCAL))

    def _run(self, node: parts.ContextNode) -> None:
        context = node.own()
        before = context.links[0].state
        context.handle_timeout(self.now)
        if before is not LinkState.WAITING and context.links[0].state is LinkState.WAITING:
            context.take_effects()
            self._abandon(node)
        else:
            self._perform(node, context)

    def _leave(self, node: parts.ContextNode, name: str) -> None:
        connected = node.context.links[0].state is not LinkState.WAITING
        if name == "Die":
            node.app, node.shared = "dead", None
        else:
            self._feed(node, events.ConnectionClosed(node.context.links[0].connection))
        if connected:
            self._abandon(node)

    def _abandon(self, node: parts.ContextNode) -> None:
        """Leave a connection. Its bytes may arrive later; else they are lost, and the service is notified at once."""
        wire, node.wire = node.wire, parts.Wire()
        if wire.hung:
            node.former = parts.Former(wire.number)
        elif "late" in self.constants.Faults:
            node.former = parts.Former(wire.number, wire.there, ends=True)
        else:
            self._tell_service(events.ConnectionClosed(wire.number))

    def _from_former(self, node: parts.ContextNode) -> None:
        if node.former.there:
            said, *rest = node.former.there
            node.former = attrs.evolve(node.former, there=tuple(rest))
            self._read(node.former.number, said)
        else:
            number, node.former = node.former.number, parts.Former()
            self._tell_service(events.ConnectionClosed(number))

    def _read(self, number: int, said: parts.WrittenFrames) -> None:
        if said.seen["kind"] == "hello":
            self._tell_service(events.ConnectionAccepted(number, parts.LOCAL))
        self._tell_service(events.BytesReceived(number, said.octets))

    def _tell_service(self, event: events.ConnectionAccepted | events.BytesReceived | events.ConnectionClosed) -> None:
        self._own_service().receive(event, self.now)
        self._perform_service()

    def _run_service(self, spurious: bool = False) -> None:
        """Run due timers. A spurious wake-up changes nothing, and no action of the model stands for it."""
        due = self.service.next_timeout()
        if spurious and (due is None or due > self.now or self._service_due()):
            return
        self._own_service().handle_timeout(self.now)
        self._perform_service()

    def _restart(self) -> None:
        self.left -= 1
        self.shared = SharedMachine(ResolutionService(self.service.epoch + 1, self.constants.service()))
        for node in self.nodes:
            if node.app == "up" and node.context.links[0].state is not LinkState.WAITING:
                self._feed(node, events.ConnectionClosed(node.context.links[0].connection))
            node.wire, node.former = parts.Wire(), parts.Former()

    def _feed(self, node: parts.ContextNode, event: events.SrsContextInput) -> None:
        context = node.own()
        context.receive(event, self.now)
        self._perform(node, context)

    def _perform(self, node: parts.ContextNode, context: SrsContext) -> None:
        """Send everything that one step writes as one unit."""
        octets = b"".join(effect.data for effect in context.take_effects() if isinstance(effect, events.SendBytes))
        if octets and not node.wire.hung:
            node.wire = attrs.evolve(node.wire, there=(*node.wire.there, parts.to_service(octets)))

    def _perform_service(self) -> None:
        """Deliver the service's bytes; those to abandoned connections are lost."""
        for effect in self.service.take_effects():
            for node in self.nodes:
                if (
                    isinstance(effect, events.SendBytes)
                    and effect.connection == node.wire.number
                    and not node.wire.hung
                ):
                    node.wire = attrs.evolve(node.wire, back=(*node.wire.back, parts.to_context(effect.data)))
                elif isinstance(effect, events.Disconnect) and effect.connection == node.former.number:
                    node.former = parts.Former(node.former.number)

    def abstract(self) -> State:
        return seen(self.constants, self.service, self.nodes, self.left, self.now)


def _application(name: str, node: parts.ContextNode) -> events.SrsContextInput:
    match name:
        case "Add":
            return parts.source(node.number)
        case "Remove":
            return RemoveSource(node.number, 0)
        case "Want":
            return AddReceiver(parts.TOPIC)
        case "Lose":
            return Unresolved(parts.TOPIC)
        case _:
            return RemoveReceiver(parts.TOPIC)


_NO_SESSION = record(state="none", age=parts.NONE)
_NO_CLIENT = record(state="none", source=False, want=False, age=parts.NONE)


def seen(
    constants: parts.SrsConstants, service: ResolutionService, nodes: Sequence[parts.ContextNode], left: int, now: int
) -> State:
    return {
        "context": tuple(_context(node, service, now, constants) for node in nodes),
        "knows": tuple(_knows(node, len(nodes)) for node in nodes),
        "wire": tuple(
            record(there=_shown(node.wire.there), back=_shown(node.wire.back), hung=node.wire.hung) for node in nodes
        ),
        "former": tuple(record(there=_shown(node.former.there), ends=node.former.ends) for node in nodes),
        "client": tuple(_client(constants, service.clients.get(parts.instance_of(node.number)), now) for node in nodes),
        "session": tuple(
            record(
                now=_session(constants, service.sessions.get(node.wire.number), now),
                old=_session(constants, service.sessions.get(node.former.number), now),
            )
            for node in nodes
        ),
        "leave": tuple(_ticks(leave_of(service, node.number), now, constants) for node in nodes),
        "left": left,
    }


def _shown(queue: Sequence[parts.WrittenFrames]) -> tuple[Fn, ...]:
    return tuple(said.seen for said in queue)


def leave_of(service: ResolutionService, number: int) -> int | None:
    """Return when the service checks whether the source of a context is still there."""
    return service.agenda.deadlines.get((Matter.LEAVE, parts.otid_of(number)))


def records_over(client: ServiceClient, now: int) -> bool:
    """Return whether a client's records were potentially down for their lifetime."""
    due = client.next_lapse()
    return due is not None and due <= now


def silent(session: ServiceSession, now: int) -> bool:
    """Return whether a connection was silent for too long."""
    return now >= session.heard_at + session.lifetime


def _context(node: parts.ContextNode, service: ResolutionService, now: int, constants: parts.SrsConstants) -> Fn:
    if node.app != "up":
        timers = dict.fromkeys(("sweep", "keepalive", "silence"), parts.NONE)
        return record(app=node.app, has=False, wants=False, link="WAITING", stale=0, settled="none", **timers)
    context = node.context
    (link,) = context.links
    return record(
        app=node.app,
        has=bool(context.sources),
        wants=bool(context.topics),
        link=link.state.name,
        stale=sum(link.unanswered.values()) if link.told else 0,
        settled=_settled(link, service),
        sweep=_left(link, LinkTimer.SWEEP, now, constants),
        keepalive=_left(link, LinkTimer.KEEPALIVE, now, constants) if constants.Keepalive else parts.NONE,
        silence=_left(link, LinkTimer.SILENCE, now, constants) if constants.Keepalive else parts.NONE,
    )


def _settled(link: ServiceLink, service: ResolutionService) -> str:
    if not link.settled:
        return "none"
    return "this" if link.settled == service.epoch else "other"


def _left(link: ServiceLink, kind: LinkTimer, now: int, constants: parts.SrsConstants) -> int:
    return _ticks(link.timers.deadline(kind), now, constants)


def _ticks(deadline: int | None, now: int, constants: parts.SrsConstants) -> int:
    return parts.NONE if deadline is None else (deadline - now) // constants.tick


def _knows(node: parts.ContextNode, contexts: int) -> tuple[Value, ...]:
    known = dict.fromkeys(range(1, contexts + 1), "no")
    if node.app == "up":
        known |= known_of(node.context)
    return tuple(known.values())


def known_of(context: SrsContext) -> dict[int, str]:
    """Return the known sources of others, and whether the service named them on the current connection."""
    (link,) = context.links
    current = link.connection if link.told else None
    return {
        parts.number_of(entry.record.instance): "cur" if entry.holders[0] == current else "old"
        for entry in context.known.entries.values()
        if 0 in entry.holders
    }


def _client(constants: parts.SrsConstants, client: ServiceClient | None, now: int) -> Fn:
    if client is None:
        return _NO_CLIENT
    ages = {
        min((now - client.lost_at[mark]) // constants.tick, max(constants.SourceLifetime, constants.InterestLifetime))
        for mark in (*client.sources.values(), *client.interests.values())
        if mark in client.lost_at
    }
    if len(ages) > 1:
        raise ModelError("records of one client became potentially down at different times")
    return record(
        state=client.state.name,
        source=bool(client.sources),
        want=bool(client.interests),
        age=ages.pop() if ages else parts.NONE,
    )


def _session(constants: parts.SrsConstants, session: ServiceSession | None, now: int) -> Fn:
    if session is None:
        return _NO_SESSION
    age = (now - session.heard_at) // constants.tick if constants.Keepalive else parts.NONE
    return record(state="told" if session.stream else "registered", age=age)
