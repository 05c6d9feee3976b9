"""The world of `tla/Stability`: the lives of a source and the stores that keep its messages, by the core's own machines.

The source is a whole `SourceEndpoint`, each store a whole `StoreEndpoint`. The world adds what the core leaves to its
drivers: streams and connections (queues that a crash empties), the stores' disks (synced and unsynced part, of which a
crash drops the latter), registration intervals that pass, and processes that end and come back.

Numbers begin at 1 in the model and at 0 in the core.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import ClassVar, Self

import attrs

from stablecast.core import serial
from stablecast.core.effects import Client, Cut, Notify, PersistClient, PersistMessages, Resend, Send
from stablecast.core.enrollment import Enrollment
from stablecast.core.events import Stable, StableFlag
from stablecast.core.inputs import Arrived, Data, Gone, Persisted, Sent, SourceInput, Start, StoreInput, Tick
from stablecast.core.history import unfold
from stablecast.core.messages import LateJoinInfo, LateJoinRequest, Life, Registered, RetransmitRequest, StableAck
from stablecast.core.quorum import Consensus, GroupRules, Intergroup, Intragroup, quorum_of
from stablecast.core.ranges import RangeSet
from stablecast.core.registration import Registration, RegistrationState, RegistrationTimes
from stablecast.core.repairs import Repair
from stablecast.core.repository import Repository
from stablecast.core.resume import offer
from stablecast.core.settings import RepositoryConfig, SourceConfig, StoreConfig, StoreSpec
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.core.store import StoreEndpoint
from stablecast.core.units import SECOND
from stablecast.model.canonical import Fn, Value, record
from stablecast.model.explorer import Action, Invariant, State

LAYOUTS: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "one": ((1,), (0,)),
    "two": ((2,), (0, 0)),
    "three": ((3,), (0, 0, 0)),
    "backup": ((3,), (0, 0, 0, 0)),
    "one and one": ((1, 1), (0, 1)),
    "one and two": ((1, 2), (0, 1, 1)),
}
"""The configured sizes of the groups, and the group of each store."""
REG_ID = 1
INTERVAL_NS = 1
LONG_NS = 1_000_000 * SECOND
"""What takes so long does not happen in a model."""
RUNNING = (SourceState.REGISTERING, SourceState.ACTIVE, SourceState.SUSPENDED)
WAITING = (RegistrationState.REGISTERING, RegistrationState.RENEWING, RegistrationState.UNRESPONSIVE)
STATES = {
    RegistrationState.REGISTERING: "asked",
    RegistrationState.REGISTERED: "registered",
    RegistrationState.RENEWING: "renewing",
    RegistrationState.UNRESPONSIVE: "away",
}


@attrs.frozen
class Constants:
    """The model's constants."""

    Layout: str
    Inside: str
    Between: str
    Consensus: str
    Repairs: frozenset[str]
    Numbers: int
    Flight: int
    Lives: int
    Crashes: int
    Faults: frozenset[str]

    @property
    def groups(self) -> tuple[int, ...]:
        """The group of each store, by index."""
        return LAYOUTS[self.Layout][1]

    @property
    def repairs(self) -> Repair:
        """The rules that the model may have as documented, and all others repaired."""
        asked = Repair.EVERY_GROUP | Repair.ONE_LIFE | Repair.HOLES
        chosen = Repair.NONE
        for name in self.Repairs:
            chosen |= Repair[name.upper()]
        return Repair.ALL & ~asked | chosen


@attrs.define
class Journal:
    """What a disk keeps: the source's newest record, and the life of each message."""

    client: Client | None = None
    messages: dict[int, int] = attrs.field(factory=dict)

    def write(self, write: PersistClient | PersistMessages | Cut) -> None:
        """Write, and be synced or lost later."""
        match write:
            case PersistClient():
                self.client = write.client
            case PersistMessages():
                self.messages.update(dict.fromkeys(range(write.first, write.first + write.count), write.incarnation))
            case _:
                self.messages = {n: life for n, life in self.messages.items() if n < write.number}

    def extents(self) -> list[tuple[int, int, int, int]]:
        """As a store that restarts finds them."""
        return [(REG_ID, number, 1, 0) for number in sorted(self.messages)]


