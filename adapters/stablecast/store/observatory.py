"""Views of running stores: the items of the documented monitor, as plain records (P-901..P-923).

Each store makes its views on its own loop, a few sources at a time, and they are kept for a second. So monitors take a
bounded share of the loop, however often they ask.

Numbers are extended. Instants are nanoseconds of the Unix epoch, derived from the machine's clock.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.events import LackCause
from stablecast.core.protocol.messages import Pace, Role
from stablecast.core.protocol.settings import RepositoryType
from stablecast.core.store.status import ClientStatus, LackStatus, RepositoryStatus
from stablecast.runtime import machine, tls
from stablecast.store.store_views import SHOWN_LACKS, JournalView, ReceiverView, SourceView, StoreView, Traffic
from stablecast.transports import codec

if TYPE_CHECKING:
    from stablecast.store.store import Store

__all__ = ["JournalView", "ReceiverView", "SourceView", "StoreView", "Traffic", "WatchedStore"]

FRESH_NS = SECOND
"""Age (ns) at which a view is made anew."""

CHUNK = 64
"""Sources viewed in one turn of a store's loop."""

NAMES_CHUNK = 1024
"""Sources whose topics are listed in one turn of a store's loop."""

LAST_REPORTS = 50
"""Newest reports that the view of a store has."""

REPOSITORIES = {
    RepositoryType.NO_CACHE: "no-cache",
    RepositoryType.MEMORY: "memory",
    RepositoryType.DISK: "disk",
    RepositoryType.REDUCED_FD: "reduced-fd",
}


@attrs.frozen
class EpochClock:
    """An instant of the machine's clock, and the offset from there to the Unix epoch, in ns."""

    now: int
    offset: int

    @classmethod
    def read(cls) -> "EpochClock":
        now = machine.clock.monotonic_ns()
        return cls(now, machine.clock.wall_ns() - now)


def receiver_view(
    store: "Store", known: ClientStatus, source: ClientStatus, repository: RepositoryStatus, clock: EpochClock
) -> ReceiverView:
    client = known.client
    session_index, topic_index = codec.split(client.incarnation)
    return ReceiverView(
        client.reg_id,
        client.reply_to,
        session_index,
        topic_index,
        client.topic,
        client.session_id,
        client.source_reg_id,
        source.client.session_id,
        client.acknowledged,
        max(0, repository.newest - max(client.acknowledged, repository.trail - 1)),
        known.active,
        client.pace.name.lower(),
        known.heard_at + clock.offset,
        not known.active and store.refuses(client.reply_to),
    )


def _given_up(repository: RepositoryStatus) -> int:
    """Return how many numbers are lost still. Numbers below the trail were released by a rule, or never kept."""
    return sum(stop - first for first, stop in repository.lost.within(repository.trail, repository.newest + 1))


def source_view(store: "Store", known: ClientStatus, repository: RepositoryStatus, clock: EpochClock) -> SourceView:
    client, terms = known.client, repository.terms
    session_index, topic_index = codec.split(client.incarnation)
    mem_trail, _, memory_bytes = repository.memory
    lost, burst_lost, bursts, dropped, newest_burst = repository.losses
    lacking = repository.lacking
    traffic = store.traffic_of(client.incarnation)
    groups = traffic.groups or client.group_sizes
    return SourceView(
        reg_id=client.reg_id,
        address=client.reply_to,
        transport=client.transport,
        session_index=session_index,
        topic_index=topic_index,
        topic=client.topic,
        session_id=client.session_id,
        active=known.active,
        last_activity_ns=known.heard_at + clock.offset,
        repository=REPOSITORIES[terms.kind],
        paced=terms.pace is not Pace.SOURCE,
        messages=repository.messages,
        window=(repository.trail, mem_trail, repository.newest),
        memory=(memory_bytes, terms.size_threshold, terms.size_limit),
        age_threshold_s=terms.age_ns // SECOND,
        sync=repository.sync,
        in_progress=(repository.unsynced_messages, store.reads_of(client.reg_id)),
        offsets=(0, *((repository.disk_bytes, terms.disk_limit) if terms.written else (0, 0))),
        bursts=(0, newest_burst, bursts),
        drops=(0, dropped),
        holes=sum(stop - first for first, stop in repository.holes),
        lost=lost,
        burst_lost=burst_lost,
        given_up=_given_up(repository) if store.machine.config.refill else lost,
        lacking=lacks_of(lacking),
        lacking_ns=0 if lacking is None else max(0, machine.clock.monotonic_ns() - lacking.since),
        refilled=repository.refilled,
        replicas=sum(groups) or len(client.stores),
        proxied=client.election is not None,
        traffic=traffic,
        receivers=tuple(
            receiver_view(store, reader, known, repository, clock)
            for reader in store.machine.status.receivers_of(client.reg_id)
        ),
        groups=groups,
        group=_group_of(client, traffic, len(groups)),
        stores=tuple(entry.address for entry in client.stores),
        ended=not known.active and store.refuses(client.reply_to),
        lacks=tuple((first, stop - 1) for first, stop in repository.lacking_numbers[:SHOWN_LACKS]),
    )


