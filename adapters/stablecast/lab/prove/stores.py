"""Drive a store of a world: the core's endpoint and its disk. The endpoint does not know its index.

A disk has a synced part, which survives a crash, and a written one, which is the store's while it runs.
"""

from collections.abc import Sequence

import attrs

from stablecast.core.errors import InvariantError
from stablecast.core.machine import serial
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Arrived, Data, Gone, Persisted, Start
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    LateJoinInfo,
    LateJoinRequest,
    Message,
    Register,
    RetransmitRequest,
    Role,
    SourceInfo,
    StoreEntry,
    StoreMemory,
)
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store.status import ClientStatus
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
from stablecast.lab.prove.endpoints import EndpointStates
from stablecast.lab.prove.state import Deed

ADDRESS = store_address(0)
TOKENS = 1_000
"""Distance of the tokens of two lives: a token names the life and the number of a message."""
RETRY_NS = 1
ROUND_NS = 100
"""Longer than all requests of a refill, and shorter than the wait for the next one."""
AGAIN_NS = 3600 * SECOND
"""Longer than the wait between two refills that get nothing."""


Step = Deed | Register | SourceInfo | LateJoinInfo | Data | RetransmitRequest | ConsumptionAck


@attrs.frozen
class StoreSummary:
    """Summarize a store for other parts.

    `content` has the life of each message, synced or not. `life` is the one whose receivers the store answers because
    it knows where that resumes (0: none), and `newest` the highest number known to exist. `question` waits for the
    source to say what it retains. `lacking` are the numbers that other stores may have. `disk` has the life of each
    synced message, and `consumed` the newest number that a receiver acknowledged here. `writes` means that messages in
    memory are still to be written, `rests` how many writes are not synced. `record` is the life
    that the disk names, and `resume` the first number of `life`.
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
    disk: dict[int, int] = attrs.field(factory=dict)
    writes: bool = False
    consumed: int = -1
    rests: int = 0
    record: int = 0
    resume: int = 0


@attrs.define
class ProofStore(WorldStore):
    """Hold a store's machine (None: it is down), its disk, and its time in ns. Time passes in refills and delays only.

    `cached` has the life of each message that is only in memory. `fine`: the key has all that a finer world changes.
    """

    now: int = 0
    fine: bool = False
    cached: dict[int, int] = attrs.field(factory=dict)

    def perform(self, now: int = 0) -> list[fx.StoreEffect]:
        """Keep what the store keeps in memory, beside what it writes."""
        others = super().perform(now)
        for effect in others:
            if isinstance(effect, fx.CacheMessages):
                self.cached.update(dict.fromkeys(range(effect.first, effect.first + effect.count), effect.incarnation))
        held = self.repository.held if self.cached and self.repository is not None else None
        if held is not None:
            kept = numbers_of(held)
            self.cached = {n: life for n, life in self.cached.items() if n in kept and n not in self.written.messages}
        return others

    def end(self) -> None:
        """End the process, and lose its memory."""
        super().end()
        self.cached = {}

    def life_of(self, number: int) -> int:
        """Return the life of a message that the store holds."""
        return self.cached.get(number) or self.written.messages[number]

    def sync_first(self) -> list[fx.StoreEffect]:
        """Sync the first write; return the effects that waited for it."""
        write = self.unsynced.pop(0)
        self.synced = clone(self.synced)
        self.synced.write(write)
        return self.receive(Persisted(write.ticket), self.now)

    def look(self) -> "StoreSummary":
        up, dirty, repository = self.machine is not None, bool(self.unsynced), self.repository
        client = self.synced.source
        record = 0 if client is None else client.incarnation
        disk = dict(self.synced.messages)
        content = {**self.written.messages, **self.cached} if up else dict(disk)
        used = bool(self.synced.clients)
        if repository is None:
            return StoreSummary(up, dirty, used, content, disk=disk, record=record)
        resumed = repository.resume_point is not None
        newest = max(repository.newest, -1 if repository.high is None else repository.high)
        asked = repository.late_join
        question = None if asked is None else LateJoinRequest(asked.incarnation, 0, ADDRESS)
        unsynced = frozenset(content) - frozenset(self.synced.messages)
        life = repository.incarnation if resumed else 0
        lacking = numbers_of(repository.lacking_numbers)
        consumed = max(
            [one.client.acknowledged for one in self._receivers() if one.client.has_acknowledged], default=-1
        )
        facts = (disk, bool(self.cached), consumed, len(self.unsynced), record, repository.resume_point or 0)
        return StoreSummary(up, dirty, used, content, life, newest, question, unsynced, lacking, *facts)

    def _receivers(self) -> list[ClientStatus]:
        clients = self.running.status.clients.values()
        return [one for one in clients if one.client.role is Role.RECEIVER]

    def start(self) -> None:
        """Restart with the contents of the disk."""
        client, held = self.synced.source, sorted(self.synced.messages)
        # As in the daemon: below the oldest message nothing may ever have come, back to the oldest life.
        trails = {SOURCE_ID: min([client.lives[0][1], *held[:1]])} if client is not None and client.lives else {}
        self.restart(self.now, trails)
        self.receive(Start(), self.now)

    def common(self) -> tuple[object, ...]:
        """Return what distinguishes states: the endpoint as the models see it, and its disk."""
        repository = self.repository
        shown: tuple[object, ...] = ()
        if repository is not None:
            client = self.running.status.clients[SOURCE_ID].client
            shown = (*repository.abstract(), client.term, tuple(repository.lacking_numbers))
        if self.fine:
            shown = (*shown, *self._fine_key())
        disks = [_disk_key(journal, fine=self.fine) for journal in (self.written, self.synced)]
        return (self.machine is not None, bool(self.unsynced), shown, *disks)

    def of(self, _: int) -> tuple[object, ...]:
        """Return nothing: a store does not know the others."""
        return ()

    def _fine_key(self) -> tuple[object, ...]:
        """Return what matters beside the source: receivers, the order of writes, and what waits for them."""
        if self.machine is None:
            return ()
        receivers = tuple(
            (one.active, one.client.incarnation, one.client.acknowledged, one.client.has_acknowledged)
            for one in self._receivers()
        )
        requests = tuple(one.incarnation for one in self.machine.registry.early)
        early = (requests, tuple((ack.incarnation, ack.number) for ack in self.machine.early_acks.values()))
        writes = tuple(repr(attrs.evolve(write, ticket=0)) for write in self.unsynced)
        waiting = tuple(
            repr(attrs.evolve(due, ticket=0, generation=min(due.generation, 0))) for due in self.running.status.waiting
        )
        repository = self.repository
        delayed = () if repository is None else (tuple(repository.delayed), tuple(repository.owed))
        return (receivers, early, writes, waiting, delayed, tuple(sorted(self.cached.items())))


def _disk_key(journal: WorldJournal, *, fine: bool = False) -> tuple[object, ...]:
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
    receivers: tuple[object, ...] = ()
    if fine:
        others = [one for _, one in sorted(journal.clients.items()) if one.role is Role.RECEIVER]
        receivers = tuple((one.incarnation, one.acknowledged, one.has_acknowledged) for one in others)
        receivers = (*receivers, client is not None and len(client.stores))  # A refill asks these.
    return (record, tuple(sorted(journal.messages.items())), journal.memory, *receivers)


StoreReaction = tuple[int, tuple[Message | Data, ...]]
"""The state after a step, and the messages of the store."""


@attrs.define
class StoreStates(EndpointStates[ProofStore, StoreSummary, Step, StoreReaction]):
    """Keep every state of a store by number, and the result of each step and refill."""

    config: StoreConfig
    refilled: dict[tuple[int, SourceInfo, tuple[int, ...]], StoreReaction] = attrs.field(init=False, factory=dict)

    @classmethod
    def create(cls, repairs: Repair, *, refill: bool = False, fine: bool = False, delay_ns: int = 0) -> "StoreStates":
        """Return stores that keep everything on disk, and with `refill` get from each other what they lack.

        Messages are written `delay_ns` after they came.
        """
        config = disk_only(ADDRESS, repairs)
        assert config.repository is not None
        config = attrs.evolve(config, repository=attrs.evolve(config.repository, write_delay_ns=delay_ns))
        if refill:
            config = attrs.evolve(config, refill=True, refill_rate=0, refill_byte_rate=0, retry_ns=RETRY_NS)
        return cls(config, places=0, fine=fine)

    def new(self) -> int:
        """Return a store that was never used and does not run yet."""
        return self.number(ProofStore(self.config, fine=self.fine))

    def perform(self, endpoint: ProofStore, step: Step) -> StoreReaction:
        sent = tuple(map(_uncounted, self._step(endpoint, step)))
        return (self.number(endpoint), sent)

    def refill(self, state: int, info: SourceInfo, peers: tuple[int, ...]) -> StoreReaction:
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
            known = self.refilled[state, info, peers] = (self.number(process), tuple(sent))
        return known

    @property
    def delay_ns(self) -> int:
        return 0 if self.config.repository is None else self.config.repository.write_delay_ns

    def _step(self, process: ProofStore, step: Step) -> Sequence[Message | Data]:
        match step:
            case Deed.SYNC:
                return messages(process.sync(process.now))
            case Deed.SYNC_FIRST:
                return messages(process.sync_first())
            case Deed.WRITE:
                process.now += self.delay_ns
                return messages(process.perform(process.now))
            case RetransmitRequest():
                return _served(process, step)
            case Deed.LEAVE:
                if process.machine is not None:
                    process.sync(process.now)
                process.end()
            case Deed.CRASH:
                process.end()
            case Deed.RETURN:
                process.start()
            case Deed.WIPE:
                process.synced = WorldJournal(memory=StoreMemory.LOST)
            case Register():
                _release(process, step)
                return messages([*process.receive(Arrived(step), process.now), *process.sync(process.now)])
            case Data():
                return messages(process.receive(step, process.now))
            case Deed():
                raise InvariantError(f"a store takes no such step: {step}")
            case _:
                return messages(process.receive(Arrived(step), process.now))
        return []


def _release(process: ProofStore, request: Register) -> None:
    """End the lease of a process at another address: leases are proved elsewhere, here every claimant is granted."""
    holder = None if process.machine is None else process.machine.clients.holder(request)
    if holder is not None and holder.client.reply_to != request.reply_to:
        process.receive(Gone(holder.client.reply_to), process.now)


def _uncounted(message: Message | Data) -> Message | Data:
    """Return a request without its number, which matters to its sender only."""
    return attrs.evolve(message, request=0) if isinstance(message, RetransmitRequest) else message


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


def _token(peer: ProofStore, number: int) -> int:
    return TOKENS * peer.life_of(number) + number


def _served(peer: ProofStore, request: RetransmitRequest) -> list[Data]:
    """Return the messages with which a store answers another one."""
    return [
        Data(stored.session, peer.life_of(number), serial.wire(number), 1, 0, True, _token(peer, number))
        for stored in peer.receive(Arrived(request), peer.now)
        if isinstance(stored, fx.SendStored)
        for number in range(stored.first, stored.last + 1)
    ]