@attrs.define
class Process:
    """A store, or where it was: its machine, its connections, its disk. `written` is what is not lost yet."""

    index: int
    machine: StoreEndpoint | None
    stream: list[int] = attrs.field(factory=list)
    back: list[Registered | StableAck] = attrs.field(factory=list)
    written: Journal = attrs.field(factory=Journal)
    synced: Journal = attrs.field(factory=Journal)
    dirty: bool = False

    @property
    def repository(self) -> Repository | None:
        """What it keeps of the source."""
        return None if self.machine is None else self.machine.repositories.get(REG_ID)

    @property
    def life(self) -> int:
        """The life that it keeps messages of."""
        repository = self.repository
        return 0 if repository is None else repository.incarnation

    @property
    def granting(self) -> bool:
        """Whether a grant to this life waits for the disk."""
        waiting = () if self.machine is None else self.machine.tickets.waiting
        return any(due.generation >= 0 and due.incarnation == self.life for due in waiting)

    def granted(self, life: int) -> bool:
        """Whether a grant is under way."""
        return any(isinstance(answer, Registered) and answer.incarnation == life for answer in self.back)

    def feed(self, event: StoreInput) -> list[LateJoinRequest | RetransmitRequest]:
        """Let the store have it, and do what it wants; returns what it asks the source."""
        assert self.machine is not None
        self.machine.receive(event, 0)
        self.machine.handle_timeout(0)
        asked: list[LateJoinRequest | RetransmitRequest] = []
        for effect in self.machine.take_effects():
            if isinstance(effect, PersistClient | PersistMessages | Cut):
                self.written.write(effect)
                self.dirty = True
            elif isinstance(effect, Send) and isinstance(effect.message, Registered | StableAck):
                self.back.append(effect.message)
            elif isinstance(effect, Send) and isinstance(effect.message, LateJoinRequest | RetransmitRequest):
                asked.append(effect.message)
        return asked

    def crash(self) -> None:
        """The process ends."""
        self.machine, self.stream, self.back, self.dirty = None, [], [], False


