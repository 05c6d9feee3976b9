"""A store as it stands: read-only questions for the daemon, the monitor, judges of traces, models and simulators.

Nothing is copied until it is asked for, so a daemon may look at one of ten thousand sources. A range set that is
returned is a copy. A status follows the store: ask again after an input.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import attrs

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.events import LackCause
from stablecast.core.protocol.messages import Deregister, Incarnation, LateJoinRequest, Refused, Register, StoreMemory
from stablecast.core.protocol.settings import repository_for
from stablecast.core.store.clients import ClientRecord
from stablecast.core.store.permission import with_terms
from stablecast.core.store.registry import Registry
from stablecast.core.store.repository import Repository
from stablecast.core.store.retransmission import RetransmissionService
from stablecast.core.store.sync_tickets import PendingSync

Spans = list[tuple[int, int]]
PartT = TypeVar("PartT")
ShownT = TypeVar("ShownT")


@attrs.frozen
class LazyMapping(Mapping[int, ShownT], Generic[PartT, ShownT]):
    """Parts by RegID, each shown through a function when it is asked for."""

    parts: Mapping[int, PartT]
    show: Callable[[PartT], ShownT]

    def __getitem__(self, key: int) -> ShownT:
        return self.show(self.parts[key])

    def __iter__(self) -> Iterator[int]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)


@attrs.frozen
class ClientStatus:
    """A registered client. `heard_at` (ns) is its newest sign of life; an `active` client holds its RegID."""

    client: Client
    active: bool
    heard_at: int

    @classmethod
    def of(cls, record: ClientRecord) -> "ClientStatus":
        return cls(record.client, record.lifetime.active, record.lifetime.heard_at)


@attrs.frozen
class RetransmissionStatus:
    """Counters of the retransmission service, in messages, since `reset_at` (ns; 0: since the start)."""

    received: int
    served: int
    dropped: int
    dropped_since_start: int
    reset_at: int


def _shown(read: Callable[[Repository], ShownT]) -> ShownT:
    """Return a property that reads a repository; its type is that of the value."""
    return property(lambda self: read(self._repository))  # type: ignore[return-value] # properties show as their values


@attrs.frozen
class LackStatus:
    """The messages of one source that are below their replication here.

    `messages`: their count by cause. `since`: when the first of them was missed (ns). `peers`: the stores that are
    asked. `asking`: a round of requests is under way.
    """

    messages: Mapping[LackCause, int]
    since: int
    peers: int
    asking: bool


@attrs.frozen
class RepositoryStatus:
    """One source's messages at a store. Numbers are extended; sizes count payload and, unless paced, headers."""

    _repository: Repository

    incarnation = _shown(lambda kept: kept.incarnation)
    """The source's current life."""
    resume_point = _shown(lambda kept: kept.resume_point)
    """The first number of the current life; None until the source announces it."""
    lives = _shown(lambda kept: tuple(kept.life.lives))
    """The lives whose messages are held, by the newest announcement."""
    lives_term = _shown(lambda kept: kept.life.term)
    """The term under which `lives` was announced."""
    terms = _shown(lambda kept: kept.terms)
    """The limits agreed with the source."""
    trail = _shown(lambda kept: kept.trail)
    """The oldest number that may still be kept."""
    newest = _shown(lambda kept: kept.newest)
    """The newest number held; one below the trail when there is none."""
    high = _shown(lambda kept: kept.filling.high)
    """The newest number known to exist; None until the source announces one."""
    acked = _shown(lambda kept: kept.acked)
    """The next number to acknowledge."""
    held = _shown(lambda kept: kept.held.copy())
    """The numbers kept."""
    synced = _shown(lambda kept: kept.window.synced.copy())
    """The numbers kept that are stable at this store."""
    lost = _shown(lambda kept: kept.filling.lost.copy())
    """The numbers given up."""
    owed = _shown(lambda kept: kept.acks.owed.copy())
    """Numbers released before they were written; they are acknowledged when their release is synced."""
    delayed = _shown(lambda kept: [(run.first, run.stop) for run in kept.window.delayed])
    """Ranges that wait for the write delay."""
    paused = _shown(lambda kept: kept.filling.paused)
    """True while recovery waits for room."""
    refilled = _shown(lambda kept: 0 if kept.refill is None else kept.refill.gained)
    """Messages that came back from other stores, or from the source after it gave them up, since the start."""
    messages = _shown(lambda kept: kept.held.total())
    """Messages kept."""
    unsynced_messages = _shown(lambda kept: kept.held.total() - kept.window.synced.total())
    """Messages kept that are not stable yet."""
    memory = _shown(
        lambda kept: (kept.window.mem_trail, kept.window.memory.messages, kept.window.bytes(kept.window.memory))
    )
    """The oldest number in memory, and the messages and bytes there."""
    disk_bytes = _shown(lambda kept: kept.window.bytes(kept.window.disk))
    """Bytes on disk, or on their way there."""
    sync = _shown(lambda kept: kept.window.sync(kept.filling.lost))
    """The newest number synced, the newest given to the disk, and the newest up to which all is synced or lost."""

    @property
    def requested(self) -> Spans:
        """Missing ranges that are requested, or will be."""
        requests = self._repository.filling.requests
        return [*requests.wanted, *((one.start, one.stop) for one in (*requests.retrying, *requests.asked))]

    @property
    def holes(self) -> Spans:
        """Missing ranges that are not given up; none where no messages are kept."""
        filling, kept = self._repository.filling, self._repository
        if filling.high is None or not kept.terms.keeps:
            return []
        return filling.missing(
            kept.held, kept.trail if kept.resume_point is None else max(kept.resume_point, kept.trail)
        )

    @property
    def late_join(self) -> LateJoinRequest | None:
        """The open question to the source about what it retains, or None."""
        filling = self._repository.filling
        if filling.asked_at is None:
            return None
        return LateJoinRequest(filling.requests.incarnation, filling.reg_id, filling.requests.reply_to)

    @property
    def lacking(self) -> LackStatus | None:
        """The messages that other stores may have and this one lacks; None: there is none."""
        refill = self._repository.refill
        if refill is None or refill.since is None:
            return None
        messages = {LackCause(cause): ranges.total() for cause, ranges in sorted(refill.lacking.items())}
        return LackStatus(messages, refill.since, len(refill.peers), refill.active)

    @property
    def lacking_numbers(self) -> Spans:
        """The numbers that are lacking, ascending."""
        refill = self._repository.refill
        if refill is None:
            return []
        return sorted(part for ranges in refill.lacking.values() for part in ranges)

    @property
    def losses(self) -> tuple[int, int, int, int, int]:
        """Since the start: messages lost, those in bursts, bursts, messages dropped; last number of the last burst."""
        filling = self._repository.filling
        counts = (filling.losses, filling.burst_losses, filling.bursts, self._repository.dropped)
        return (*counts, filling.newest_burst or 0)

    def abstract(self) -> tuple[object, ...]:
        """Return the values that tell states of a model apart."""
        filling, repository = self._repository.filling, self._repository
        waiting = (filling.high, filling.asked_at, tuple(filling.lost), filling.requests.abstract())
        return (repository.abstract(), waiting, tuple(repository.life.lives), repository.life.term, repository.trail)


