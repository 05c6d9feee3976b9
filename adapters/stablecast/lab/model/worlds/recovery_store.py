"""Drive one store of the world of `tla/Recovery`: a `StoreEndpoint`, its disk and its connections.

The store holds the messages of one source, which has sent them all. The model covers only what the store exchanges with
a receiver.
"""

from collections.abc import Sequence

import attrs

from stablecast.core.protocol.effects import Client, SendStored, StoreEffect
from stablecast.core.protocol.inputs import Arrived
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    Message,
    Register,
    Registered,
    RetransmitRequest,
    Role,
    SourceInfo,
    StoreEntry,
)
from stablecast.core.protocol.repairs import Repair
from stablecast.core.store import StoreEndpoint
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.store_process import SOURCE_ID, WorldStore, data, disk_only, messages, registration

STORES = (1, 2)
LIFE = 1
MESSAGE_BYTES = 100

_SOURCE = "source"


@attrs.frozen
class RecoveryConstants:
    """Hold the model's constants: spans in ticks, everything else in messages."""

    Messages: int
    Lacks1: frozenset[int]
    Lacks2: frozenset[int]
    Groups: int
    Order: str
    Acks: str
    Consensus: str
    Maximum: int
    Window: int
    GiveUp: int
    Room: int
    Repairs: frozenset[str]
    Faults: frozenset[str]

    def holds(self, store: int) -> list[int]:
        """Return the numbers that a store holds."""
        lacks = self.Lacks1 if store == 1 else self.Lacks2
        return [number for number in range(1, self.Messages + 1) if number not in lacks]


@attrs.define
class RecoveryStore:
    """Hold a store, and messages in flight to it and from it."""

    constants: RecoveryConstants
    number: int
    shared: SharedMachine[WorldStore]
    inbox: list[ConsumptionAck | RetransmitRequest] = attrs.field(factory=list)
    outbox: list[int] = attrs.field(factory=list)

    @classmethod
    def create(cls, constants: RecoveryConstants, number: int) -> "RecoveryStore":
        """Return a store that has received and synced its messages."""
        config = disk_only(address_of(number), Repair.ALL)
        process = WorldStore(config, StoreEndpoint.create(config))
        process.receive(Arrived(registration(LIFE, _SOURCE, "stream", number - 1)))
        process.receive(Arrived(source_info(constants)))
        for message in constants.holds(number):
            process.receive(data(LIFE, message, size=MESSAGE_BYTES))
        process.sync()
        return cls(constants, number, SharedMachine(process))

    @property
    def process(self) -> WorldStore:
        """The store; do not change it."""
        return self.shared.machine

    @property
    def up(self) -> bool:
        """True if the store runs."""
        return self.process.machine is not None

    @property
    def acknowledged(self) -> int:
        """The receiver's acknowledgement in the store's memory, 0: none."""
        if self.process.machine is None:
            return 0
        return max(_acknowledged(one.client) for one in self.process.machine.status.clients.values())

    @property
    def durable(self) -> int:
        """The receiver's acknowledgement on disk, 0: none."""
        return max(map(_acknowledged, self.process.synced.clients.values()))

    def put(self, message: Message) -> None:
        """Send a message to the store. A full queue drops it; registrations are an action of their own."""
        room = self.up and len(self.inbox) < self.constants.Room
        if room and isinstance(message, ConsumptionAck | RetransmitRequest):
            self.inbox.append(message)

    def forget_receiver(self) -> None:
        """Handle the end of the receiver. Its acknowledgements remain in flight."""
        self.inbox = [message for message in self.inbox if isinstance(message, ConsumptionAck)]
        self.outbox = []

    def register(self, request: Register, now: int) -> list[Registered]:
        """Deliver a registration, sync it and return the answers."""
        self.hear(request, now)
        return self.sync(now)

    def hear(self, message: Message, now: int) -> None:
        """Deliver a message."""
        self._perform(self.shared.own().receive(Arrived(message), now))

    def sync(self, now: int) -> list[Registered]:
        """Sync all writes; return the answers that waited for it."""
        return self._perform(self.shared.own().sync(now))

    def crash(self) -> None:
        """Lose connections and unsynced writes."""
        self.shared.own().end()
        self.inbox, self.outbox = [], []

    def restart(self, now: int) -> None:
        """Restart with the contents of the disk."""
        self.shared.own().restart(now, {SOURCE_ID: 1}, MESSAGE_BYTES)

    def _perform(self, effects: Sequence[StoreEffect]) -> list[Registered]:
        """Put what the store sends from its disk on the way; return its answers to registrations."""
        for effect in effects:
            if isinstance(effect, SendStored):
                numbers = range(effect.first, effect.last + 1)
                self.outbox += numbers[: self.constants.Room - len(self.outbox)]
        return [message for message in messages(effects) if isinstance(message, Registered)]


def address_of(store: int) -> str:
    """Return the address of a store."""
    return str(store)


def source_info(constants: RecoveryConstants) -> SourceInfo:
    """Return the source's SRI, which names its stores and says that everything is sent."""
    sizes = (2,) if constants.Groups == 1 else (1, 1)
    stores = tuple(StoreEntry(store - 1, (store - 1) % len(sizes), address_of(store), SOURCE_ID, 0) for store in STORES)
    return SourceInfo(LIFE, "topic", 0, 1, constants.Messages, _SOURCE, sizes, False, stores)


def _acknowledged(client: Client) -> int:
    return client.acknowledged if client.role is Role.RECEIVER and client.has_acknowledged else 0
