"""A domain of services (SRS) and contexts in virtual time: connections that take no time, break, and hang.

A context that is `away` is behind a broken network: nothing passes, and no end is reported. Bytes on their way arrive
when it is back, if the connection still exists at both ends.
"""

from collections import deque

import attrs

from stablecast.transports.resolution.records import SourceRecord, named
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.events import (
    BytesReceived,
    Connect,
    ConnectionAccepted,
    ConnectionClosed,
    ConnectionOpened,
    Disconnect,
    SendBytes,
    ServiceChanged,
    ServiceEffect,
    SrsContextEffect,
    SrsContextInput,
)
from stablecast.transports.resolution.srs.service import ResolutionService
from stablecast.transports.resolution.srs.settings import CLIENT_DEFAULTS, ClientConfig, ServiceConfig
from stablecast.transports.resolution.udp.effects import Abandoned, Discovered, Remark, Withdrawn
from stablecast.transports.resolution.udp.inputs import AddReceiver, AddSource
from tests.transports.resolution.invariants import check_service

SRS = "10.0.0.100:27000"
SECOND_SRS = "10.0.0.101:27000"
DEFAULTS = ServiceConfig()
End = tuple[str, int]
"""A node and its number of a connection."""


def source(topic: str = "orders", index: int = 1, session_id: int = 7) -> AddSource:
    return AddSource(topic, "10.0.0.1:14371", session_id, index, "10.0.0.1:14391", persistent=True)


def record(instance: bytes, index: int = 1, session_id: int = 7) -> SourceRecord:
    return named(
        SourceRecord("10.0.0.1:14371", session_id, index, "10.0.0.1:14391", persistent=True, instance=instance)
    )


