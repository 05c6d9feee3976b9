"""Represent a store by a number: each state of the core's endpoint and disk is kept once, and each step performed once.

Stores do not know each other, so a step depends only on the store's own state. Every state has a number, and the
results of its steps are cached. A search through a million combinations takes a few thousand steps of the real machine.
The endpoints do not know their index; the caller adds it to their answers.

A disk has a synced part, which survives a crash, and a written one, which is the store's while it runs.
"""

from enum import IntEnum

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Arrived, Data, Start
from stablecast.core.protocol.messages import (
    LateJoinInfo,
    LateJoinRequest,
    Message,
    Register,
    RetransmitRequest,
    SourceInfo,
    StoreEntry,
    StoreMemory,
)
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import StoreConfig
from stablecast.lab.model.clone import clone
from stablecast.lab.model.store_process import (
    SOURCE_ID,
    WorldJournal,
    WorldStore,
    disk_only,
    messages,
    numbers_of,
    store_address,
)

ADDRESS = store_address(0)
RETRY_NS = 1
ROUND_NS = 100
"""Longer than all requests of a refill, and shorter than the wait for the next one."""
AGAIN_NS = 3600 * SECOND
"""Longer than the wait between two refills that get nothing."""


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


@attrs.frozen
class StoreSummary:
    """Summarize a store for other parts.

    `content` has the life of each message, synced or not. `life` is the one whose receivers the store answers because
    it knows where that resumes (0: none), and `newest` the highest number known to exist. `question` waits for the
    source to say what it retains. `lacking` are the numbers that other stores may have.
    """

    up: bool
    dirty: bool
    used: bool
    content: dict[int, int]
    life: int = 0
    newest: int = -1
    question: LateJoinRequest | None = None
    unsynced: frozenset[int] = frozenset()
    lacking: frozenset[int] = frozenset()


@attrs.define
class ProofStore(WorldStore):
    """Hold a store's machine (None: it is down), its disk, and its time in ns, which passes in a refill only."""

    now: int = 0

    def look(self) -> "StoreSummary":
        """Return the summary for other parts."""
        up, dirty, repository = self.machine is not None, bool(self.unsynced), self.repository
        content = dict(self.written.messages if up else self.synced.messages)
        used = bool(self.synced.clients)
        if repository is None:
            return StoreSummary(up, dirty, used, content)
        resumed = repository.resume_point is not None
        newest = max(repository.newest, -1 if repository.high is None else repository.high)
        asked = repository.late_join
        question = None if asked is None else LateJoinRequest(asked.incarnation, 0, ADDRESS)
        unsynced = frozenset(content) - frozenset(self.synced.messages)
        life = repository.incarnation if resumed else 0
        lacking = numbers_of(repository.lacking_numbers)
        return StoreSummary(up, dirty, used, content, life, newest, question, unsynced, lacking)

    def start(self) -> None:
        """Restart with the contents of the disk."""
        client, held = self.synced.source, sorted(self.synced.messages)
        # As in the daemon: below the oldest message nothing may ever have come, back to the oldest life.
        trails = {SOURCE_ID: min([client.lives[0][1], *held[:1]])} if client is not None and client.lives else {}
        self.restart(self.now, trails)
        self.receive(Start(), self.now)

    def key(self) -> tuple[object, ...]:
        """Return a key that distinguishes states: the endpoint as the models see it, and its disk."""
        repository = self.repository
        shown: tuple[object, ...] = ()
        if repository is not None:
            client = self.running.status.clients[SOURCE_ID].client
            shown = (*repository.abstract(), client.term, tuple(repository.lacking_numbers))
        return (self.machine is not None, bool(self.unsynced), shown, _disk_key(self.written), _disk_key(self.synced))


def _disk_key(journal: WorldJournal) -> tuple[object, ...]:
    """Return a key that distinguishes disks."""
    client = journal.source
    record = client and (
        client.incarnation,
        client.context,
        client.term,
        client.lives,
        client.lives_term,
        client.memory,
        client.known,
    )
    return (record, tuple(sorted(journal.messages.items())), journal.memory)


