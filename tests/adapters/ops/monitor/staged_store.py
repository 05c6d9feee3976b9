"""A store for tests of the monitor: a real machine that tests feed, with the other attributes of a daemon's store."""

import asyncio
import time
from typing import Any

import attrs

from stablecast.config.plan import StoreLimits
from stablecast.core.machine.serial import wire
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Arrived, Data, Persisted, StoreInput
from stablecast.core.protocol.messages import ConsumptionAck, Deregister, Message, Pace, Role
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.clients import ClientTable
from stablecast.core.store.registry import Registry
from stablecast.core.store.repository import Repository
from stablecast.core.store.retransmission import RetransmissionService
from stablecast.store.failed_stores import FreeSpace
from stablecast.store.observatory import JournalView, Traffic, WatchedStore
from tests.core.samples import info, register

KEPT = RepositoryConfig(source_lifetime_ns=3600 * SECOND, receiver_lifetime_ns=3600 * SECOND)


@attrs.define
class Settings:
    name: str
    directory: str
    state_directory: str | None = None
    limits: StoreLimits = StoreLimits()


class Staged:
    """A machine without a disk, with the part of `Store` that the observatory uses."""

    def __init__(self, name: str = "orders", directory: str = "cache", **config: Any) -> None:
        self.machine = StoreEndpoint.create(StoreConfig("127.0.0.1:14567", 1, **{"repository": KEPT, **config}))
        self.settings = Settings(name, directory, "state")
        self.address = "127.0.0.1:14567"
        self.started_at = time.monotonic_ns()
        self.traffic: dict[int, Traffic] = {}
        self.connections, self.proxies, self.draining = 3, 0, False
        self.failed: asyncio.Future[Exception] = asyncio.Future(loop=asyncio.new_event_loop())
        self.failed.get_loop().close()
        self.oddities: dict[str, int] = {"late-ack": 2}
        self.sessions: dict[str, dict[str, int]] = {}
        self.events: dict[str, int] = {}
        self.expired = (0, 0)
        self.room = FreeSpace(0)
        self.reports = ["<b>cut</b> 12 bytes of an unfinished write"]
        self.syncing = True
        self.scrubs = 0

    config = property(lambda self: self.machine.config)
    registry: Registry = property(lambda self: self.machine.registry)  # type: ignore[assignment]
    serving: RetransmissionService = property(lambda self: self.machine.serving)  # type: ignore[assignment]
    clients: ClientTable = property(lambda self: self.machine.clients)  # type: ignore[assignment]
    repositories: dict[int, Repository] = property(lambda self: self.machine.repositories)  # type: ignore[assignment]

    def traffic_of(self, incarnation: int) -> Traffic:
        return attrs.evolve(self.traffic.get(incarnation, Traffic()))

    def reads_of(self, _: int) -> int:
        return 1

    def journal_view(self) -> JournalView:
        return JournalView(9_000_000, 3, 4096, False, 120, 2_000_000, 41_000_000, 0)

    def tell(self, message: Message) -> None:
        self.feed(Arrived(message))

    def scrub(self) -> None:
        self.scrubs += 1

    def evict(self, reg_id: int) -> bool:
        record = self.clients.records.get(reg_id)
        if record is None:
            return False
        client = record.client
        names = (client.role, client.store_index, 0, reg_id, client.incarnation, client.source_reg_id, client.reply_to)
        self.tell(Deregister(*names))
        return True

    def feed(self, event: StoreInput) -> list[fx.StoreEffect]:
        """One input; the disk answers at once while `syncing`."""
        self.machine.receive(event, time.monotonic_ns())
        effects = self.machine.take_effects()
        if self.syncing and self.machine.tickets.pending:
            effects += self.feed(Persisted(self.machine.tickets.last))
        return effects

    # Actions of clients.

    def source(self, reg_id: int, topic: str = "orders", incarnation: int = 0, **changes: Any) -> int:
        """A source registers and says where it begins; returns its incarnation."""
        life = incarnation or reg_id << 32 | 17
        self.register_source(reg_id, life, topic, **changes)
        self.tell(info(incarnation=life, topic=topic))
        return life

    def register_source(self, reg_id: int, life: int, topic: str = "orders", **changes: Any) -> None:
        """A source registers, and says nothing more."""
        at = f"10.1.0.1:{reg_id % 60_000}"
        self.tell(register(reg_id=reg_id, topic=topic, incarnation=life, reply_to=at, **changes))
        self.traffic[life] = Traffic()

    def receiver(self, reg_id: int, source: int, life: int, topic: str = "orders", pace: Pace = Pace.SOURCE) -> None:
        at = f"10.2.0.1:{reg_id % 60_000}"
        self.tell(
            register(
                role=Role.RECEIVER,
                reg_id=reg_id,
                source_reg_id=source,
                incarnation=life,
                topic=topic,
                reply_to=at,
                transport="",
                pace=pace,
            )
        )

    def data(self, life: int, first: int, count: int, size: int = 200) -> None:
        self.feed(Data(life, life, wire(first), count, count * size, False, first))
        came = self.traffic[life]
        self.traffic[life] = Traffic(came.received + count, came.payload_bytes + count * size, came.reads + 1)

    def acknowledge(self, source: int, receiver: int, life: int, number: int) -> None:
        """A receiver has consumed everything up to a number."""
        self.tell(ConsumptionAck(life, source, receiver, wire(number)))

    def watched(self, index: int = 0) -> WatchedStore:
        """As a daemon hands it to the monitor; it lives on the running loop."""
        return WatchedStore(self, asyncio.get_running_loop(), index)  # type: ignore[arg-type]


def busy(directory: str = "cache") -> Staged:
    """Three sources: one that is well, one with a hole and a late receiver, one in memory that nobody reads."""
    staged = Staged(directory=directory)
    well = staged.source(1001, "orders/new")
    staged.receiver(2001, 1001, well, "orders/new")
    staged.data(well, 0, 500)
    staged.acknowledge(1001, 2001, well, 480)
    torn = staged.source(1002, "quotes <b>&")
    staged.receiver(2002, 1002, torn, "quotes <b>&")
    staged.receiver(2003, 1002, torn, "quotes <b>&")
    staged.data(torn, 0, 1000)
    staged.data(torn, 1040, 2000)
    staged.data(torn, 3045, 955)
    staged.acknowledge(1002, 2002, torn, 3990)
    staged.source(1003, "silence")
    return staged