@attrs.define
class World:
    """See the module. `life` counts the source's lives; `safe` are (life, number) that were reported stable."""

    constants: Constants
    stores: list[Process]
    source: SourceEndpoint | None = None
    life: int = 0
    crashes: int = 0
    safe: set[tuple[int, int]] = attrs.field(factory=set)
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Value]) -> Self:
        """The initial state: the stores run, the source does not."""
        known = Constants(**{name: value for name, value in constants.items() if name != "Mutant"})  # type: ignore[arg-type]
        stores = [Process(index, StoreEndpoint.create(_store_config(known, index))) for index in range(len(known.groups))]
        return cls(known, stores)

    # What can happen.

    def actions(self) -> Iterator[Action]:
        """In the order of the model's `Next`."""
        heard = "slow" in self.constants.Faults or not any(process.back for process in self.stores)
        if heard:
            yield from ((name,) for name in self._source_actions())
        for number, process in enumerate(self.stores, 1):
            if heard:
                yield from ((name, number) for name in self._store_actions(process))
            if process.back:
                yield ("ToSource", number)

    def _source_actions(self) -> Iterator[str]:
        source, calm = self.source, self._calm(self.stores)
        if source is None:
            if calm and self.life < self.constants.Lives:
                yield "Begin"
            return
        yield "Stop"
        if not (calm and self._prompt(self.stores)):
            return
        enrollment = source.enrollment
        waits = source.state is SourceState.REGISTERING and not enrollment.first_interval_over
        if waits or any(r.state is RegistrationState.RENEWING for r in enrollment.registrations.values()):
            yield "Wait"
        if source.can_send and source.window.next < self.constants.Numbers and source.credit_messages:
            yield "Send"

    def _store_actions(self, process: Process) -> Iterator[str]:
        constants = self.constants
        calm = self._calm([other for other in self.stores if other is not process])
        if process.machine is None:
            if calm:
                yield "Restart"
                if "wipe" in constants.Faults and process.synced != Journal():
                    yield "Wipe"
            return
        if calm:
            yield from self._hearing(process)
        if process.dirty:
            yield "Sync"
        if self.crashes < constants.Crashes:
            yield "Crash"

    def _hearing(self, process: Process) -> Iterator[str]:
        """What a store may hear next."""
        prompt, in_turn = self._prompt(self.stores), self._prompt(self.stores[: process.index])
        if self._unanswered(process) and in_turn:
            yield "Ask"
        repository = process.repository
        if self._announced(process) and repository is not None:
            if self._uninformed(process) and in_turn:
                yield "Inform"
            if repository.resume_point is not None and prompt and _high(repository) < self._source.window.next - 1:
                yield "Inform"
            if repository.filling.asked_at is not None and not process.granting and prompt:
                yield "Fill"
        if process.stream and prompt:
            if not process.granting:
                yield "ToStore"
            if "lose" in self.constants.Faults:
                yield "Lose"

    def _calm(self, stores: list[Process]) -> bool:
        """Whether nobody else's disk comes first."""
        return "lag" in self.constants.Faults or not any(process.dirty for process in stores)

    def _prompt(self, stores: list[Process]) -> bool:
        """Whether nothing that these stores are told comes first."""
        slow = "slow" in self.constants.Faults
        return slow or not any(self._unanswered(process) or self._uninformed(process) for process in stores)

    def _unanswered(self, process: Process) -> bool:
        """Whether a request to the store is under way."""
        if self.source is None or process.machine is None or self._registration(process).state not in WAITING:
            return False
        granting = process.granting and process.life == self.life
        return not granting and not process.granted(self.life)

    def _announced(self, process: Process) -> bool:
        """Whether the store hears this life, and it has something to say."""
        running = self.source is not None and self.source.state is not SourceState.REGISTERING
        return running and process.life == self.life

    def _uninformed(self, process: Process) -> bool:
        repository = process.repository
        return self._announced(process) and repository is not None and repository.resume_point is None

    def do(self, action: Action) -> None:
        """Let it happen."""
        name, *parameters = action
        if parameters:
            (number,) = parameters
            assert isinstance(number, int)
            self._AT_A_STORE[str(name)](self, self.stores[number - 1])
        else:
            self._AT_THE_SOURCE[str(name)](self)
        if self.source is not None and self.source.state is SourceState.OVER:
            self.source = None

    def _begin(self) -> None:
        self.life += 1
        self.source = SourceEndpoint.create(_source_config(self.constants, self.life))
        self._hear(Start())

    def _stop(self) -> None:
        self.source = None
        if "late" not in self.constants.Faults:
            for process in self.stores:
                process.stream, process.back = [], []

    def _wait(self) -> None:
        self.now += INTERVAL_NS
        self._hear(Tick())

    def _send(self) -> None:
        number = self._source.window.next
        self._hear(Sent(number, 1, 0))
        for process in self.stores:
            if process.life == self.life:
                process.stream.append(number)

    def _ask(self, process: Process) -> None:
        if process.life != self.life:
            process.stream = []
        process.feed(Arrived(self._registration(process).request))

    def _inform(self, process: Process) -> None:
        process.feed(Arrived(self._source.info()))

    def _to_store(self, process: Process) -> None:
        process.feed(self._data(process.stream.pop(0), process.life))

    def _lose(self, process: Process) -> None:
        process.stream.pop(0)

    def _fill(self, process: Process) -> None:
        """The store asks (again), the source says what there is, is asked for it, and sends it."""
        repository = process.repository
        assert repository is not None
        requests = repository.filling.requests
        (told,) = self._answers(LateJoinRequest(requests.incarnation, REG_ID, requests.reply_to))
        assert isinstance(told, LateJoinInfo)
        for request in process.feed(Arrived(told)):
            for resent in self._answers(request):
                assert isinstance(resent, Resend)
                for number in range(resent.first, resent.last + 1):
                    process.feed(self._data(number, self.life, recovered=True))

    def _sync(self, process: Process) -> None:
        assert process.machine is not None
        process.dirty = False
        process.synced = attrs.evolve(process.written, messages=dict(process.written.messages))
        process.feed(Persisted(process.machine.tickets.last))

    def _to_source(self, process: Process) -> None:
        """A grant, or all acknowledgements up to the next one; what nobody hears is lost."""
        message = process.back.pop(0)
        self._hear(Arrived(message))
        while process.back and _together(message, process.back[0]):
            self._hear(Arrived(process.back.pop(0)))

    def _crash(self, process: Process) -> None:
        process.crash()
        self.crashes += 1
        self._hear(Gone(_address(process.index)))

    def _restart(self, process: Process) -> None:
        process.machine = StoreEndpoint.create(_store_config(self.constants, process.index))
        kept = process.synced
        process.written = attrs.evolve(kept, messages=dict(kept.messages))
        process.machine.recover([] if kept.client is None else [kept.client], kept.extents(), {}, 0)
        process.feed(Start())

    def _wipe(self, process: Process) -> None:
        process.synced = Journal()

    _AT_THE_SOURCE: ClassVar = {"Begin": _begin, "Stop": _stop, "Wait": _wait, "Send": _send}
    _AT_A_STORE: ClassVar = {
        "Ask": _ask,
        "Inform": _inform,
        "ToStore": _to_store,
        "Lose": _lose,
        "Fill": _fill,
        "Sync": _sync,
        "ToSource": _to_source,
        "Crash": _crash,
        "Restart": _restart,
        "Wipe": _wipe,
    }

    # The source's driver.

    @property
    def _source(self) -> SourceEndpoint:
        assert self.source is not None
        return self.source

    def _registration(self, process: Process) -> Registration:
        return self._source.enrollment.registrations[process.index]

    def _hear(self, event: SourceInput) -> list[LateJoinInfo | Resend]:
        """Let the source have it, if it runs; returns what it sends to a store that asked."""
        if self.source is None:
            return []
        self.source.receive(event, self.now)
        told: list[LateJoinInfo | Resend] = []
        for effect in self.source.take_effects():
            if isinstance(effect, Notify) and isinstance(effect.event, Stable) and effect.event.flags & StableFlag.STABLE:
                self.safe |= {(self.life, n) for n in range(effect.event.first, effect.event.last + 1)}
            elif isinstance(effect, Resend):
                told.append(effect)
            elif isinstance(effect, Send) and isinstance(effect.message, LateJoinInfo):
                told.append(effect.message)
        return told

    def _answers(self, request: LateJoinRequest | RetransmitRequest) -> list[LateJoinInfo | Resend]:
        return self._hear(Arrived(request))

    def _data(self, number: int, life: int, recovered: bool = False) -> Data:
        return Data(life, life, serial.wire(number), 1, 0, recovered, token=0)

    # What the model sees.

    def abstract(self) -> State:
        """The model's variables."""
        stores = self.stores
        return {
            "source": self._source_state(),
            "reg": tuple(self._reg(index) for index in range(len(stores))),
            "window": self._window(),
            "stream": tuple(tuple(number + 1 for number in process.stream) for process in stores),
            "back": tuple(tuple(_answers(process.back)) for process in stores),
            "store": tuple(self._store(process) for process in stores),
            "disk": tuple(self._disk(process) for process in stores),
            "safe": frozenset((life, number + 1) for life, number in self.safe),
            "crashes": self.crashes,
        }

    def _source_state(self) -> Fn:
        source = self.source
        if source is None:
            return record(life=self.life, state="DOWN", waited=False, resume=0, born=0, term=0, lives=())
        lineage = source.lineage
        registering = source.state is SourceState.REGISTERING
        return record(
            life=self.life,
            state=source.state.name,
            waited=registering and source.enrollment.first_interval_over,
            resume=0 if registering else lineage.resume_point + 1,
            born=lineage.born,
            term=lineage.term,
            lives=_history(lineage.lives),
        )

    def _reg(self, index: int) -> Fn:
        if self.source is None:
            return record(state="none", grant=_grant(None))
        registration = self.source.enrollment.registrations[index]
        shown = self.source.state is SourceState.REGISTERING
        return record(state=STATES[registration.state], grant=_grant(registration.granted if shown else None))

    def _window(self) -> Fn:
        if self.source is None or self.source.state is SourceState.REGISTERING:
            return record(trail=0, next=0, acked=(frozenset(),) * len(self.stores), stable=frozenset())
        window = self.source.window
        return record(
            trail=window.trail + 1,
            next=window.next + 1,
            acked=tuple(_members(held) for held in window.acked),
            stable=_members(window.stable),
        )

    def _store(self, process: Process) -> Fn:
        repository = process.repository
        if repository is None or process.machine is None:
            return record(**_EMPTY, up=process.machine is not None, content=(0,) * self.constants.Numbers)
        client = process.machine.clients.records[REG_ID].client
        known = repository.resume_point is not None
        return record(
            up=True,
            life=repository.incarnation,
            term=client.term,
            lives=_history(repository.life.lives),
            told=repository.life.term,
            resume=0 if repository.resume_point is None else repository.resume_point + 1,
            trail=repository.trail + 1,
            content=self._content({n: process.written.messages.get(n, 0) for n in _numbers(repository.held)}),
            synced=_members(repository.synced),
            lost=_members(repository.lost),
            acked=repository.acked + 1 if known else 0,
            high=_high(repository) + 1 if known else 0,
            asked=repository.filling.asked_at is not None,
            grant=process.granting,
            dirty=process.dirty,
        )

    def _disk(self, process: Process) -> Fn:
        client = process.synced.client
        return record(
            group=self.constants.groups[process.index] + 1,
            life=0 if client is None else client.incarnation,
            term=0 if client is None else client.term,
            lives=() if client is None else _history(client.lives),
            told=0 if client is None else client.lives_term,
            content=self._content(process.synced.messages),
        )

    def _content(self, messages: Mapping[int, int]) -> tuple[int, ...]:
        return tuple(messages.get(number, 0) for number in range(self.constants.Numbers))


