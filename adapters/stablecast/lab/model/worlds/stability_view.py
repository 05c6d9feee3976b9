"""What the stability model sees of its world, and what must hold of it; numbers begin at 1 there, at 0 in the core."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.history import FORGOTTEN, unfold
from stablecast.core.protocol.messages import Life, Registered, StableAck
from stablecast.core.protocol.quorum import quorum_of
from stablecast.core.protocol.resume_point import offer
from stablecast.core.registration.store_registration import RegistrationState
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.core.store.status import RepositoryStatus
from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.explorer import Invariant, State
from stablecast.lab.model.worlds.stability_stores import REG_ID, Constants, Process

STATES = {
    RegistrationState.REGISTERING: "asked",
    RegistrationState.REGISTERED: "registered",
    RegistrationState.RENEWING: "renewing",
    RegistrationState.UNRESPONSIVE: "away",
}
_NOTHING: Mapping[str, Value] = {
    "life": 0,
    "term": 0,
    "lives": (),
    "told": 0,
    "resume": 0,
    "trail": 1,
    "synced": frozenset(),
    "lost": frozenset(),
    "acked": 0,
    "high": 0,
    "asked": False,
    "grant": False,
    "dirty": False,
}
"""A store that knows no source."""


def source_view(source: SourceEndpoint | None, life: int) -> Fn:
    """Its life, whether it may send, where it resumed, and its lives."""
    if source is None:
        return record(life=life, state="DOWN", waited=False, resume=0, claim=0, term=0, again=False, lives=())
    status = source.status
    registering = source.state is SourceState.REGISTERING
    return record(
        life=life,
        state=source.state.name,
        waited=registering and status.first_interval_over,
        resume=0 if registering else source.resume_point + 1,
        claim=status.claim,
        term=status.term,
        again=status.proof > 0,
        lives=_history(status.lives),
    )


def registration_view(source: SourceEndpoint | None, index: int) -> Fn:
    """Where the source stands with a store, and what of its grant matters still."""
    if source is None:
        return record(state="none", grant=_grant(None), owes=False)
    status = source.status
    registration, owes = status.registrations[index], index in status.unproven
    return record(state=STATES[registration.state], grant=_remembered(source, registration.granted), owes=owes)


def aside_view(source: SourceEndpoint | None, life: int, stores: int) -> Fn:
    """A process that is cut off."""
    registrations = tuple(registration_view(source, index) for index in range(stores))
    return record(source=source_view(source, life), reg=registrations, window=window_view(source, stores))


def window_view(source: SourceEndpoint | None, stores: int) -> Fn:
    """What was sent and is not released."""
    if source is None or source.state is SourceState.REGISTERING:
        return record(trail=0, next=0, acked=(frozenset(),) * stores, stable=frozenset())
    status = source.status
    return record(
        trail=source.oldest_number + 1,
        next=source.next_number + 1,
        acked=tuple(_members(held) for held in status.acked),
        stable=_members(status.stable),
    )


def store_view(process: Process, constants: Constants) -> Fn:
    """What a store knows of the source and holds of it; for each number, of which life."""
    repository = process.repository
    if repository is None or process.machine is None:
        return record(**_NOTHING, up=process.machine is not None, content=_content({}, constants))
    client = process.machine.status.clients[REG_ID].client
    resume = repository.resume_point
    return record(
        up=True,
        life=repository.incarnation,
        term=client.term,
        lives=_history(repository.lives),
        told=repository.lives_term,
        resume=0 if resume is None else resume + 1,
        trail=repository.trail + 1,
        content=_content({n: process.written.messages.get(n, 0) for n in _numbers(repository.held)}, constants),
        synced=_members(repository.synced),
        lost=_members(repository.lost),
        acked=0 if resume is None else repository.acked + 1,
        high=0 if resume is None else highest(repository) + 1,
        asked=repository.late_join is not None,
        grant=process.granting,
        dirty=process.dirty,
    )


def disk_view(process: Process, constants: Constants) -> Fn:
    """What a crash leaves of it."""
    client = process.synced.client
    return record(
        group=constants.groups[process.index] + 1,
        life=0 if client is None else client.incarnation,
        term=0 if client is None else client.term,
        lives=() if client is None else _history(client.lives),
        told=0 if client is None else client.lives_term,
        content=_content(process.synced.messages, constants),
    )


def answers_view(queue: list[Registered | StableAck]) -> tuple[Fn, ...]:
    """Grants, and between them acknowledgements of one life as one."""
    told: list[Fn] = []
    for (granted, life), together in groupby(queue, lambda one: (isinstance(one, Registered), one.incarnation)):
        answers = list(together)
        if granted:
            grants = [_grant(one) for one in answers if isinstance(one, Registered)]
            told += [record(kind="grant", life=life, grant=grant) for grant in grants]
        else:
            acks = [one for one in answers if isinstance(one, StableAck)]
            numbers = frozenset(number + 1 for ack in acks for number in range(ack.first, ack.last + 1))
            told.append(record(kind="acks", life=life, numbers=numbers))
    return tuple(told)


def highest(repository: RepositoryStatus) -> int:
    """The newest number that the store knows of."""
    known = repository.high
    return repository.newest if known is None else max(known, repository.newest)


def _content(messages: Mapping[int, int], constants: Constants) -> tuple[int, ...]:
    return tuple(messages.get(number, 0) for number in range(constants.Numbers))


def _numbers(ranges: RangeSet) -> Iterator[int]:
    for first, stop in ranges:
        yield from range(first, stop)


def _members(ranges: RangeSet) -> frozenset[Value]:
    return frozenset(number + 1 for number in _numbers(ranges))


def _history(lives: Iterable[Life]) -> tuple[Value, ...]:
    """Return the lives in the model's numbers; there -1 stands for the lives that are forgotten."""
    return tuple(record(life=-1 if life == FORGOTTEN else life, first=first + 1) for life, first in lives)


