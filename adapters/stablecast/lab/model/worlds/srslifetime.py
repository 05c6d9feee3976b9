"""The world of `tla/SrsLifetime`: contexts and a resolution service (SRS), by the machines of the transports.

The service is a whole `ResolutionService`, each context a whole `SrsContext` of one service; their bytes are real.
The world adds connections, which keep their order, break and hang, and former ones, from which the service still reads
what was said before. It accepts a connection when its first bytes come.

Time passes when nothing is due; when an application tries to connect is a free choice.
"""

from collections.abc import Iterator, Mapping
from typing import Self

import attrs

from stablecast.lab.model.canonical import Value
from stablecast.lab.model.clone import Shared
from stablecast.lab.model.explorer import Action, State
from stablecast.lab.model.worlds.srslifetime_parts import (
    LOCAL,
    TOPIC,
    Constants,
    Former,
    Node,
    Said,
    Wire,
    source,
    to_context,
    to_service,
)
from stablecast.lab.model.worlds.srslifetime_seen import INVARIANTS, known_of, leave_of, records_over, seen, silent
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.events import (
    BytesReceived,
    ConnectionAccepted,
    ConnectionClosed,
    ConnectionOpened,
    Disconnect,
    SendBytes,
    SrsContextInput,
)
from stablecast.transports.resolution.srs.service import ResolutionService
from stablecast.transports.resolution.srs.service_link import LinkState
from stablecast.transports.resolution.udp.inputs import AddReceiver, RemoveReceiver, RemoveSource, Unresolved

__all__ = ["INVARIANTS", "World"]


