"""The relay (lbmrd): sends every resolution datagram on to all other contexts it knows.

It keeps no topic state, only who is there (T-017, T-216): the sender of any valid resolution datagram is a client until
it was silent for the time to live. Keepalives are answered and go no further; everything else is forwarded byte for
byte. What is no resolution traffic is counted and dropped, and makes nobody a client.
"""

import attrs

from stablecast.core.units import SECOND
from stablecast.transports.resolution.effects import SendDatagram
from stablecast.transports.resolution.inputs import DatagramArrived
from stablecast.transports.wire import lbmr
from stablecast.transports.wire.errors import WireError

CLIENT_TTL = 60 * SECOND
"""Silence after which a client is forgotten."""

MAX_CLIENTS = 16_384
"""Clients of one relay; datagrams of further ones are counted and dropped."""

ALIVE = (lbmr.PacketKind.RECEIVER_ALIVE, lbmr.PacketKind.SOURCE_ALIVE)


@attrs.define
class RelayCounters:
    """What a relay saw, in datagrams; `expired` counts clients."""

    received: int = 0
    forwarded: int = 0
    keepalives: int = 0
    malformed: int = 0
    refused: int = 0
    expired: int = 0


@attrs.define
class RelayMachine:
    """One relay.

    Attributes:
        instance: The 8 bytes that name the relay in its answers.
        client_ttl: Nanoseconds of silence after which a client is forgotten.
        max_clients: Clients at most.
        last_heard: When each client was last heard (ns), longest silent first.
    """

    instance: bytes
    client_ttl: int = CLIENT_TTL
    max_clients: int = MAX_CLIENTS
    last_heard: dict[str, int] = attrs.field(factory=dict, init=False)
    counted: RelayCounters = attrs.field(factory=RelayCounters, init=False)
    outbox: list[SendDatagram] = attrs.field(factory=list, init=False)
    _answer: bytes = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        nothing = lbmr.Packet(lbmr.PacketKind.NORMAL, (), (), lbmr.standard_options(self.instance))
        self._answer = lbmr.encode(nothing)

    def receive(self, event: DatagramArrived, now: int) -> None:
        """Feeds one datagram."""
        self.handle_timeout(now)
        self.counted.received += 1
        try:
            packet = lbmr.decode(event.data)
        except WireError:
            self.counted.malformed += 1
            return
        if not self._admit(event.sender, now):
            self.counted.refused += 1
        elif isinstance(packet, lbmr.Packet) and packet.kind in ALIVE:
            self.counted.keepalives += 1
            self.outbox.append(SendDatagram(event.sender, self._answer))
        elif not _is_answer(packet):
            self.counted.forwarded += 1
            self.outbox += (SendDatagram(to, event.data) for to in self.last_heard if to != event.sender)

    def handle_timeout(self, now: int) -> None:
        """Forgets silent clients."""
        while self.last_heard:
            client, heard = next(iter(self.last_heard.items()))
            if now < heard + self.client_ttl:
                return
            del self.last_heard[client]
            self.counted.expired += 1

    def next_timeout(self) -> int | None:
        """When `handle_timeout` is due, in nanoseconds."""
        heard = next(iter(self.last_heard.values()), None)
        return None if heard is None else heard + self.client_ttl

    def take_effects(self) -> list[SendDatagram]:
        """What to do, in order."""
        effects, self.outbox = self.outbox, []
        return effects

    def counters(self) -> dict[str, int]:
        """What happened so far, by name, and the number of clients now."""
        return {"clients": len(self.last_heard), **attrs.asdict(self.counted)}

    def _admit(self, sender: str, now: int) -> bool:
        if self.last_heard.pop(sender, None) is None and len(self.last_heard) == self.max_clients:
            return False
        self.last_heard[sender] = now  # At the end: the dictionary stays in the order of silence.
        return True


def _is_answer(packet: lbmr.Packet | lbmr.ContextInfo) -> bool:
    """Whether this is what relays answer to keepalives: answering or forwarding it could go in circles."""
    if not isinstance(packet, lbmr.Packet):
        return False
    return packet.kind == lbmr.PacketKind.NORMAL and not packet.queries and not packet.advertisements
