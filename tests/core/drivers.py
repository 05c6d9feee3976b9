"""Drivers of single endpoints: feed one input, look at what was put out."""

from typing import Any

import attrs

from stablecast.core.machine.serial import wire
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event, Oddity
from stablecast.core.protocol.inputs import Arrived, Data, LowChosen, Persisted, Start, Tick
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    LateJoinRequest,
    Message,
    Pace,
    RetransmitRequest,
    Role,
    SourceInfo,
    StableAck,
    Wishes,
)
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import (
    ReceiverConfig,
    RegistrationTimes,
    RepositoryConfig,
    SourceConfig,
    StoreConfig,
    StoreSpec,
)
from stablecast.core.receiver import ReceiverSession
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.repository import Repository
from stablecast.core.store.retention_terms import Terms
from stablecast.core.store.sync_tickets import SyncTickets
from tests.core.samples import LIFE, drain, events, info, register, registered, sends
from tests.support.abstract_states import abstract
from tests.support.invariants import check_invariants

INTERVAL_NS = 10
RETRY_NS, GIVE_UP_NS = 20, 70
ACK_NS = 5
SOURCE: dict[str, Any] = {"reg_id": 50, "reply_to": "source:1"}
RECEIVER: dict[str, Any] = {
    "role": Role.RECEIVER,
    "reg_id": 70,
    "source_reg_id": 50,
    "reply_to": "receiver:1",
    "transport": "",
}
"""The requests of a source and a receiver in `register`."""

_STORES = tuple(StoreSpec(f"store{index}:1", 40 + index) for index in range(3))
_RECEIVER = ReceiverConfig(
    "topic",
    LIFE,
    "me:1",
    "source:1",
    session_id=9,
    times=RegistrationTimes(INTERVAL_NS, probe_ns=10_000, silence_ns=30_000),
    retry_ns=RETRY_NS,
    give_up_ns=GIVE_UP_NS,
    ack_interval_ns=ACK_NS,
    sri_request_interval_ns=100,
    sri_request_maximum=2,
)
REPOSITORY_CONFIG = StoreConfig("store:1", 1, retry_ns=10, give_up_ns=35)
_SOURCE_ADDRESS = "source:1"
_NO_WISHES = Wishes()
_KEPT = {field.name for field in attrs.fields(RepositoryConfig)}
_STORE = StoreConfig("store:1", 1, check_ns=10, retry_ns=RETRY_NS, give_up_ns=GIVE_UP_NS)


def _rules(stores: int) -> GroupRules:
    return GroupRules((stores,)) if stores else GroupRules()


