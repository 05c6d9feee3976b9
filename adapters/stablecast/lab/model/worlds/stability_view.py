"""Abstract the world of `tla/Stability` and check its invariants. Numbers begin at 1 there, at 0 in the core."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from stablecast.core.protocol.history import FORGOTTEN, unfold
from stablecast.core.protocol.messages import Life, Registered, StableAck, StoreMemory
from stablecast.core.protocol.resume_point import offer
from stablecast.core.registration.store_registration import RegistrationState
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.core.store.status import RepositoryStatus
from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.store_process import SOURCE_ID, numbers_of
from stablecast.lab.model.worlds.stability_stores import StabilityConstants, StabilityStore

STATES = {
    RegistrationState.REGISTERING: "asked",
    RegistrationState.REGISTERED: "registered",
    RegistrationState.RENEWING: "renewing",
    RegistrationState.UNRESPONSIVE: "away",
}
_NOTHING: Mapping[str, Value] = {
    **dict.fromkeys(("known", "life", "term", "told", "resume", "acked", "high"), 0),
    **dict.fromkeys(("asked", "grant", "dirty"), False),
    **dict.fromkeys(("synced", "lost"), frozenset[Value]()),
    "lives": (),
    "trail": 1,
}
"""Variables of a store that knows no source."""


def source_view(source: SourceEndpoint | None, life: int) -> Fn:
    """Return the source's life, state, resume point and history."""
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
    """Return the state of a registration and the part of its grant that still matters."""
    if source is None:
        return record(state="none", grant=_grant(None), owes=False)
    status = source.status
    registration, owes = status.registrations[index], index in status.unproven
    return record(state=STATES[registration.state], grant=_remembered(source, registration.granted), owes=owes)


def aside_view(source: SourceEndpoint | None, life: int, stores: int) -> Fn:
    """Return the variables of a partitioned process."""
    registrations = tuple(registration_view(source, index) for index in range(stores))
    return record(source=source_view(source, life), reg=registrations, window=window_view(source, stores))


def window_view(source: SourceEndpoint | None, stores: int) -> Fn:
    """Return what was sent and is not released."""
    if source is None or source.state is SourceState.REGISTERING:
        return record(trail=0, next=0, acked=(frozenset(),) * stores, stable=frozenset())
    status = source.status
    return record(
        trail=source.oldest_number + 1,
        next=source.next_number + 1,
        acked=tuple(numbers_of(held, 1) for held in status.acked),
        stable=numbers_of(status.stable, 1),
    )


def store_view(process: StabilityStore, constants: StabilityConstants) -> Fn:
    """Return what a store knows of the source, with the life of each number it holds."""
    repository = process.repository
    if repository is None or process.machine is None:
        blank = process.machine is not None and _blank(process.machine.status.memory, constants)
        return record(**_NOTHING, up=process.machine is not None, blank=blank, content=_content({}, constants))
    client = process.machine.status.clients[SOURCE_ID].client
    resume = repository.resume_point
    return record(
        up=True,
        blank=client.memory is not StoreMemory.KEPT,
        known=client.known + 1,
        life=repository.incarnation,
        term=client.term,
        lives=_history(repository.lives),
        told=repository.lives_term,
        resume=0 if resume is None else resume + 1,
        trail=repository.trail + 1,
        content=_content({n: process.written.messages.get(n, 0) for n in numbers_of(repository.held)}, constants),
        synced=numbers_of(repository.synced, 1),
        lost=numbers_of(repository.lost, 1),
        acked=0 if resume is None else repository.acked + 1,
        high=0 if resume is None else highest(repository) + 1,
        asked=repository.late_join is not None,
        grant=process.granting,
        dirty=bool(process.unsynced),
    )


def disk_view(process: StabilityStore, constants: StabilityConstants) -> Fn:
    """Return what a crash leaves of a store."""
    client = process.synced.source
    return record(
        group=constants.groups[process.index] + 1,
        blank=_blank(process.synced.memory if client is None else client.memory, constants),
        known=0 if client is None else client.known + 1,
        life=0 if client is None else client.incarnation,
        term=0 if client is None else client.term,
        lives=() if client is None else _history(client.lives),
        told=0 if client is None else client.lives_term,
        content=_content(process.synced.messages, constants),
    )


def answers_view(queue: list[Registered | StableAck]) -> tuple[Fn, ...]:
    """Return grants in flight, with the acknowledgements of one life between them as one."""
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
    """Return the newest number that the store knows of."""
    known = repository.high
    return repository.newest if known is None else max(known, repository.newest)


def _content(messages: Mapping[int, int], constants: StabilityConstants) -> tuple[int, ...]:
    return tuple(messages.get(number, 0) for number in range(constants.Numbers))


def _history(lives: Iterable[Life]) -> tuple[Value, ...]:
    """Return lives in the model's numbers; there -1 stands for the forgotten lives."""
    return tuple(record(life=-1 if life == FORGOTTEN else life, first=first + 1) for life, first in lives)


def _grant(answer: Registered | None) -> Fn:
    """Return the part of a grant that the source uses."""
    if answer is None:
        return record(high=0, known=0, blank=False, term=0, lives=(), told=0)
    lives = _history(unfold(answer.lives, 0))
    return record(
        high=offer(answer, 0)[1] + 1,
        known=0 if answer.known is None else answer.known + 1,
        blank=answer.memory is not StoreMemory.KEPT,
        term=answer.term,
        lives=lives,
        told=answer.lives_term,
    )


def _remembered(source: SourceEndpoint, answer: Registered | None) -> Fn:
    """Return only the number of lives once a life has begun."""
    if answer is None or source.state is SourceState.REGISTERING:
        return _grant(answer)
    blank = answer.memory is not StoreMemory.KEPT
    return record(high=0, known=0, blank=blank, term=answer.term, lives=(), told=0)


def _blank(memory: StoreMemory, constants: StabilityConstants) -> bool:
    """Return whether a store that knows no source has no vote."""
    return memory is not StoreMemory.KEPT and "vote" in constants.Repairs
