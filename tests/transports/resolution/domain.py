"""A resolution domain in virtual time: contexts, relays or a group, datagrams that take no time, and outages."""

import attrs

from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.udp.carriers import DEFAULT_GROUP, MulticastGroup
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.effects import Discovered, Listen, SendCopies, SendDatagram
from stablecast.transports.resolution.udp.inputs import ContextInput, DatagramArrived
from stablecast.transports.resolution.udp.relay import RelayMachine
from stablecast.transports.resolution.udp.settings import SAFE, ResolutionConfig

RELAY = "10.0.0.100:15380"
SECOND_RELAY = "10.0.0.101:15380"

Node = ResolutionContext | RelayMachine


@attrs.define
class Domain:
    """Drives its nodes; `down` nodes neither receive nor act. `sent` is (now, from, to, data)."""

    nodes: dict[str, Node] = attrs.field(factory=dict)
    down: set[str] = attrs.field(factory=set)
    listening: set[str] = attrs.field(factory=set)
    now: int = 0
    sent: list[tuple[int, str, str, bytes]] = attrs.field(factory=list)
    found: list[tuple[int, str, str, SourceRecord]] = attrs.field(factory=list)
    others: list[tuple[int, str, object]] = attrs.field(factory=list)

    def relay(self, address: str = RELAY) -> RelayMachine:
        """A relay with an empty table; a former one at this address is forgotten."""
        relay = self.nodes[address] = RelayMachine(b"lbmrd..." if address == RELAY else b"lbmrd..2")
        return relay

    def context(self, address: str, *relays: str, config: ResolutionConfig = SAFE) -> ResolutionContext:
        """A context without sources and receivers."""
        instance = address[:8].encode()
        context = self.nodes[address] = ResolutionContext.over_relays(instance, relays or (RELAY,), config)
        return context

    def member(self, address: str, config: ResolutionConfig = SAFE) -> ResolutionContext:
        context = self.nodes[address] = ResolutionContext.create(address[:8].encode(), MulticastGroup(), config)
        return context

    def feed(self, address: str, event: ContextInput) -> None:
        context = self.nodes[address]
        assert isinstance(context, ResolutionContext)
        context.receive(event, self.now)
        self._perform(address)

    def run(self, until: int) -> None:
        """Advance to `until` (ns)."""
        while True:
            dues = [(due, at) for at, node in self.nodes.items() if (due := self._due(at, node)) is not None]
            due, address = min(dues, default=(until + 1, ""))
            if due > until:
                break
            self.now = max(self.now, due)
            self.nodes[address].handle_timeout(self.now)
            self._perform(address)
        self.now = until

    def _due(self, address: str, node: Node) -> int | None:
        return None if address in self.down else node.next_timeout()

    def _perform(self, address: str) -> None:
        for effect in self.nodes[address].take_effects():
            match effect:
                case SendDatagram(to, data):
                    self._send(address, to, data)
                case SendCopies(to, data):
                    for client in to:
                        self._send(address, client, data)
                case Discovered(topic, record):
                    self.found.append((self.now, address, topic, record))
                case Listen(on):
                    (self.listening.add if on else self.listening.discard)(address)
                case _:
                    self.others.append((self.now, address, effect))

    def _send(self, address: str, to: str, data: bytes) -> None:
        self.sent.append((self.now, address, to, data))
        for receiver in sorted(self.listening) if to == DEFAULT_GROUP else [to]:
            if receiver in self.nodes and receiver not in self.down and address not in self.down:
                self.nodes[receiver].receive(DatagramArrived(data, address), self.now)
                self._perform(receiver)
