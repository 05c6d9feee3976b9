"""Represent a store by a number: each state of the core's endpoint and disk is kept once, and each step performed once.

Stores do not know each other, so a step depends only on the store's own state. Every state has a number, and the
results of its steps are cached. A search through a million combinations takes a few thousand steps of the real machine.
The endpoints do not know their index; the caller adds it to their answers.

A disk has a synced part, which survives a crash, and a written one, which is the store's while it runs.
"""

from enum import IntEnum

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import Client, Cut, PersistClient, PersistMessages, Send
from stablecast.core.protocol.inputs import Arrived, Data, Persisted, Start, StoreInput
from stablecast.core.protocol.messages import LateJoinInfo, LateJoinRequest, Message, Register, SourceInfo
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.status import RepositoryStatus
from stablecast.lab.model.clone import clone

REG_ID = 1
"""The source's RegID at every store."""
LONG_NS = 1_000_000 * SECOND
"""A span in ns that no run reaches the end of."""
ADDRESS = "store:1"


class StoreFate(IntEnum):
    """Name what happens to a store from outside."""

    SYNC = 0
    LEAVE = 1
    """The store is partitioned or ends; its writes are kept."""
    CRASH = 2
    """The store ends and loses its unsynced writes."""
    RETURN = 3
    WIPE = 4


Step = StoreFate | Register | SourceInfo | LateJoinInfo | Data


@attrs.define
class ProofDisk:
    """Hold the newest record of the source, and the life of each message."""

    client: Client | None = None
    messages: dict[int, int] = attrs.field(factory=dict)

    def copy(self) -> "ProofDisk":
        """Return an independent process in the same state."""
        return ProofDisk(self.client, dict(self.messages))

    def key(self) -> tuple[object, ...]:
        """Return a key that distinguishes disks."""
        client = self.client
        record = (
            None
            if client is None
            else (client.incarnation, client.context, client.term, client.lives, client.lives_term)
        )
        return (record, tuple(sorted(self.messages.items())))


@attrs.frozen
class StoreSummary:
    """Summarize a store for other parts.

    `content` has the life of each message, synced or not. `life` is the one whose receivers the store answers because
    it knows where that resumes (0: none), and `newest` the highest number known to exist. `question` waits for the
    source to say what it retains.
    """

    up: bool
    dirty: bool
    used: bool
    content: dict[int, int]
    life: int = 0
    newest: int = -1
    question: LateJoinRequest | None = None
    unsynced: frozenset[int] = frozenset()