def lacks_of(lacking: LackStatus | None) -> tuple[int, ...]:
    """Return the messages below their replication, by cause in the order of `LackCause`."""
    return tuple(0 if lacking is None else lacking.messages.get(cause, 0) for cause in LackCause)


def _group_of(client: Client, traffic: Traffic, groups: int) -> int:
    """Return the index of the group that this store has in a source's configuration, -1 if not known."""
    members = dict(traffic.members) or {entry.index: entry.group for entry in client.stores}
    # An SRI is a peer's input: its entries may name a group that it does not have.
    group = members.get(client.store_index, 0 if groups == 1 else -1)
    return group if group < groups else -1


def store_view(store: "Store", index: int, topics: tuple[tuple[str, int, int], ...]) -> StoreView:
    """Return the view of a store; `topics` has topic, RegID and session id of each source."""
    clock = EpochClock.read()
    config, status = store.config, store.machine.status
    mute, service = status.muted_until, status.service
    since = (clock.now - (service.reset_at or store.started_at)) // SECOND
    return StoreView(
        index=index,
        name=store.settings.name,
        address=store.address,
        cache_directory=str(store.settings.directory),
        state_directory=str(store.settings.state_directory or store.settings.directory),
        taken_ns=clock.now + clock.offset,
        started_ns=store.started_at + clock.offset,
        requests=(config.request_rate, *status.rates(clock.now, store.started_at), since, service.dropped_since_start),
        patterns=tuple(
            (rule.pattern, rule.kind.name.lower(), REPOSITORIES[rule.repository.kind]) for rule in config.topics
        ),
        topics=topics,
        sources=len(status.repositories),
        receivers=len(status.clients) - len(status.repositories),
        connections=store.connections,
        proxies=store.proxies,
        draining=store.draining,
        failure=str(store.failed.result()) if store.failed.done() else "",
        muted_for_ns=0 if mute is None else max(0, mute - clock.now),
        journal=store.journal_view(),
        oddities={**store.oddities, "tls-failed": tls.refused.total()},
        sessions=store.sessions,
        events=dict(store.events),
        reports=tuple(store.reports[-LAST_REPORTS:]),
        expired=store.expired,
        room=(store.room.free, store.room.least),
        clients=(len(status.clients), store.settings.limits.clients),
        asked=(service.received, service.served),
    )


ValueT = TypeVar("ValueT")


async def _never_parked() -> bool:
    return False