_EMPTY: Mapping[str, Value] = {
    "life": 0, "term": 0, "lives": (), "told": 0, "resume": 0, "trail": 1, "synced": frozenset(), "lost": frozenset(),
    "acked": 0, "high": 0, "asked": False, "grant": False, "dirty": False,
}  # fmt: skip
"""A store that knows no source."""


def _high(repository: Repository) -> int:
    """The newest number that the store knows of."""
    known = repository.filling.high
    return repository.newest if known is None else max(known, repository.newest)


def _numbers(ranges: RangeSet) -> Iterator[int]:
    for first, stop in ranges:
        yield from range(first, stop)


def _members(ranges: RangeSet) -> frozenset[Value]:
    return frozenset(number + 1 for number in _numbers(ranges))


def _history(lives: Iterable[Life]) -> tuple[Value, ...]:
    return tuple(record(life=life, first=first + 1) for life, first in lives)


def _grant(answer: Registered | None) -> Fn:
    """What of a grant the source goes by."""
    if answer is None:
        return record(high=0, term=0, lives=(), told=0)
    lives = _history(unfold(answer.lives, 0))
    return record(high=offer(answer, 0)[1] + 1, term=answer.term, lives=lives, told=answer.lives_term)


def _together(one: Registered | StableAck, other: Registered | StableAck) -> bool:
    """Whether two answers arrive in one step."""
    acks = isinstance(one, StableAck) and isinstance(other, StableAck)
    return acks and one.incarnation == other.incarnation