@attrs.frozen
class StoreStatus:
    """The clients of a store, its repositories by the RegID of their source, and its service."""

    _registry: Registry
    _serving: RetransmissionService

    def with_terms(self, refusal: Refused, request: Register) -> Refused:
        """Return the refusal of a client with the terms that it would have been granted."""
        source = self._registry.repositories.get(request.source_reg_id)
        holder, terms = self._registry.clients.holder(request), None if source is None else source.terms
        return with_terms(refusal, request, holder, terms, repository_for(self._registry.config, request.topic))

    @property
    def clients(self) -> Mapping[int, ClientStatus]:
        """The clients by RegID, in the order in which they registered."""
        return LazyMapping(self._registry.clients.records, ClientStatus.of)

    @property
    def repositories(self) -> Mapping[int, RepositoryStatus]:
        return LazyMapping(self._registry.repositories, RepositoryStatus)

    def holder(self, reg_id: int, incarnation: Incarnation | None = None) -> Client | None:
        """Return the client with a RegID, or else the source whose current life this is."""
        records, streams = self._registry.clients.records, self._registry.streams
        record = records.get(reg_id) or records.get(0 if incarnation is None else streams.get(incarnation, 0))
        return None if record is None else record.client

    def leaver(self, request: Deregister) -> Client | None:
        """Return the client that a deregistration would end; None if there is none."""
        record = self._registry.leaver(request)
        return None if record is None else record.client

    def receivers_of(self, source_reg_id: int) -> list[ClientStatus]:
        """Return the receivers of one source, by RegID."""
        return [ClientStatus.of(record) for record in self._registry.clients.receivers_of(source_reg_id)]

    def of_stream(self, incarnation: Incarnation) -> RepositoryStatus | None:
        """Return the repository of the source whose current life this is."""
        repository = self._registry.of_stream(incarnation)
        return None if repository is None else RepositoryStatus(repository)

    @property
    def waiting(self) -> tuple[PendingSync, ...]:
        """The answers and confirmations that wait for the disk, oldest first."""
        return tuple(self._registry.tickets.waiting)

    @property
    def newest_ticket(self) -> int:
        return self._registry.tickets.last

    @property
    def repository_due(self) -> int | None:
        """The time at which a repository needs attention (ns), or None."""
        return self._registry.agenda.next()

    @property
    def muted_until(self) -> int | None:
        """Until when no registration is granted (ns), because an earlier grant may be forgotten; None: no such time."""
        return self._registry.mute_until

    @property
    def generation(self) -> int:
        return self._registry.generation

    @property
    def memory(self) -> StoreMemory:
        """The store's knowledge of sources that never registered here since its records began."""
        return self._registry.memory

    def rates(self, now: int, started_at: int = 0) -> tuple[float, float, float]:
        """Return messages a second that were requested, served and dropped since the reset, or the start (P-905)."""
        return self._serving.rates(now, started_at)

    @property
    def service(self) -> RetransmissionStatus:
        one = self._serving
        return RetransmissionStatus(one.received, one.served, one.dropped, one.dropped_since_start, one.reset_at)