@attrs.define
class ProofStore:
    """Hold a store's machine (None: it is down) and disk."""

    machine: StoreEndpoint | None
    written: ProofDisk = attrs.field(factory=ProofDisk)
    synced: ProofDisk = attrs.field(factory=ProofDisk)
    dirty: bool = False

    @property
    def repository(self) -> RepositoryStatus | None:
        """The repository of the source."""
        return None if self.machine is None else self.machine.status.repositories.get(REG_ID)

    def look(self) -> "StoreSummary":
        """Return the summary for other parts."""
        up, repository = self.machine is not None, self.repository
        content = dict(self.written.messages if up else self.synced.messages)
        used = self.synced != ProofDisk()
        if repository is None:
            return StoreSummary(up, self.dirty, used, content)
        resumed = repository.resume_point is not None
        newest = max(repository.newest, -1 if repository.high is None else repository.high)
        asked = repository.late_join
        question = None if asked is None else LateJoinRequest(asked.incarnation, 0, ADDRESS)
        unsynced = frozenset(content) - frozenset(self.synced.messages)
        life = repository.incarnation if resumed else 0
        return StoreSummary(up, self.dirty, used, content, life, newest, question, unsynced)

    def feed(self, event: StoreInput) -> list[Message]:
        """Pass an input to the endpoint; return its messages."""
        assert self.machine is not None
        self.machine.receive(event, 0)
        self.machine.handle_timeout(0)
        sent: list[Message] = []
        for effect in self.machine.take_effects():
            match effect:
                case Send():
                    sent.append(effect.message)
                case PersistClient():
                    self.written.client, self.dirty = effect.client, True
                case PersistMessages():
                    numbers = range(effect.first, effect.first + effect.count)
                    self.written.messages.update(dict.fromkeys(numbers, effect.incarnation))
                    self.dirty = True
                case Cut():
                    for number in [number for number in self.written.messages if number >= effect.number]:
                        del self.written.messages[number]
                    self.dirty = True
        return sent

    def sync(self) -> list[Message]:
        """Sync all writes; return the messages that waited for it."""
        assert self.machine is not None
        self.synced, self.dirty = self.written.copy(), False
        return self.feed(Persisted(self.machine.status.newest_ticket))

    def end(self) -> None:
        """End the process; the synced part remains."""
        self.machine, self.written, self.dirty = None, ProofDisk(), False

    def start(self, config: StoreConfig) -> None:
        """Restart with the contents of the disk."""
        self.machine = StoreEndpoint.create(config)
        self.written = self.synced.copy()
        client, held = self.written.client, sorted(self.written.messages)
        extents = [(REG_ID, number, 1, 0) for number in held]
        # As in the daemon: below the oldest message nothing may ever have come, back to the oldest life.
        trails = {REG_ID: min([client.lives[0][1], *held[:1]])} if client is not None and client.lives else {}
        self.machine.recover([] if client is None else [client], extents, trails, 0)
        self.feed(Start())

    def key(self) -> tuple[object, ...]:
        """Return a key that distinguishes states: the endpoint as the models see it, and its disk."""
        repository = self.repository
        shown: tuple[object, ...] = ()
        if repository is not None and self.machine is not None:
            shown = (*repository.abstract(), self.machine.status.clients[REG_ID].client.term)
        return (self.machine is not None, self.dirty, shown, self.written.key(), self.synced.key())


@attrs.define
class StoreStates:
    """Keep every state of a store by number, and the result of each step."""

    config: StoreConfig
    states: list[ProofStore] = attrs.field(factory=list)
    views: list[StoreSummary] = attrs.field(factory=list)
    numbers: dict[tuple[object, ...], int] = attrs.field(factory=dict)
    taken: dict[tuple[int, Step], tuple[int, tuple[Message, ...]]] = attrs.field(factory=dict)

    @classmethod
    def create(cls, repairs: Repair) -> "StoreStates":
        """Return stores that keep everything on disk."""
        kept = RepositoryConfig(
            size_threshold=0, size_limit=0, disk_limit=0, ack_interval_ns=0, source_activity_ns=LONG_NS
        )
        config = StoreConfig(
            ADDRESS,
            1,
            repository=kept,
            check_ns=LONG_NS,
            keepalive_ns=0,
            retry_ns=LONG_NS,
            give_up_ns=LONG_NS,
            repairs=repairs,
        )
        return cls(config)

    def new(self) -> int:
        """Return a store that was never used and does not run yet."""
        return self._number(ProofStore(None))

    def take(self, state: int, step: Step) -> tuple[int, tuple[Message, ...]]:
        """Return the state after a step, and the messages of the store."""
        known = self.taken.get((state, step))
        if known is None:
            process = clone(self.states[state])
            sent = tuple(self._step(process, step))
            known = self.taken[state, step] = (self._number(process), sent)
        return known

    def _number(self, process: ProofStore) -> int:
        number = self.numbers.setdefault(process.key(), len(self.states))
        if number == len(self.states):
            self.states.append(process)
            self.views.append(process.look())
        return number

    def _step(self, process: ProofStore, step: Step) -> list[Message]:
        match step:
            case StoreFate.SYNC:
                return process.sync()
            case StoreFate.LEAVE:
                if process.machine is not None:
                    process.sync()
                process.end()
            case StoreFate.CRASH:
                process.end()
            case StoreFate.RETURN:
                process.start(self.config)
            case StoreFate.WIPE:
                process.synced = ProofDisk()
            case Register():
                return [*process.feed(Arrived(step)), *process.sync()]
            case Data():
                return process.feed(step)
            case _:
                return process.feed(Arrived(step))
        return []