def _answers(queue: list[Registered | StableAck]) -> Iterator[Fn]:
    """Grants, and between them acknowledgements of one life as one."""
    for _, together in groupby(queue, lambda answer: (isinstance(answer, Registered), answer.incarnation)):
        first, *others = together
        if isinstance(first, Registered):
            yield from (record(kind="grant", life=one.incarnation, grant=_grant(one)) for one in (first, *others))
        else:
            acked = RangeSet()
            for ack in (first, *others):
                acked.add(ack.first, ack.last + 1)
            yield record(kind="acks", life=first.incarnation, numbers=_members(acked))


def _address(index: int) -> str:
    return f"store:{index + 1}"


def _store_config(constants: Constants, index: int) -> StoreConfig:
    kept = RepositoryConfig(
        size_threshold=0, size_limit=0, disk_limit=0, ack_interval_ns=0, source_activity_ns=LONG_NS
    )
    return StoreConfig(
        _address(index),
        1,
        repository=kept,
        check_ns=LONG_NS,
        keepalive_ns=0,
        retry_ns=LONG_NS,
        give_up_ns=LONG_NS,
        repairs=constants.repairs,
    )


def _source_config(constants: Constants, life: int) -> SourceConfig:
    sizes, groups = LAYOUTS[constants.Layout]
    return SourceConfig(
        topic="topic",
        incarnation=life,
        reply_to="source:1",
        transport="stream:1",
        stores=tuple(StoreSpec(_address(index), REG_ID, group) for index, group in enumerate(groups)),
        groups=GroupRules(sizes, Intragroup[constants.Inside.upper()], Intergroup[constants.Between.upper()]),
        consensus=Consensus[constants.Consensus.upper()],
        times=RegistrationTimes(INTERVAL_NS, LONG_NS, LONG_NS),
        flight_messages=constants.Flight,
        stability_timeout_ns=0,
        stability_lifetime_ns=0,
        check_ns=LONG_NS,
        sri_interval_ns=LONG_NS,
        sri_maximum=1,
        repairs=constants.repairs,
    )