@attrs.define
class SrsDomain:
    """Drives its nodes; `wire` is (from, to, bytes) of everything that was sent."""

    services: dict[str, ResolutionService] = attrs.field(factory=dict)
    contexts: dict[str, SrsContext] = attrs.field(factory=dict)
    peers: dict[End, End] = attrs.field(factory=dict)
    away: set[str] = attrs.field(factory=set)
    held: list[tuple[End, bytes]] = attrs.field(factory=list)
    now: int = 0
    numbers: int = 0
    epochs: int = 0
    wire: list[tuple[str, str, bytes]] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)
    found: list[tuple[str, str, SourceRecord]] = attrs.field(factory=list)
    gone: list[tuple[str, str, SourceRecord]] = attrs.field(factory=list)
    left: list[tuple[str, str]] = attrs.field(factory=list)
    changes: list[tuple[str, ServiceChanged]] = attrs.field(factory=list)
    work: deque[str] = attrs.field(factory=deque)

    def service(self, address: str = SRS, config: ServiceConfig = DEFAULTS) -> ResolutionService:
        """Start an empty service; a former one at this address is forgotten, and its connections break."""
        self.stop(address)
        self.epochs += 1
        service = self.services[address] = ResolutionService(self.epochs, config)
        return service

    def stop(self, address: str) -> None:
        """End a service or a context as a crash would."""
        self.services.pop(address, None)
        self.contexts.pop(address, None)
        for end in [end for end in self.peers if end[0] == address]:
            self._hang_up(end)
        self._settle()

    def context(self, name: str, *services: str, config: ClientConfig = CLIENT_DEFAULTS) -> SrsContext:
        """Start a context without sources and receivers, connected to its services."""
        instance = name.ljust(8, ".").encode()
        context = self.contexts[name] = SrsContext.create(instance, services or (SRS,), len(name), config)
        self.run(self.now)
        return context

    def feed(self, name: str, *events: SrsContextInput) -> None:
        for event in events:
            self.contexts[name].receive(event, self.now)
            self.work.append(name)
            self._settle()

    def pair(self) -> None:
        """Start a context with a source and one with its receiver, which found it."""
        self.context("source")
        self.context("receiver")
        self.feed("receiver", AddReceiver("orders"))
        self.feed("source", source())

    def leave(self, name: str) -> None:
        """Break the network of a context."""
        self.away.add(name)

    def back(self, name: str) -> None:
        """Repair the network of a context; delayed bytes arrive."""
        self.away.discard(name)
        held, self.held = self.held, []
        for end, data in held:
            self._deliver(end, data)
        self._settle()

    def run(self, until: int) -> None:
        while True:
            nodes: dict[str, ResolutionService | SrsContext] = {**self.services, **self.contexts}
            dues = [(due, name) for name, node in nodes.items() if (due := node.next_timeout()) is not None]
            due, name = min(dues, default=(until + 1, ""))
            if due > until:
                break
            self.now = max(self.now, due)
            nodes[name].handle_timeout(self.now)
            self.work.append(name)
            self._settle()
        self.now = until

    def discovered(self, name: str) -> list[tuple[str, int]]:
        """Return topic and index of newly discovered sources, in order."""
        mine = [(topic, found.index) for who, topic, found in self.found if who == name]
        self.found = [entry for entry in self.found if entry[0] != name]
        return mine

    def withdrawn(self, name: str) -> list[tuple[str, int]]:
        """Return topic and index of newly withdrawn sources, in order."""
        mine = [(topic, found.index) for who, topic, found in self.gone if who == name]
        self.gone = [entry for entry in self.gone if entry[0] != name]
        return mine

    def abandoned(self, name: str) -> list[str]:
        """Return the newly abandoned topics, in order."""
        mine = [topic for who, topic in self.left if who == name]
        self.left = [entry for entry in self.left if entry[0] != name]
        return mine

    def _settle(self) -> None:
        while self.work:
            name = self.work.popleft()
            if name in self.services:
                check_service(self.services[name])
                for effect in self.services[name].take_effects():
                    self._of_service(name, effect)
            elif name in self.contexts:
                for found in self.contexts[name].take_effects():
                    self._of_context(name, found)

    def _of_service(self, name: str, effect: ServiceEffect) -> None:
        match effect:
            case SendBytes(connection, data):
                self._deliver((name, connection), data)
            case Disconnect(connection):
                self._hang_up((name, connection))
            case Remark(text):
                self.notes.append(text)

    def _of_context(self, name: str, effect: SrsContextEffect) -> None:
        match effect:
            case Connect(connection, address):
                self._connect((name, connection), address)
            case SendBytes(connection, data):
                self._deliver((name, connection), data)
            case Disconnect(connection):
                self._hang_up((name, connection))
            case Discovered(topic, found):
                self.found.append((name, topic, found))
            case Withdrawn(topic, found):
                self.gone.append((name, topic, found))
            case Abandoned(topic):
                self.left.append((name, topic))
            case ServiceChanged():
                self.changes.append((name, effect))

    def _connect(self, end: End, address: str) -> None:
        if end[0] in self.away:
            return
        if address not in self.services:
            self._feed(end, ConnectionClosed(end[1], "refused"))
            return
        self.numbers += 1
        other = (address, self.numbers)
        self.peers[end], self.peers[other] = other, end
        self._feed(other, ConnectionAccepted(other[1], end[0]))
        self._feed(end, ConnectionOpened(end[1], "10.0.0.1:41000"))

    def _deliver(self, end: End, data: bytes) -> None:
        other = self.peers.get(end)
        if other is None:
            return
        if {end[0], other[0]} & self.away:
            self.held.append((end, data))
            return
        self.wire.append((end[0], other[0], data))
        self._feed(other, BytesReceived(other[1], data))

    def _hang_up(self, end: End) -> None:
        other = self.peers.pop(end, None)
        if other is not None and not {end[0], other[0]} & self.away:
            del self.peers[other]
            self._feed(other, ConnectionClosed(other[1], "closed by the other end"))

    def _feed(self, end: End, event: ConnectionAccepted | ConnectionOpened | BytesReceived | ConnectionClosed) -> None:
        name = end[0]
        if name in self.services and not isinstance(event, ConnectionOpened):
            self.services[name].receive(event, self.now)
        elif name in self.contexts and not isinstance(event, ConnectionAccepted):
            self.contexts[name].receive(event, self.now)
        self.work.append(name)