class WatchedStore:
    """One store for monitors, and the loop that it runs on. Any thread and any loop may ask.

    Attributes:
        store: The store. A parked store that returns is another object.
        index: Its number in the daemon.
        resume: Starts a parked store again, and returns False if it is not parked.
    """

    def __init__(self, store: "Store", loop: asyncio.AbstractEventLoop, index: int) -> None:
        """Watch store number `index` of a daemon, which runs on `loop`."""
        self.store = store
        self.index = index
        self.resume: Callable[[], Coroutine[Any, Any, bool]] = _never_parked
        self._loop = loop
        self._kept: dict[str, tuple[Store, int, object]] = {}

    async def ask(self, question: Callable[[], Coroutine[Any, Any, ValueT]]) -> ValueT:
        """Run a coroutine on the store's loop and return its result. Any loop may call this."""
        if self._loop is asyncio.get_running_loop():
            return await question()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(question(), self._loop))

    async def call(self, function: Callable[[], ValueT]) -> ValueT:
        """Call a function on the store's loop and return its result. Any loop may call this."""

        async def run() -> ValueT:
            return function()

        return await self.ask(run)

    async def view(self) -> StoreView:
        """Return the store, at most a second old."""
        return await self._fresh("store", self._view)

    async def sources(self) -> tuple[SourceView, ...]:
        """Return all of its sources by RegID, at most a second old."""
        return await self._fresh("sources", self._all_sources)

    async def source(self, reg_id: int) -> SourceView | None:
        """Return one source as it is now, None if the store has no such source."""
        return await self.call(lambda: self.one_source(reg_id))

    async def receiver(self, reg_id: int) -> ReceiverView | None:
        """Return one receiver as it is now, None if the store has no such receiver."""
        return await self.call(lambda: self.one_receiver(reg_id))

    async def reset_rates(self) -> None:
        """Restart the count of retransmission requests (P-906)."""
        await self.call(lambda: self.store.machine.reset_rates(machine.clock.monotonic_ns()))

    async def evict(self, reg_id: int) -> bool:
        """Forget a client as if it had deregistered; return False if the store does not know it."""
        return await self.call(lambda: self.store.evict(reg_id))

    async def scrub(self) -> None:
        """Let the store verify its whole journal now, beside its service."""
        await self.call(self.store.scrub)

    async def drain(self, on: bool) -> None:
        """Refuse new clients while `on`; registered clients go on."""
        await self.call(lambda: setattr(self.store, "draining", on))

    async def _fresh(self, what: str, make: Callable[[], Coroutine[Any, Any, ValueT]]) -> ValueT:
        now = machine.clock.monotonic_ns()
        store, at, kept = self._kept.get(what, (self.store, now - FRESH_NS, None))
        if store is self.store and now - at < FRESH_NS:
            return kept  # type: ignore[return-value]  # one kind of record for each `what`
        store, value = self.store, await self.ask(make)
        self._kept[what] = (store, machine.clock.monotonic_ns(), value)
        return value

    async def _view(self) -> StoreView:
        topics: list[tuple[str, int, int]] = []
        async for chunk in self._in_chunks(NAMES_CHUNK):
            clients = self.store.machine.status.clients
            known = [one.client for reg_id in chunk if (one := clients.get(reg_id)) is not None]
            topics += [(client.topic, client.reg_id, client.session_id) for client in known]
        return store_view(self.store, self.index, tuple(topics))

    async def _all_sources(self) -> tuple[SourceView, ...]:
        found: list[SourceView] = []
        async for chunk in self._in_chunks(CHUNK):
            found += [view for reg_id in chunk if (view := self.one_source(reg_id)) is not None]
        return tuple(found)

    async def _in_chunks(self, size: int) -> AsyncIterator[list[int]]:
        """Yield the RegIDs of the sources. The loop turns after each chunk, so some sources may have gone."""
        reg_ids = sorted(self.store.machine.status.repositories)
        for at in range(0, len(reg_ids), size):
            yield reg_ids[at : at + size]
            await asyncio.sleep(0)

    def one_source(self, reg_id: int) -> SourceView | None:
        status = self.store.machine.status
        repository, known = status.repositories.get(reg_id), status.clients.get(reg_id)
        if repository is None or known is None:
            return None
        return source_view(self.store, known, repository, EpochClock.read())

    def one_receiver(self, reg_id: int) -> ReceiverView | None:
        status = self.store.machine.status
        known = status.clients.get(reg_id)
        if known is None or known.client.role is not Role.RECEIVER:
            return None
        source_reg_id = known.client.source_reg_id
        source, repository = status.clients[source_reg_id], status.repositories[source_reg_id]
        return receiver_view(self.store, known, source, repository, EpochClock.read())
