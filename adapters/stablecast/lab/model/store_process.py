"""Drive one store of a world: a whole `StoreEndpoint`, and a disk of which a crash loses the unsynced part.

A world has one source. Its messages are kept as the life of each number.
"""

from collections.abc import Iterable
from typing import Any

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.history import HISTORY_LIVES
from stablecast.core.protocol.inputs import Data, Persisted, StoreInput
from stablecast.core.protocol.messages import Incarnation, Message, Register, Role, StoreMemory
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import RegistrationTimes, RepositoryConfig, SourceConfig, StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.status import RepositoryStatus
from stablecast.lab.model.clone import clone

SOURCE_ID = 1
"""RegID of the only source of a world."""
INTERVAL_NS = 1
LONG_NS = 1_000_000 * SECOND
"""A span in ns that no run reaches the end of."""

DiskWrite = (
    fx.PersistClient | fx.PersistMemory | fx.PersistMessages | fx.PersistCached | fx.Cut | fx.Reclaim | fx.Forget
)


@attrs.define
class WorldJournal:
    """Hold what a disk keeps: clients by RegID, the life of each message of the source, the trail, and the memory."""

    clients: dict[int, fx.Client] = attrs.field(factory=dict)
    messages: dict[int, Incarnation] = attrs.field(factory=dict)
    trail: int = 0
    memory: StoreMemory = StoreMemory.KEPT

    @property
    def source(self) -> fx.Client | None:
        return self.clients.get(SOURCE_ID)

    def write(self, write: DiskWrite) -> None:
        """Change what the disk keeps as one effect of the store says."""
        match write:
            case fx.PersistClient(client=client):
                self.clients[client.reg_id] = client
            case fx.PersistMemory(memory=memory):
                self.memory = memory
            case fx.Forget(reg_id=reg_id):
                self.clients.pop(reg_id, None)
            case fx.PersistMessages(first=first, count=count, incarnation=life):
                self.messages.update(dict.fromkeys(range(first, first + count), life))
            case fx.PersistCached(first=first, last=last):
                self.messages.update(dict.fromkeys(range(first, last + 1), self.clients[SOURCE_ID].incarnation))
            case fx.Cut(number=stop):
                self.messages = {number: life for number, life in self.messages.items() if number < stop}
            case fx.Reclaim(number=first):
                self.trail = first
                self.messages = {number: life for number, life in self.messages.items() if number >= first}

    def extents(self, size: int = 0) -> list[tuple[int, int, int, int]]:
        """Return what a restarting store finds: an extent for each message, which has `size` bytes."""
        return [(SOURCE_ID, number, 1, size) for number in sorted(self.messages)]