# What must hold; the model states it more sharply, for it knows the rules between the groups.


def _stable_by_quorum(state: State) -> bool:
    """S1: what this life was told is stable is on the disks of a quorum."""
    return all(_kept(state, life, number) for life, number in _safe(state) if life == _of(state, "source")["life"])


def _no_reuse(state: State) -> bool:
    """S2: no life uses a number again that was stable."""
    source = _of(state, "source")
    life, resume = _int(source["life"]), _int(source["resume"])
    return not resume or all(number < resume for older, number in _safe(state) if older < life)


def _no_stable_lost(state: State) -> bool:
    """S3: what was ever stable is on the disks of a quorum."""
    return all(_kept(state, life, number) for life, number in _safe(state))


def _synced_first(state: State) -> bool:
    """P1: what a store acknowledged is on its disk, of this life."""
    life, acked = _of(state, "source")["life"], _of(state, "window")["acked"]
    assert isinstance(acked, tuple)
    return all(
        _item(disk["content"], _int(number)) == life
        for disk, numbers in zip(_all(state, "disk"), acked, strict=True)
        if isinstance(numbers, frozenset)
        for number in numbers
    )


def _retained_until_settled(state: State) -> bool:
    """C1: the source has a copy of everything that is not stable."""
    source, window, safe = _of(state, "source"), _of(state, "window"), set(_safe(state))
    gone = range(_int(source["resume"]), _int(window["trail"])) if source["resume"] else ()
    return all((source["life"], number) in safe for number in gone)


def _kept(state: State, life: int, number: int) -> bool:
    """Whether more than half of a group has it on disk."""
    has: dict[Value, list[bool]] = {}
    for disk in _all(state, "disk"):
        has.setdefault(disk["group"], []).append(_item(disk["content"], number) == life)
    return any(sum(held) >= quorum_of(len(held)) for held in has.values())


def _safe(state: State) -> Iterator[tuple[int, int]]:
    safe = state["safe"]
    assert isinstance(safe, frozenset)
    for pair in safe:
        yield (_int(_item(pair, 1)), _int(_item(pair, 2)))


def _of(state: State, name: str) -> Fn:
    value = state[name]
    assert isinstance(value, Fn)
    return value


def _all(state: State, name: str) -> tuple[Fn, ...]:
    values = state[name]
    assert isinstance(values, tuple)
    return tuple(value for value in values if isinstance(value, Fn))


def _item(values: Value, number: int) -> Value:
    assert isinstance(values, tuple)
    return values[number - 1]


def _int(value: Value) -> int:
    assert isinstance(value, int)
    return value


INVARIANTS: Mapping[str, Invariant] = {
    "StableByQuorum": _stable_by_quorum,
    "NoReuse": _no_reuse,
    "NoStableLost": _no_stable_lost,
    "SyncedFirst": _synced_first,
    "RetainedUntilSettled": _retained_until_settled,
}
