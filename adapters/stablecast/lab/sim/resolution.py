"""Topic resolution in a world: the machines of contexts, and datagrams that everybody hears, late, or not at all.

Datagrams reach all processes but the sender's own, each by itself: one may miss what another hears, and hosts that are
cut off from each other miss everything meanwhile. Nobody tells that a source is gone; what was heard of it is believed
until joining shows otherwise.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs

from stablecast.core.protocol.settings import SourceConfig
from stablecast.lab.sim.process import Driver, Process
from stablecast.runtime.driven_machine import Driven
from stablecast.transports import codec
from stablecast.transports.resolution.records import INSTANCE_BYTES
from stablecast.transports.resolution.udp.carriers import MulticastGroup
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.effects import ContextEffect, Discovered, SendDatagram
from stablecast.transports.resolution.udp.inputs import AddSource, ContextInput, DatagramArrived, RemoveSource

PORT = 12_965
PERCENT = 100


@attrs.frozen
class Found:
    """Where a life of the source listens."""

    transport: str
    session_id: int
    request: str


OnFound = Callable[[Found], None]


def nobody_looks(_: Found) -> None:
    """A process without receivers."""


class Air:
    """What carries datagrams; `lost` percent of them are."""

    def __init__(self, lost: int) -> None:
        """Nobody takes part yet."""
        self._lost = lost
        self._members: list[Resolving] = []

    def join(self, member: "Resolving") -> None:
        """Hears from now on."""
        self._members.append(member)

    def carry(self, process: Process, data: bytes) -> None:
        """To all others that are within reach and alive."""
        network, rng = process.network, process.world.rng
        self._members = [member for member in self._members if member.process.alive]
        event = DatagramArrived(data, f"{process.host}:{PORT}")
        for member in self._members:
            if member.process is process or network.blocked(process.host, member.process.host):
                continue
            if rng.random() * PERCENT >= self._lost:
                arrive = partial(member.process.deliver, partial(member.feed, event))
                process.world.after(network.delay(), arrive)


class Resolving:
    """The resolution of one process."""

    def __init__(self, process: Process, air: Air, on_found: OnFound = nobody_looks) -> None:
        """It hears; what its receivers look for goes to `on_found`."""
        self.process = process
        self._air = air
        self._on_found = on_found
        instance = process.world.rng.getrandbits(8 * INSTANCE_BYTES).to_bytes(INSTANCE_BYTES)
        driven: Driven[Any, Any] = Driven(ResolutionContext.create(instance, MulticastGroup()))
        self._driver: Driver[Any, Any] = Driver(process, driven, self._perform)
        air.join(self)

    def feed(self, event: ContextInput) -> None:
        """One input."""
        self._driver.feed(event)

    def advertise(self, config: SourceConfig) -> None:
        """A source of this process is there."""
        session, index = codec.split(config.incarnation)
        where = (config.transport, session, index, config.reply_to)
        self.feed(AddSource(config.topic, *where, persistent=bool(config.stores)))

    def withdraw(self, config: SourceConfig) -> None:
        """It is no more."""
        self.feed(RemoveSource(*codec.split(config.incarnation)))

    def _perform(self, effect: ContextEffect) -> None:
        match effect:
            case SendDatagram(data=data):
                self._air.carry(self.process, data)
            case Discovered(record=record):
                self._on_found(Found(record.address, record.session_id, record.request_address))
            case _:
                pass  # Remarks; and sockets, which all of these processes have.
