"""A store as a number: the core's own endpoint with its disk, each state kept once, each step of it taken once.

Stores do not know of each other, so what one does depends on its own state and on what it is told. Every state is given
a number, and what the endpoint does there is remembered: a search through a million combinations takes a few thousand
steps of the real machine. The endpoints do not know their index; whoever plays them puts it into their answers.

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
"""What takes so long does not happen here."""
ADDRESS = "store:1"


class Fate(IntEnum):
    """What happens to a store from outside."""

    SYNC = 0
    LEAVE = 1
    """It is cut off or ends; what it wrote is kept."""
    CRASH = 2
    """It ends, and what it had not synced is lost."""
    RETURN = 3
    WIPE = 4


Step = Fate | Register | SourceInfo | LateJoinInfo | Data


@attrs.define
class Disk:
    """The newest record of the source, and the life of each message."""

    client: Client | None = None
    messages: dict[int, int] = attrs.field(factory=dict)

    def copy(self) -> "Disk":
        """The same, apart."""
        return Disk(self.client, dict(self.messages))

    def key(self) -> tuple[object, ...]:
        """What tells disks apart."""
        client = self.client
        record = (
            None
            if client is None
            else (client.incarnation, client.context, client.term, client.lives, client.lives_term)
        )
        return (record, tuple(sorted(self.messages.items())))


@attrs.frozen
class View:
    """What others see of a store.

    `content` has the life of each message that it keeps, synced or not; `life` is the one whose receivers it answers,
    for it knows where that resumes (0: none); `newest` the highest number that it knows to exist. `question`: it waits
    for the source to say what it can still have.
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
class Process:
    """A store, or where it was."""

    machine: StoreEndpoint | None
    written: Disk = attrs.field(factory=Disk)
    synced: Disk = attrs.field(factory=Disk)
    dirty: bool = False

    @property
    def repository(self) -> RepositoryStatus | None:
        """What it keeps of the source."""
        return None if self.machine is None else self.machine.status.repositories.get(REG_ID)

    def look(self) -> "View":
        """What others see of it."""
        up, repository = self.machine is not None, self.repository
        content = dict(self.written.messages if up else self.synced.messages)
        used = self.synced != Disk()
        if repository is None:
            return View(up, self.dirty, used, content)
        resumed = repository.resume_point is not None
        newest = max(repository.newest, -1 if repository.high is None else repository.high)
        asked = repository.late_join
        question = None if asked is None else LateJoinRequest(asked.incarnation, 0, ADDRESS)
        unsynced = frozenset(content) - frozenset(self.synced.messages)
        life = repository.incarnation if resumed else 0
        return View(up, self.dirty, used, content, life, newest, question, unsynced)

    def feed(self, event: StoreInput) -> list[Message]:
        """Let the endpoint have it; returns what it sends."""
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
        """Everything written is safe; returns what was waiting for that."""
        assert self.machine is not None
        self.synced, self.dirty = self.written.copy(), False
        return self.feed(Persisted(self.machine.status.newest_ticket))

    def end(self) -> None:
        """It is away with what is synced."""
        self.machine, self.written, self.dirty = None, Disk(), False

    def start(self, config: StoreConfig) -> None:
        """It is back with what the disk has."""
        self.machine = StoreEndpoint.create(config)
        self.written = self.synced.copy()
        client, held = self.written.client, sorted(self.written.messages)
        extents = [(REG_ID, number, 1, 0) for number in held]
        # Like the daemon: what is not here below its oldest message may never have come, back to its oldest life.
        trails = {REG_ID: min([client.lives[0][1], *held[:1]])} if client is not None and client.lives else {}
        self.machine.recover([] if client is None else [client], extents, trails, 0)
        self.feed(Start())

    def key(self) -> tuple[object, ...]:
        """What tells states of a store apart: the endpoint as the models see it, and its disk."""
        repository = self.repository
        shown: tuple[object, ...] = ()
        if repository is not None and self.machine is not None:
            shown = (*repository.abstract(), self.machine.status.clients[REG_ID].client.term)
        return (self.machine is not None, self.dirty, shown, self.written.key(), self.synced.key())


@attrs.define
class Stores:
    """Every state that a store was seen in, by number, and what came of each step that was taken there."""

    config: StoreConfig
    states: list[Process] = attrs.field(factory=list)
    views: list[View] = attrs.field(factory=list)
    numbers: dict[tuple[object, ...], int] = attrs.field(factory=dict)
    taken: dict[tuple[int, Step], tuple[int, tuple[Message, ...]]] = attrs.field(factory=dict)

    @classmethod
    def create(cls, repairs: Repair) -> "Stores":
        """Stores that keep everything they are given, on disk."""
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
        """A store that was never used, and does not run yet."""
        return self._number(Process(None))

    def take(self, state: int, step: Step) -> tuple[int, tuple[Message, ...]]:
        """The state after a step, and what the store sends then."""
        known = self.taken.get((state, step))
        if known is None:
            process = clone(self.states[state])
            sent = tuple(self._step(process, step))
            known = self.taken[state, step] = (self._number(process), sent)
        return known

    def _number(self, process: Process) -> int:
        number = self.numbers.setdefault(process.key(), len(self.states))
        if number == len(self.states):
            self.states.append(process)
            self.views.append(process.look())
        return number

    def _step(self, process: Process, step: Step) -> list[Message]:
        match step:
            case Fate.SYNC:
                return process.sync()
            case Fate.LEAVE:
                if process.machine is not None:
                    process.sync()
                process.end()
            case Fate.CRASH:
                process.end()
            case Fate.RETURN:
                process.start(self.config)
            case Fate.WIPE:
                process.synced = Disk()
            case Register():
                return [*process.feed(Arrived(step)), *process.sync()]
            case Data():
                return process.feed(step)
            case _:
                return process.feed(Arrived(step))
        return []
