"""Simulate topic resolution: the machines of contexts, and datagrams that are late or lost.

A datagram reaches every process but its sender, each independently of the others, and no process beyond a partition. No
datagram reports that a source is gone; a receiver finds out when it joins.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.subscription.inputs import Place
from stablecast.lab.sim.process import VirtualDriver, VirtualProcess
from stablecast.runtime.driver import Driven
from stablecast.transports import codec
from stablecast.transports.resolution.records import INSTANCE_BYTES
from stablecast.transports.resolution.udp.carriers import MulticastGroup
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.effects import ContextEffect, Discovered, SendDatagram
from stablecast.transports.resolution.udp.inputs import AddSource, ContextInput, DatagramArrived, RemoveSource

PORT = 12_965
PERCENT = 100


OnFound = Callable[[Place], None]


def nobody_looks(_: Place) -> None:
    """Ignore a found source, in a process without receivers."""


class DatagramMedium:
    """Carry datagrams and lose `lost` percent of them."""

    def __init__(self, lost: int) -> None:
        self._lost = lost
        self._members: list[ProcessResolution] = []

    def join(self, member: "ProcessResolution") -> None:
        self._members.append(member)

    def carry(self, process: VirtualProcess, data: bytes) -> None:
        """Deliver a datagram to all other live members within reach."""
        network, rng = process.network, process.world.rng
        self._members = [member for member in self._members if member.process.alive]
        event = DatagramArrived(data, f"{process.host}:{PORT}")
        for member in self._members:
            if member.process is process or network.blocked(process.host, member.process.host):
                continue
            if rng.random() * PERCENT >= self._lost:
                arrive = partial(member.process.deliver, partial(member.feed, event))
                process.world.after(network.delay(), arrive)


class ProcessResolution:
    def __init__(self, process: VirtualProcess, air: DatagramMedium, on_found: OnFound = nobody_looks) -> None:
        """Join the medium; sources that receivers look for go to `on_found`."""
        self.process = process
        self._air = air
        self._on_found = on_found
        instance = process.world.rng.getrandbits(8 * INSTANCE_BYTES).to_bytes(INSTANCE_BYTES)
        driven: Driven[Any, Any] = Driven(ResolutionContext.create(instance, MulticastGroup()))
        self._driver: VirtualDriver[Any, Any] = VirtualDriver(process, driven, self._perform)
        air.join(self)

    def feed(self, event: ContextInput) -> None:
        self._driver.feed(event)

    def advertise(self, config: SourceConfig) -> None:
        session, index = codec.split(config.incarnation)
        where = (config.transport, session, index, config.reply_to)
        self.feed(AddSource(config.topic, *where, persistent=bool(config.stores)))

    def withdraw(self, config: SourceConfig) -> None:
        self.feed(RemoveSource(*codec.split(config.incarnation)))

    def _perform(self, effect: ContextEffect) -> None:
        match effect:
            case SendDatagram(data=data):
                self._air.carry(self.process, data)
            case Discovered(record=record):
                self._on_found(Place(record.address, record.session_id, record.request_address))
            # Reports, and requests for sockets, which every process has.
