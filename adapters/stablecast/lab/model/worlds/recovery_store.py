"""A store of the recovery model's world: the core's own `StoreEndpoint`, its disk, and the connections to and from it.

It holds the messages of one source, which has sent them all. What it does for the source is nothing that the model
knows of: only what it tells a receiver, takes from it and sends to it counts here.
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
from stablecast.lab.model.clone import Shared

NEVER_NS = 1_000_000 * SECOND
"""A span that no run of the model comes to the end of."""
STORES = (1, 2)
LIFE = 1
MESSAGE_BYTES = 100

_SOURCE_REG_ID = 1
_SOURCE = "source"


@attrs.frozen
class Constants:
    """The model's constants. Spans in ticks, everything else in messages."""

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
        """What a store has."""
        lacks = self.Lacks1 if store == 1 else self.Lacks2
        return [number for number in range(1, self.Messages + 1) if number not in lacks]


@attrs.define
class Node:
    """A store: its machine, or None while it is down; its disk, and what that would lose; what is on its way."""

    constants: Constants
    number: int
    shared: Shared[StoreEndpoint] | None
    journal: dict[int, Client]
    unsynced: list[PersistClient] = attrs.field(factory=list)
    inbox: list[ConsumptionAck | RetransmitRequest] = attrs.field(factory=list)
    outbox: list[int] = attrs.field(factory=list)

    @classmethod
    def create(cls, constants: Constants, number: int) -> "Node":
        """A store that has got and synced what it is to hold."""
        machine = StoreEndpoint.create(_config(number))
        request = Register(Role.SOURCE, number - 1, 0, _SOURCE_REG_ID, LIFE, 0, "topic", 0, _SOURCE, "stream", 0, 0)
        machine.receive(Arrived(request), 0)
        machine.receive(Arrived(source_info(constants)), 0)
        for message in constants.holds(number):
            machine.receive(Data(LIFE, LIFE, message, 1, MESSAGE_BYTES, False, 1), 0)
        machine.receive(Persisted(machine.status.newest_ticket), 0)
        machine.take_effects()
        return cls(constants, number, Shared(machine), {client.reg_id: client for client in machine.checkpoint()})

    @property
    def up(self) -> bool:
        """Whether it runs."""
        return self.shared is not None

    @property
    def acknowledged(self) -> int:
        """What its memory says that the receiver acknowledged, 0: nothing."""
        if self.shared is None:
            return 0
        return max(_acknowledged(one.client) for one in self.shared.machine.status.clients.values())

    @property
    def durable(self) -> int:
        """The same of its disk."""
        return max(map(_acknowledged, self.journal.values()))

    def put(self, message: Message) -> None:
        """A receiver says something. What finds no room is lost; registrations are an action of their own."""
        room = self.up and len(self.inbox) < self.constants.Room
        if room and isinstance(message, ConsumptionAck | RetransmitRequest):
            self.inbox.append(message)

    def forget_receiver(self) -> None:
        """The receiver has ended; what it has acknowledged is still under way."""
        self.inbox = [message for message in self.inbox if isinstance(message, ConsumptionAck)]
        self.outbox = []

    def register(self, request: Register, now: int) -> list[Registered]:
        """A registration comes, and is answered when it is on disk."""
        self.hear(request, now)
        return self.sync(now)

    def hear(self, message: Message, now: int) -> None:
        """A message comes."""
        self._machine().receive(Arrived(message), now)
        self._perform()

    def sync(self, now: int) -> list[Registered]:
        """Everything written is durable; returns what is answered for it."""
        ticket = self.unsynced[-1].ticket
        self.journal |= {write.client.reg_id: write.client for write in self.unsynced}
        self.unsynced = []
        self._machine().receive(Persisted(ticket), now)
        return self._perform()

    def crash(self) -> None:
        """Connections break with all that is in them; what was not synced is gone."""
        self.shared, self.unsynced, self.inbox, self.outbox = None, [], [], []

    def restart(self, now: int) -> None:
        """It comes back with what its disk has kept."""
        machine = StoreEndpoint.create(_config(self.number))
        extents = [(_SOURCE_REG_ID, message, 1, MESSAGE_BYTES) for message in self.constants.holds(self.number)]
        machine.recover(self.journal.values(), extents, {_SOURCE_REG_ID: 1}, now)
        machine.take_effects()
        self.shared = Shared(machine)

    def _machine(self) -> StoreEndpoint:
        """The store's machine, to let it do something."""
        assert self.shared is not None
        self.shared = self.shared.own()
        return self.shared.machine

    def _perform(self) -> list[Registered]:
        """Do what the store wants; returns its answers to registrations."""
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
    """Where a store listens."""
    return str(store)


def source_info(constants: Constants) -> SourceInfo:
    """The source's SRI: everything is sent, and these are its stores."""
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