class Driver:
    """Any endpoint; `effects` are those of the last input."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.effects: list[fx.Effect] = []
        self.tokens = 0

    def feed(self, event: Any, now: int = 0) -> list[Event]:
        self.machine.receive(event, now)
        self.effects = self.machine.take_effects()
        check_invariants(self.machine)
        return events(self.effects)

    def hear(self, message: Message, now: int = 0) -> list[Event]:
        return self.feed(Arrived(message), now)

    def sent(self, kind: type[Any]) -> list[tuple[str, Any]]:
        return [(to, message) for to, message in sends(self.effects) if isinstance(message, kind)]

    def run(self, session: int, life: int, first: int, count: int, recovered: bool, now: int) -> list[Event]:
        self.tokens += 1
        return self.feed(Data(session, life, wire(first), count, 0, recovered, self.tokens), now)


class SourceDriver(Driver):
    """A source with three stores, or those of `specs`."""

    def __init__(self, stores: int = 3, specs: tuple[StoreSpec, ...] = (), **changes: Any) -> None:
        specs = specs or _STORES[:stores]
        times = RegistrationTimes(INTERVAL_NS, probe_ns=1000, silence_ns=3000)
        config = SourceConfig(
            "topic",
            LIFE,
            "source:1",
            "stream:1",
            specs,
            _rules(len(specs)),
            times=times,
        )
        super().__init__(SourceEndpoint.create(attrs.evolve(config, **changes)))

    @classmethod
    def active(cls, **changes: Any) -> "SourceDriver":
        driver = cls(**changes)
        driver.feed(Start())
        driver.grant(*range(len(driver.machine.config.stores)))
        assert driver.machine.can_send
        return driver

    def grant(self, *indices: int, now: int = 0, **changes: Any) -> list[Event]:
        told: list[Event] = []
        for index in indices:
            generation = self.machine.enrollment.registrations[index].request.generation
            answer = {"store_index": index, "generation": generation, "reg_id": 50 + index, **changes}
            told += self.hear(registered(**answer), now)
        return told

    def infos(self) -> list[SourceInfo]:
        broadcast = [effect.message for effect in self.effects if isinstance(effect, fx.Broadcast)]
        return [message for message in broadcast if isinstance(message, SourceInfo)]


class ReceiverDriver(Driver):
    """A receiver's session; `delivered` are the numbers it put out."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(ReceiverSession.create(attrs.evolve(_RECEIVER, **changes)))
        self.delivered: list[int] = []

    @classmethod
    def active(cls, high: int = -1, low: int = 0, wish: int | None = None, **changes: Any) -> "ReceiverDriver":
        """It has three stores and delivers from its low number on."""
        driver = cls(**changes)
        driver.feed(Start())
        driver.inform(1, 1, 1, high=high)
        driver.grant(0, 1, 2, low=wire(low), high=wire(high))
        driver.feed(LowChosen(low if wish is None else wish))
        assert abstract(driver.machine)[0] == "ACTIVE"
        return driver

    @classmethod
    def joining(cls, **changes: Any) -> "ReceiverDriver":
        """A source without stores that sent 2 to 9 was found; it is asked what it still has."""
        driver = cls(**changes)
        driver.inform(high=9, low=2)
        driver.feed(Tick(), 0)
        assert driver.sent(LateJoinRequest) == [("source:1", LateJoinRequest(LIFE, 1, "me:1"))]
        return driver

    def feed(self, event: Any, now: int = 0) -> list[Event]:
        told = super().feed(event, now)
        for effect in self.effects:
            if isinstance(effect, fx.Deliver):
                self.delivered += range(effect.first, effect.first + effect.count)
        return told

    def inform(self, *versions: int, high: int = -1, now: int = 0, **changes: Any) -> list[Event]:
        return self.hear(info(*versions, high=wire(high), **changes), now)

    def grant(self, *indices: int, now: int = 0, **changes: Any) -> list[Event]:
        told: list[Event] = []
        for index in indices:
            generation = self.machine.enrollment.registrations[index].request.generation
            answer = {"role": Role.RECEIVER, "store_index": index, "generation": generation, "reg_id": 70 + index}
            told += self.hear(registered(**{**answer, **changes}), now)
        return told

    def asked(self) -> list[tuple[int, int]]:
        return [(message.first, message.last) for _, message in self.sent(RetransmitRequest)]

    def data(self, first: int, count: int, life: int = LIFE, recovered: bool = False, now: int = 0) -> list[Event]:
        return self.run(LIFE, life, first, count, recovered, now)


