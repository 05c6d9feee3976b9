"""The resolution of one context over unicast relays: source side, receiver side, and the relays between.

Relays forward to all other contexts, not back; so what one half of the context sends, the other half hears directly, as
it would over multicast. A context with neither sources nor receivers is silent (T-215).
"""

from collections.abc import Sequence
from typing import assert_never

import attrs

from stablecast.transports.resolution.advertiser import Advertiser
from stablecast.transports.resolution.effects import ContextEffect, Discovered, SendDatagram, Transmit
from stablecast.transports.resolution.inputs import (
    AddReceiver,
    AddSource,
    ContextInput,
    DatagramArrived,
    Heard,
    RemoveReceiver,
    RemoveSource,
    Resolved,
    Unresolved,
)
from stablecast.transports.resolution.querier import Querier
from stablecast.transports.resolution.records import check_instance
from stablecast.transports.resolution.relays import ACTIVITY_TIMEOUT, KEEPALIVE_INTERVAL, Relays
from stablecast.transports.wire import lbmr
from stablecast.transports.wire.errors import WireError


@attrs.define
class ContextCounters:
    """What a context saw, in datagrams; `unusable` counts advertisements of wanted topics on other transports."""

    sent: int = 0
    received: int = 0
    malformed: int = 0
    unknown_sender: int = 0
    unusable: int = 0


@attrs.define
class ResolutionContext:
    """Resolution machine of one context.

    Attributes:
        relays: The relays and which of them is used.
        trailer: The options that end every packet of ours.
    """

    relays: Relays
    trailer: tuple[lbmr.PacketOption, ...]
    advertiser: Advertiser
    querier: Querier
    counted: ContextCounters = attrs.field(factory=ContextCounters, init=False)
    outbox: list[ContextEffect] = attrs.field(factory=list, init=False)

    @classmethod
    def create(
        cls,
        instance: bytes,
        relays: Sequence[str],
        keepalive_interval: int = KEEPALIVE_INTERVAL,
        activity_timeout: int = ACTIVITY_TIMEOUT,
    ) -> "ResolutionContext":
        """A context named by the 8 bytes `instance` that uses the `relays` (`ip:port`); times in nanoseconds.

        Raises:
            MisuseError: If there is no relay, or too many, or `instance` has another length.
        """
        check_instance(instance)
        times = Relays(tuple(dict.fromkeys(relays)), keepalive_interval, activity_timeout)
        return cls(times, lbmr.standard_options(instance), Advertiser(instance), Querier())

    def receive(self, event: ContextInput, now: int) -> None:
        """Feeds one input.

        Raises:
            MisuseError: If a source or topic cannot be written on the wire, is there already, or is one too many.
        """
        match event:
            case DatagramArrived():
                self._on_datagram(event, now)
            case AddSource() | RemoveSource():
                self.advertiser.receive(event, now)
            case AddReceiver() | RemoveReceiver() | Resolved() | Unresolved():
                self.querier.receive(event, now)
            case _:
                assert_never(event)
        self._keep_alive(now)
        self._forward(now)

    def handle_timeout(self, now: int) -> None:
        """Does what is due."""
        self.relays.handle_timeout(now)
        self._keep_alive(now)
        self.advertiser.handle_timeout(now)
        self.querier.handle_timeout(now)
        self._forward(now)

    def next_timeout(self) -> int | None:
        """When `handle_timeout` is due, in nanoseconds."""
        due = (self.relays.next(), self.advertiser.next_timeout(), self.querier.next_timeout())
        return min((deadline for deadline in due if deadline is not None), default=None)

    def take_effects(self) -> list[ContextEffect]:
        """What to do, in order."""
        effects, self.outbox = self.outbox, []
        return effects

    def counters(self) -> dict[str, int]:
        """What happened so far, by name."""
        return attrs.asdict(attrs.evolve(self.counted, unusable=self.querier.unusable))

    def _on_datagram(self, event: DatagramArrived, now: int) -> None:
        self.counted.received += 1
        if event.sender not in self.relays.addresses:
            self.counted.unknown_sender += 1
            return
        try:
            packet = lbmr.decode(event.data)
        except WireError:
            self.counted.malformed += 1
            return
        self.relays.on_heard(event.sender, now)
        if isinstance(packet, lbmr.Packet):
            self.advertiser.receive(Heard(packet), now)
            self.querier.receive(Heard(packet), now)

    def _keep_alive(self, now: int) -> None:
        busy = bool(self.advertiser or self.querier)
        if busy and not self.relays.running:
            self.relays.start(now)
        elif not busy and self.relays.running:
            self.relays.stop()
        kind = lbmr.PacketKind.SOURCE_ALIVE if self.advertiser else lbmr.PacketKind.RECEIVER_ALIVE
        for address in self.relays.take_keepalives(now):
            self._send(address, lbmr.Packet(kind, (), (), self.trailer))

    def _forward(self, now: int) -> None:
        """Sends what the two halves say, each heard by the other, until both are quiet."""
        for said in self.advertiser.take_effects():
            packet = self._transmit(said)
            self.querier.receive(Heard(packet), now)
        for effect in self.querier.take_effects():
            match effect:
                case Discovered():
                    self.outbox.append(effect)
                case Transmit():
                    self._transmit(effect)
                    self._answer_ourselves(effect, now)
                case _:
                    assert_never(effect)

    def _answer_ourselves(self, asked: Transmit, now: int) -> None:
        """Our own sources answer our own queries without a datagram."""
        for query in asked.queries:
            tirs = self.advertiser.advertised(query.name)
            self.querier.receive(Heard(lbmr.Packet(lbmr.PacketKind.NORMAL, (), tirs, self.trailer)), now)
        found = self.querier.take_effects()
        self.outbox += (effect for effect in found if isinstance(effect, Discovered))

    def _transmit(self, said: Transmit) -> lbmr.Packet:
        packet = lbmr.Packet(lbmr.PacketKind.NORMAL, said.queries, said.advertisements, self.trailer)
        self._send(self.relays.current, packet)
        return packet

    def _send(self, to: str, packet: lbmr.Packet) -> None:
        self.counted.sent += 1
        self.outbox.append(SendDatagram(to, lbmr.encode(packet)))