@attrs.define
class WorldStore:
    """Hold a store's machine (None: it is down) and its disk.

    `written` includes the writes in `unsynced`, which has them in order. It is empty while the store is down. `timers`
    run with each input; otherwise only where the world runs them.
    """

    config: StoreConfig
    machine: StoreEndpoint | None = None
    written: WorldJournal = attrs.field(factory=WorldJournal)
    synced: WorldJournal = attrs.field(factory=WorldJournal)
    unsynced: list[DiskWrite] = attrs.field(factory=list)
    timers: bool = True

    @property
    def running(self) -> StoreEndpoint:
        """The machine, while the store is up."""
        assert self.machine is not None
        return self.machine

    @property
    def repository(self) -> RepositoryStatus | None:
        return None if self.machine is None else self.machine.status.repositories.get(SOURCE_ID)

    @property
    def granting(self) -> bool:
        """True if a grant to the newest life of the source waits for the disk."""
        repository = self.repository
        wanted = (SOURCE_ID, repository.incarnation) if repository is not None else None
        waiting = () if self.machine is None else self.machine.status.waiting
        return any(due.generation >= 0 and (due.reg_id, due.incarnation) == wanted for due in waiting)

    def receive(self, event: StoreInput, now: int = 0) -> list[fx.StoreEffect]:
        """Pass an input to the store; write what it writes, and return its other effects."""
        self.running.receive(event, now)
        return self.perform(now)

    def perform(self, now: int = 0) -> list[fx.StoreEffect]:
        """Run the due timers of the repositories; write what the store writes, and return its other effects."""
        due = self.running.status.repository_due
        if self.timers and due is not None and due <= now:
            self.running.handle_timeout(now)
        others: list[fx.StoreEffect] = []
        for effect in self.running.take_effects():
            if isinstance(effect, DiskWrite):
                self.written.write(effect)
                self.unsynced.append(effect)
            else:
                others.append(effect)
        return others

    def sync(self, now: int = 0) -> list[fx.StoreEffect]:
        """Sync all writes; return the effects that waited for it."""
        self.synced, self.unsynced = clone(self.written), []
        return self.receive(Persisted(self.running.status.newest_ticket), now)

    def end(self) -> None:
        """End the process. The synced part of its disk remains."""
        self.machine, self.written, self.unsynced = None, WorldJournal(), []

    def restart(self, now: int = 0, trails: dict[int, int] | None = None, size: int = 0) -> list[fx.StoreEffect]:
        """Start with the contents of the disk. `trails` are the first numbers by RegID, `size` that of a message."""
        self.machine, self.written = StoreEndpoint.create(self.config), clone(self.synced)
        clients = [self.written.clients[reg_id] for reg_id in sorted(self.written.clients)]
        self.machine.recover(clients, self.written.extents(size), trails or {}, now, standing=self.written.memory)
        others = self.perform(now)
        # A restarting store writes its memory again, and the disk has it already.
        self.unsynced = [write for write in self.unsynced if not isinstance(write, fx.PersistMemory)]
        return others


def store_address(index: int) -> str:
    return f"store:{index + 1}"


def data(life: Incarnation, number: int, recovered: bool = False, size: int = 0) -> Data:
    """Return one message of a life, of `size` bytes."""
    return Data(life, life, serial.wire(number), 1, size, recovered, token=0)


def numbers_of(ranges: Iterable[tuple[int, int]], shift: int = 0) -> frozenset[Any]:
    """Return the numbers of the ranges [start, stop), moved by `shift`."""
    return frozenset(number + shift for start, stop in ranges for number in range(start, stop))


def messages(effects: Iterable[fx.Effect]) -> list[Message]:
    return [effect.message for effect in effects if isinstance(effect, fx.Send)]


def registration(life: Incarnation, reply_to: str, transport: str, index: int = 0) -> Register:
    """Return the first request of a life of the source to the store with an index."""
    return Register(
        role=Role.SOURCE,
        store_index=index,
        generation=0,
        reg_id=SOURCE_ID,
        incarnation=life,
        source_reg_id=0,
        topic="topic",
        session_id=0,
        reply_to=reply_to,
        transport=transport,
        activity_timeout_ms=0,
        state_lifetime_ms=0,
    )


def untimed(config: SourceConfig) -> SourceConfig:
    """Return the configuration of a source whose only timer is the registration interval, of 1 ns."""
    return attrs.evolve(
        config,
        times=RegistrationTimes(INTERVAL_NS, LONG_NS, LONG_NS),
        stability_timeout_ns=0,
        stability_lifetime_ns=0,
        check_ns=LONG_NS,
        sri_interval_ns=LONG_NS,
        sri_maximum=1,
    )


def disk_only(address: str, repairs: Repair, history_lives: int = HISTORY_LIVES) -> StoreConfig:
    """Return the configuration of a store with an unlimited disk and without timers."""
    kept = RepositoryConfig(size_threshold=0, size_limit=0, disk_limit=0, ack_interval_ns=0, source_activity_ns=LONG_NS)
    return StoreConfig(
        address,
        1,
        repository=kept,
        check_ns=LONG_NS,
        keepalive_ns=0,
        retry_ns=LONG_NS,
        give_up_ns=LONG_NS,
        repairs=repairs,
        history_lives=history_lives,
        refill=False,
    )