class StoreDriver(Driver):
    """A store whose disk syncs when told to."""

    def __init__(self, **changes: Any) -> None:
        kept = {name: changes.pop(name) for name in list(changes) if name in _KEPT}
        changes.setdefault("repository", RepositoryConfig(**kept))
        super().__init__(StoreEndpoint.create(attrs.evolve(_STORE, **changes)))

    @classmethod
    def paced(cls, pace: Pace = Pace.RECEIVERS, wishes: Wishes = _NO_WISHES, **changes: Any) -> "StoreDriver":
        """It has a source that wants receivers to set the pace, and one receiver."""
        driver = cls(**{"allow_rpp": True, **changes})
        driver.hear(register(**SOURCE, pace=Pace.RECEIVERS, wishes=wishes))
        driver.sync()
        driver.hear(info())
        driver.hear(register(**RECEIVER, pace=pace))
        driver.sync()
        return driver

    @classmethod
    def with_source(cls, **changes: Any) -> "StoreDriver":
        """It has a source that resumed at 0."""
        driver = cls(**changes)
        driver.hear(register(**SOURCE))
        driver.sync()
        driver.hear(info())
        driver.sync()
        return driver

    @classmethod
    def with_receiver(cls, **changes: Any) -> "StoreDriver":
        """The same with ten synced messages and a receiver."""
        driver = cls.with_source(**changes)
        driver.data(0, 10)
        driver.sync()
        driver.hear(register(**RECEIVER))
        driver.sync()
        return driver

    def sync(self, now: int = 0) -> None:
        self.feed(Persisted(self.machine.tickets.last), now)

    def data(self, first: int, count: int, life: int = LIFE, now: int = 0, size: int = 0, **more: Any) -> list[Event]:
        self.tokens += 1
        run = Data(life, life, wire(first), count, size * count, False, self.tokens)
        return self.feed(attrs.evolve(run, **more), now)

    def consume(self, number: int, receiver: int = 70, now: int = 0) -> list[Event]:
        return self.hear(ConsumptionAck(LIFE, 50, receiver, number), now)

    def acks(self) -> list[tuple[int, int]]:
        return [(ack.first, ack.last) for _, ack in self.sent(StableAck) if not ack.nack]

    def done(self, kind: type[Any]) -> list[Any]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def persisted(self) -> list[fx.Client]:
        return [effect.client for effect in self.effects if isinstance(effect, fx.PersistClient)]


class RepositoryDriver:
    """A repository, its tickets and what waits for the disk."""

    def __init__(self, resume: int | None = 0, terms: Terms | None = None, **changes: Any) -> None:
        config = attrs.evolve(REPOSITORY_CONFIG, **changes)
        self.machine = Repository.create(config, 50, 2, _SOURCE_ADDRESS, LIFE, terms)
        self.tickets = SyncTickets()
        self.out: list[fx.Effect] = []
        self.tokens = 0
        if resume is not None:
            self.inform(resume, resume - 1)

    def inform(self, low: int, high: int, now: int = 0, **more: Any) -> int | None:
        more = {"incarnation": self.machine.incarnation, **more}
        return self.machine.on_info(info(low=wire(low), high=wire(high), **more), self.tickets, now, self.out)

    def data(self, first: int, count: int, life: int | None = None, now: int = 0, size: int = 0, **more: Any) -> bool:
        self.tokens += 1
        waiting = len(self.tickets.waiting)
        life = self.machine.incarnation if life is None else life
        run = Data(LIFE, life, wire(first), count, size * count, False, self.tokens)
        self.machine.on_data(attrs.evolve(run, **more), self.tickets, now, self.out)
        check_invariants(self.machine)
        return len(self.tickets.waiting) > waiting

    def sync(self, now: int = 0, ticket: int | None = None) -> None:
        for due in self.tickets.due(self.tickets.last if ticket is None else ticket):
            self.machine.on_synced(due.incarnation, due.first, due.stop, self.tickets, now, self.out)
        check_invariants(self.machine)

    def tick(self, now: int) -> None:
        self.machine.handle_timeout(self.tickets, now, self.out)
        check_invariants(self.machine)

    def acks(self) -> list[tuple[int, int]]:
        pairs = sends(drain(self.out))
        return [
            (m.first, m.last)
            for to, m in pairs
            if isinstance(m, StableAck) and not m.nack and (to, m.store_index) == (_SOURCE_ADDRESS, 2)
        ]

    def asked(self, kind: type[Any]) -> list[Any]:
        return [
            message for to, message in sends(drain(self.out)) if isinstance(message, kind) and to == _SOURCE_ADDRESS
        ]


def code(told: list[Event]) -> list[str]:
    """Return the oddities among these effects."""
    return [event.code for event in told if isinstance(event, Oddity)]
