"""Drive one store of the world of `tla/Recovery`: a `StoreEndpoint`, its disk and its connections.

The store holds the messages of one source, which has sent them all. The model covers only what the store exchanges with
a receiver.
"""

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import Client, PersistClient, Send, SendStored
from stablecast.core.protocol.inputs import Arrived, Data, Persisted
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
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.lab.model.clone import SharedMachine

NEVER_NS = 1_000_000 * SECOND
"""A span that no run of the model reaches the end of."""
STORES = (1, 2)
LIFE = 1
MESSAGE_BYTES = 100

_SOURCE_REG_ID = 1
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
    """Hold a store: its machine (None while it is down), its disk with unsynced writes, and messages in flight."""

    constants: RecoveryConstants
    number: int
    shared: SharedMachine[StoreEndpoint] | None
    journal: dict[int, Client]
    unsynced: list[PersistClient] = attrs.field(factory=list)
    inbox: list[ConsumptionAck | RetransmitRequest] = attrs.field(factory=list)
    outbox: list[int] = attrs.field(factory=list)

    @classmethod
    def create(cls, constants: RecoveryConstants, number: int) -> "RecoveryStore":
        """Return a store that has received and synced its messages."""
        machine = StoreEndpoint.create(_config(number))
        request = Register(Role.SOURCE, number - 1, 0, _SOURCE_REG_ID, LIFE, 0, "topic", 0, _SOURCE, "stream", 0, 0)
        machine.receive(Arrived(request), 0)
        machine.receive(Arrived(source_info(constants)), 0)
        for message in constants.holds(number):
            machine.receive(Data(LIFE, LIFE, message, 1, MESSAGE_BYTES, False, 1), 0)
        machine.receive(Persisted(machine.status.newest_ticket), 0)
        machine.take_effects()
        return cls(
            constants, number, SharedMachine(machine), {client.reg_id: client for client in machine.checkpoint()}
        )

    @property
    def up(self) -> bool:
        """True if the store runs."""
        return self.shared is not None

    @property
    def acknowledged(self) -> int:
        """The receiver's acknowledgement in the store's memory, 0: none."""
        if self.shared is None:
            return 0
        return max(_acknowledged(one.client) for one in self.shared.machine.status.clients.values())

    @property
    def durable(self) -> int:
        """The receiver's acknowledgement on disk, 0: none."""
        return max(map(_acknowledged, self.journal.values()))

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
        self._machine().receive(Arrived(message), now)
        self._perform()

    def sync(self, now: int) -> list[Registered]:
        """Sync all writes; return the answers that waited for it."""
        ticket = self.unsynced[-1].ticket
        self.journal |= {write.client.reg_id: write.client for write in self.unsynced}
        self.unsynced = []
        self._machine().receive(Persisted(ticket), now)
        return self._perform()

    def crash(self) -> None:
        """Lose connections and unsynced writes."""
        self.shared, self.unsynced, self.inbox, self.outbox = None, [], [], []

    def restart(self, now: int) -> None:
        """Restart with the contents of the disk."""
        machine = StoreEndpoint.create(_config(self.number))
        extents = [(_SOURCE_REG_ID, message, 1, MESSAGE_BYTES) for message in self.constants.holds(self.number)]
        machine.recover(self.journal.values(), extents, {_SOURCE_REG_ID: 1}, now)
        machine.take_effects()
        self.shared = SharedMachine(machine)

    def _machine(self) -> StoreEndpoint:
        """Return the store's machine for a change."""
        assert self.shared is not None
        self.shared = self.shared.own()
        return self.shared.machine

    def _perform(self) -> list[Registered]:
        """Perform the store's effects; return its answers to registrations."""
        assert self.shared is not None
        answers: list[Registered] = []
        for effect in self.shared.machine.take_effects():
            match effect:
                case PersistClient():
                    self.unsynced.append(effect)
                case Send(message=Registered() as answer):
                    answers.append(answer)
                case _:
                    assert isinstance(effect, SendStored)
                    numbers = range(effect.first, effect.last + 1)
                    self.outbox += numbers[: self.constants.Room - len(self.outbox)]
        return answers


def address_of(store: int) -> str:
    """Return the address of a store."""
    return str(store)


def source_info(constants: RecoveryConstants) -> SourceInfo:
    """Return the source's SRI, which names its stores and says that everything is sent."""
    sizes = (2,) if constants.Groups == 1 else (1, 1)
    stores = tuple(
        StoreEntry(store - 1, (store - 1) % len(sizes), address_of(store), _SOURCE_REG_ID, 0) for store in STORES
    )
    return SourceInfo(LIFE, "topic", 0, 1, constants.Messages, _SOURCE, sizes, False, stores)


def _config(store: int) -> StoreConfig:
    kept = RepositoryConfig(source_activity_ns=NEVER_NS, receiver_activity_ns=NEVER_NS)
    return StoreConfig(address_of(store), store, repository=kept)


def _acknowledged(client: Client) -> int:
    return client.acknowledged if client.role is Role.RECEIVER and client.has_acknowledged else 0