def _grant(answer: Registered | None) -> Fn:
    """What of a grant the source goes by."""
    if answer is None:
        return record(high=0, term=0, lives=(), told=0)
    lives = _history(unfold(answer.lives, 0))
    return record(high=offer(answer, 0)[1] + 1, term=answer.term, lives=lives, told=answer.lives_term)


def _remembered(source: SourceEndpoint, answer: Registered | None) -> Fn:
    """Once a life has begun, only how many lives the store counts."""
    if answer is None or source.state is SourceState.REGISTERING:
        return _grant(answer)
    return record(high=0, term=answer.term, lives=(), told=0)


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


def _numbers_unique(state: State) -> bool:
    """S2 where an older life may come back: no number was stable for two lives."""
    safe = set(_safe(state))
    return len({number for _, number in safe}) == len(safe)


def _followed(disk: Fn, life: Value) -> bool:
    """Return whether the store was told of another life: then what this life believes of it no longer counts."""
    lives = disk["lives"]
    assert isinstance(lives, tuple)
    if not lives:
        return False
    last = lives[-1]
    assert isinstance(last, Fn)
    return last["life"] != life


def _synced_first(state: State) -> bool:
    """P1: what a store acknowledged is on its disk, of this life."""
    life, acked = _of(state, "source")["life"], _of(state, "window")["acked"]
    assert isinstance(acked, tuple)
    return all(
        _item(disk["content"], _int(number)) == life
        for disk, numbers in zip(_all(state, "disk"), acked, strict=True)
        if isinstance(numbers, frozenset) and not _followed(disk, life)
        for number in numbers
    )


def _no_dead_served(state: State) -> bool:
    """S3: a store that knows where this life begins serves no dead message in place of a stable one."""
    life = _of(state, "source")["life"]
    told = [(store, _int(store["resume"])) for store in _all(state, "store") if store["life"] == life]
    return all(
        _item(store["content"], number) in (0, stable)
        for store, resume in told
        for stable, number in _safe(state)
        if number < resume
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
    "NumbersUnique": _numbers_unique,
    "NoStableLost": _no_stable_lost,
    "NoDeadServed": _no_dead_served,
    "SyncedFirst": _synced_first,
    "RetainedUntilSettled": _retained_until_settled,
}