@attrs.define
class World:
    """See the module. `left`: breaks that are left; `numbers`: connections that were made."""

    constants: Constants
    shared: Shared[ResolutionService]
    nodes: list[Node]
    left: int
    numbers: int = 0
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Value]) -> Self:
        """The initial state: applications run, and nobody is connected."""
        known = Constants(**{name: value for name, value in constants.items() if name != "Mutant"})  # type: ignore[arg-type]
        nodes = [Node(number, "new") for number in range(1, known.Contexts + 1)]
        for node in nodes:
            if node.number not in known.Heirs:
                node.begin(known)
        return cls(known, Shared(ResolutionService(1, known.service())), nodes, known.Breaks)

    @property
    def service(self) -> ResolutionService:
        """Not to be changed."""
        return self.shared.machine

    def _own_service(self) -> ResolutionService:
        self.shared = self.shared.own()
        for session in self.service.sessions.values():
            if session.client is not None:
                session.client = self.service.clients[session.client.instance]  # Shared, which a copy does not know.
        return self.service

    # What can happen.

    def actions(self) -> Iterator[Action]:
        """In the order of the model's `Next`."""
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

    def _of_context(self, node: Node) -> Iterator[str]:
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

    def _may_begin(self, node: Node) -> bool:
        return node.app == "new" and self.nodes[node.number - 2].app == "dead"

    def _clear(self, node: Node) -> bool:
        """Whether the service has done with the connection before this one."""
        return not node.former.ends and node.former.number not in self.service.sessions

    def _due(self, node: Node) -> bool:
        due = node.context.next_timeout() if node.app == "up" else None
        return due is not None and due <= self.now and node.context.links[0].state is not LinkState.WAITING

    def _service_due(self) -> bool:
        service, now = self.service, self.now
        return (
            any(records_over(client, now) for client in service.clients.values())
            or any(silent(session, now) for session in service.sessions.values())
            or any(now >= due for node in self.nodes if (due := leave_of(service, node.number)) is not None)
        )

    def _blocks(self, node: Node) -> bool:
        """Whether time cannot pass because of it."""
        if node.wire.there or node.wire.back or self._due(node):
            return True
        away = "away" in self.constants.Faults or node.wire.hung or node.app != "up"
        return not away and node.context.links[0].state is not LinkState.CURRENT

    # What happens.

    def do(self, action: Action) -> None:
        """Let it happen."""
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

    def _do(self, name: str, node: Node) -> None:
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
                self._feed(node, BytesReceived(node.context.links[0].connection, said.octets))
            case "ContextTimer":
                self._run(node)
            case "Hang":
                node.wire = Wire(node.wire.number, hung=True)
            case "Break" | "Die":
                self._leave(node, name)
            case _:
                self._feed(node, _application(name, node))
        self.left -= name in ("Break", "Hang")

    def _connect(self, node: Node) -> None:
        """The attempt is made, and the connection is there."""
        context = node.own()
        context.handle_timeout(self.now)
        self._perform(node, context)
        self.numbers += 1
        node.wire = Wire(self.numbers)
        self._feed(node, ConnectionOpened(node.context.links[0].connection, LOCAL))

    def _run(self, node: Node) -> None:
        context = node.own()
        before = context.links[0].state
        context.handle_timeout(self.now)
        if before is not LinkState.WAITING and context.links[0].state is LinkState.WAITING:
            context.take_effects()
            self._abandon(node)
        else:
            self._perform(node, context)

    def _leave(self, node: Node, name: str) -> None:
        connected = node.context.links[0].state is not LinkState.WAITING
        if name == "Die":
            node.app, node.shared = "dead", None
        else:
            self._feed(node, ConnectionClosed(node.context.links[0].connection))
        if connected:
            self._abandon(node)

    def _abandon(self, node: Node) -> None:
        """What was said may come later; else the service is told at once, and it is lost."""
        wire, node.wire = node.wire, Wire()
        if wire.hung:
            node.former = Former(wire.number)
        elif "late" in self.constants.Faults:
            node.former = Former(wire.number, wire.there, ends=True)
        else:
            self._tell_service(ConnectionClosed(wire.number))

    def _from_former(self, node: Node) -> None:
        if node.former.there:
            said, *rest = node.former.there
            node.former = attrs.evolve(node.former, there=tuple(rest))
            self._read(node.former.number, said)
        else:
            number, node.former = node.former.number, Former()
            self._tell_service(ConnectionClosed(number))

    def _read(self, number: int, said: Said) -> None:
        if said.seen["kind"] == "hello":
            self._tell_service(ConnectionAccepted(number, LOCAL))
        self._tell_service(BytesReceived(number, said.octets))

    def _tell_service(self, event: ConnectionAccepted | BytesReceived | ConnectionClosed) -> None:
        self._own_service().receive(event, self.now)
        self._perform_service()

    def _run_service(self, spurious: bool = False) -> None:
        """A wake-up for what was put off changes nothing; no action of the model stands for it."""
        due = self.service.next_timeout()
        if spurious and (due is None or due > self.now or self._service_due()):
            return
        self._own_service().handle_timeout(self.now)
        self._perform_service()

    def _restart(self) -> None:
        self.left -= 1
        self.shared = Shared(ResolutionService(self.service.epoch + 1, self.constants.service()))
        for node in self.nodes:
            if node.app == "up" and node.context.links[0].state is not LinkState.WAITING:
                self._feed(node, ConnectionClosed(node.context.links[0].connection))
            node.wire, node.former = Wire(), Former()

    def _feed(self, node: Node, event: SrsContextInput) -> None:
        context = node.own()
        context.receive(event, self.now)
        self._perform(node, context)

    def _perform(self, node: Node, context: SrsContext) -> None:
        """What is written in one step goes as one."""
        octets = b"".join(effect.data for effect in context.take_effects() if isinstance(effect, SendBytes))
        if octets and not node.wire.hung:
            node.wire = attrs.evolve(node.wire, there=(*node.wire.there, to_service(octets)))

    def _perform_service(self) -> None:
        """What is written to connections that their contexts have left is lost."""
        for effect in self.service.take_effects():
            for node in self.nodes:
                if isinstance(effect, SendBytes) and effect.connection == node.wire.number and not node.wire.hung:
                    node.wire = attrs.evolve(node.wire, back=(*node.wire.back, to_context(effect.data)))
                elif isinstance(effect, Disconnect) and effect.connection == node.former.number:
                    node.former = Former(node.former.number)

    def abstract(self) -> State:
        """The model's variables."""
        return seen(self.constants, self.service, self.nodes, self.left, self.now)


def _application(name: str, node: Node) -> SrsContextInput:
    match name:
        case "Add":
            return source(node.number)
        case "Remove":
            return RemoveSource(node.number, 0)
        case "Want":
            return AddReceiver(TOPIC)
        case "Lose":
            return Unresolved(TOPIC)
        case _:
            return RemoveReceiver(TOPIC)