@attrs.define
class StoreStates:
    """Keep every state of a store by number, and the result of each step."""

    config: StoreConfig
    states: list[ProofStore] = attrs.field(factory=list)
    views: list[StoreSummary] = attrs.field(factory=list)
    numbers: dict[tuple[object, ...], int] = attrs.field(factory=dict)
    taken: dict[tuple[int, Step], tuple[int, tuple[Message, ...]]] = attrs.field(factory=dict)
    refilled: dict[tuple[int, SourceInfo, tuple[int, ...]], tuple[int, tuple[Message, ...]]] = attrs.field(factory=dict)

    @classmethod
    def create(cls, repairs: Repair, *, refill: bool = False) -> "StoreStates":
        """Return stores that keep everything on disk, and with `refill` get from each other what they lack."""
        config = disk_only(ADDRESS, repairs)
        if refill:
            config = attrs.evolve(config, refill=True, refill_rate=0, refill_byte_rate=0, retry_ns=RETRY_NS)
        return cls(config)

    def new(self) -> int:
        """Return a store that was never used and does not run yet."""
        return self._number(ProofStore(self.config))

    def take(self, state: int, step: Step) -> tuple[int, tuple[Message, ...]]:
        """Return the state after a step, and the messages of the store."""
        known = self.taken.get((state, step))
        if known is None:
            process = clone(self.states[state])
            sent = tuple(self._step(process, step))
            known = self.taken[state, step] = (self._number(process), sent)
        return known

    def refill(self, state: int, info: SourceInfo, peers: tuple[int, ...]) -> tuple[int, tuple[Message, ...]]:
        """Return the state after a store asked its peers for all that it lacks, and its messages to the source.

        `info` announces the life of the source; `peers` are the states of other stores at which that life is current.
        """
        known = self.refilled.get((state, info, peers))
        if known is None:
            process, others = (
                clone(self.states[state]),
                {store_address(at): self.states[one] for at, one in enumerate(peers, 1)},
            )
            entries = tuple(StoreEntry(at, 0, address, SOURCE_ID, 0) for at, address in enumerate(others, 1))
            sent = _ask(process, attrs.evolve(info, stores=entries), {one: clone(of) for one, of in others.items()})
            known = self.refilled[state, info, peers] = (self._number(process), tuple(sent))
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
                return messages(process.sync(process.now))
            case StoreFate.LEAVE:
                if process.machine is not None:
                    process.sync(process.now)
                process.end()
            case StoreFate.CRASH:
                process.end()
            case StoreFate.RETURN:
                process.start()
            case StoreFate.WIPE:
                process.synced = WorldJournal(memory=StoreMemory.LOST)
            case Register():
                return messages([*process.receive(Arrived(step), process.now), *process.sync(process.now)])
            case Data():
                return messages(process.receive(step, process.now))
            case _:
                return messages(process.receive(Arrived(step), process.now))
        return []


def _ask(process: ProofStore, info: SourceInfo, peers: dict[str, ProofStore]) -> list[Message]:
    """Let a store learn of its peers and ask them until it has nothing more to ask; return its other messages."""
    process.now += AGAIN_NS
    sent = messages(process.receive(Arrived(info), process.now))
    until = process.now + ROUND_NS
    while process.now < until:
        process.now += RETRY_NS
        process.running.handle_timeout(process.now)
        effects = process.perform(process.now)
        while effects:
            effect = effects.pop(0)
            match effect:
                case fx.Send(to=to, message=RetransmitRequest() as request) if to in peers:
                    for run in _served(peers[to], request):
                        effects += process.receive(run, process.now)
                case fx.Send(message=message):
                    sent.append(message)
    return sent


def _served(peer: ProofStore, request: RetransmitRequest) -> list[Data]:
    """Return the messages with which a store answers another one."""
    return [
        Data(stored.session, peer.written.messages[number], serial.wire(number), 1, 0, recovered=True, token=0)
        for stored in peer.receive(Arrived(request), peer.now)
        if isinstance(stored, fx.SendStored)
        for number in range(stored.first, stored.last + 1)
    ]
