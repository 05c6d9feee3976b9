"""A store as it stands: read-only questions for the daemon, the monitor, judges of traces, models and simulators.

Nothing is copied until it is asked for, so a daemon may look at one of ten thousand sources. A range set that is
returned is a copy. A status follows the store: ask again after an input.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Incarnation, LateJoinRequest, Life
from stablecast.core.store.clients import ClientRecord
from stablecast.core.store.registry import Registry
from stablecast.core.store.repository import Repository
from stablecast.core.store.retention_terms import Terms
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
        """Return the status of one client."""
        return cls(record.client, record.lifetime.active, record.lifetime.heard_at)


@attrs.frozen
class RetransmissionStatus:
    """Counters of the retransmission service, in messages, since `reset_at` (ns; 0: since the start)."""

    received: int
    served: int
    dropped: int
    dropped_since_start: int
    reset_at: int


@attrs.frozen
class RepositoryStatus:
    """One source's messages at a store. Numbers are extended; sizes count payload and, unless paced, headers."""

    _repository: Repository

    @property
    def incarnation(self) -> Incarnation:
        """The source's current life."""
        return self._repository.incarnation

    @property
    def resume_point(self) -> int | None:
        """The first number of the current life; None until the source announces it."""
        return self._repository.resume_point

    @property
    def lives(self) -> tuple[Life, ...]:
        """The lives whose messages are held, by the newest announcement."""
        return tuple(self._repository.life.lives)

    @property
    def lives_term(self) -> int:
        """The term under which `lives` was announced."""
        return self._repository.life.term

    @property
    def terms(self) -> Terms:
        """The limits agreed with the source."""
        return self._repository.terms

    @property
    def trail(self) -> int:
        """The oldest number that may still be kept."""
        return self._repository.trail

    @property
    def newest(self) -> int:
        """The newest number held; one below the trail when there is none."""
        return self._repository.newest

    @property
    def high(self) -> int | None:
        """The newest number known to exist; None until the source announces one."""
        return self._repository.filling.high

    @property
    def acked(self) -> int:
        """The next number to acknowledge."""
        return self._repository.acked

    @property
    def held(self) -> RangeSet:
        """The numbers kept."""
        return self._repository.held.copy()

    @property
    def synced(self) -> RangeSet:
        """The numbers kept that are stable at this store."""
        return self._repository.window.synced.copy()

    @property
    def lost(self) -> RangeSet:
        """The numbers given up."""
        return self._repository.filling.lost.copy()

    @property
    def owed(self) -> RangeSet:
        """Numbers released before they were written; they are acknowledged when their release is synced."""
        return self._repository.acks.owed.copy()

    @property
    def delayed(self) -> Spans:
        """Ranges that wait for the write delay."""
        return [(run.first, run.stop) for run in self._repository.window.delayed]

    @property
    def requested(self) -> Spans:
        """Missing ranges that are asked for, or will be."""
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
    def paused(self) -> bool:
        """Whether recovery waits for room."""
        return self._repository.filling.paused

    @property
    def messages(self) -> int:
        """Messages kept."""
        return self._repository.held.total()

    @property
    def unsynced_messages(self) -> int:
        """Messages kept that are not stable yet."""
        return self._repository.held.total() - self._repository.window.synced.total()

    @property
    def memory(self) -> tuple[int, int, int]:
        """The oldest number in memory, and the messages and bytes there."""
        window = self._repository.window
        return (window.mem_trail, window.memory.messages, window.bytes(window.memory))

    @property
    def disk_bytes(self) -> int:
        """Bytes on disk, or on their way there."""
        return self._repository.window.bytes(self._repository.window.disk)

    @property
    def sync(self) -> tuple[int, int, int]:
        """The newest number synced, the newest given to the disk, and the newest up to which all is synced or lost."""
        return self._repository.window.sync(self._repository.filling.lost)

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

    @property
    def clients(self) -> Mapping[int, ClientStatus]:
        """The clients by RegID, in the order in which they registered."""
        return LazyMapping(self._registry.clients.records, ClientStatus.of)

    @property
    def repositories(self) -> Mapping[int, RepositoryStatus]:
        """The repositories by RegID."""
        return LazyMapping(self._registry.repositories, RepositoryStatus)

    def receivers_of(self, source_reg_id: int) -> list[ClientStatus]:
        """Return the receivers of one source, by RegID."""
        return [ClientStatus.of(record) for record in self._registry.clients.receivers_of(source_reg_id)]

    def of_stream(self, incarnation: Incarnation) -> RepositoryStatus | None:
        """Return the repository of the source whose current life this is."""
        repository = self._registry.of_stream(incarnation)
        return None if repository is None else RepositoryStatus(repository)

    @property
    def waiting(self) -> tuple[PendingSync, ...]:
        """What waits for the disk, oldest first."""
        return tuple(self._registry.tickets.waiting)

    @property
    def newest_ticket(self) -> int:
        """The ticket of the newest write."""
        return self._registry.tickets.last

    @property
    def repository_due(self) -> int | None:
        """When a repository needs attention (ns)."""
        return self._registry.agenda.next()

    @property
    def muted_until(self) -> int | None:
        """Until when no registration is granted (ns), because an earlier grant may be forgotten; None: no such time."""
        return self._registry.mute_until

    def rates(self, now: int) -> tuple[int, int, int]:
        """Return messages a second that were requested, served and dropped since the reset (P-905)."""
        return self._serving.rates(now)

    @property
    def service(self) -> RetransmissionStatus:
        """The counters of the retransmission service."""
        one = self._serving
        return RetransmissionStatus(one.received, one.served, one.dropped, one.dropped_since_start, one.reset_at)
