"""Keep the newest snapshot of every store with the last samples of its sources, and notify viewers of it.

One sweep reads all stores in turn, a few sources at a time on the store's loop. The monitor's own thread builds the
snapshots. After a sweep the board waits at least a second, and long enough that sweeps use a small share of one
processor, however many sources there are.

A row is updated in place, and full records exist only while a viewer looks at them. A sweep thus leaves no new objects
for the garbage collector, whose pauses would stop the stores' threads longer the more sources there are.

For the picture of one repository, a look at its source names the numbers that are missing or lost.
"""

import asyncio
from array import array
from collections.abc import Callable, Sequence
from functools import partial

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.store.status import RepositoryStatus
from stablecast.ops.monitor import health
from stablecast.ops.monitor.health import HealthFinding, Urgency
from stablecast.ops.monitor.waiting_times import StoreTimes, WaitingTimes
from stablecast.runtime import machine
from stablecast.store.observatory import SourceView, StoreView, WatchedStore

MAX_SPANS = 64
"""Most holes and most losses that are listed, the oldest first; counts include all."""

Span = tuple[int, int]
"""First and last number, both included."""


@attrs.frozen
class Spans:
    """Hold the spans of one source.

    Attributes:
        newest: Newest number known to exist.
        acknowledged: First number that the store has not acknowledged to the source.
        in_memory: Messages in memory; the others are on disk only.
        holes: Missing numbers that the store still requests.
        lost: Numbers that the store gave up.
    """

    newest: int
    acknowledged: int
    in_memory: int
    holes: tuple[Span, ...]
    lost: tuple[Span, ...]


async def spans(watched: WatchedStore, reg_id: int) -> Spans | None:
    """Return the current spans of one source; None if it is not registered."""

    async def look() -> Spans | None:
        repository = watched.store.machine.status.repositories.get(reg_id)
        return None if repository is None else spans_of(repository)

    return await watched.ask(look)


def spans_of(repository: RepositoryStatus) -> Spans:
    high, newest = repository.high, repository.newest
    _, in_memory, _ = repository.memory
    return Spans(
        newest=newest if high is None else max(newest, high),
        acknowledged=repository.acked,
        in_memory=in_memory,
        holes=_inclusive([] if repository.resume_point is None else repository.holes),
        lost=_inclusive(repository.lost.within(repository.trail, newest + 1)),
    )


def _inclusive(ranges: list[Span]) -> tuple[Span, ...]:
    return tuple((first, stop - 1) for first, stop in ranges[:MAX_SPANS])


SAMPLES = 90
"""Most samples of one figure."""


@attrs.define
class SampleSeries:
    """Keep the last `SAMPLES` values, the newest last."""

    values: "array[float]" = attrs.field(factory=lambda: array("f"))

    def add(self, value: float) -> None:
        """Append one sample and drop the oldest beyond `SAMPLES`."""
        self.values.append(value)
        if len(self.values) > SAMPLES:
            del self.values[0]

    @property
    def newest(self) -> float:
        """The last sample; 0 before the first."""
        return self.values[-1] if self.values else 0.0


ClientFinding = tuple[int, HealthFinding]
"""RegID of a client, and a finding about it."""
Reader = tuple[int, int, bool]
"""RegID of a receiver, its lag in messages, and whether it is active."""


def findings_of(view: SourceView) -> tuple[ClientFinding, ...]:
    """Return the findings of a source and its receivers, the most urgent first."""
    found = [(view.reg_id, finding) for finding in health.of_source(view)]
    found += [(one.reg_id, finding) for one in view.receivers for finding in health.of_receiver(one, view)]
    return tuple(sorted(found, key=lambda pair: -pair[1].level))


@attrs.define(eq=False)
class SourceRow:
    """Hold a source as of the last sweep.

    Attributes:
        lag: The lag of its slowest receiver.
        life: Which life of the source this is, the same at all of its stores.
        groups: Sizes of the groups of its stores; empty if not known.
        group: Index of the group that this store belongs to; -1 if not known.
    """

    reg_id: int
    topic: str = ""
    session_id: int = 0
    active: bool = True
    messages: int = 0
    lead: int = -1
    memory_bytes: int = 0
    disk_bytes: int = 0
    holes: int = 0
    lost: int = 0
    given_up: int = 0
    bursts: int = 0
    drops: int = 0
    received: int = 0
    naks: int = 0
    duplicates: int = 0
    lacking: tuple[int, ...] = (0, 0, 0)
    lacking_ns: int = 0
    refilled: int = 0
    lag: int = 0
    life: str = ""
    groups: tuple[int, ...] = ()
    group: int = -1
    level: Urgency = Urgency.OK
    findings: tuple[ClientFinding, ...] = ()
    readers: tuple[Reader, ...] = ()
    rates: SampleSeries = attrs.field(factory=SampleSeries)
    lags: SampleSeries = attrs.field(factory=SampleSeries)
    taken_ns: int = 0
    waits: WaitingTimes = attrs.field(factory=WaitingTimes)

    def update(self, view: SourceView, now_ns: int, times: StoreTimes | None = None) -> int:
        """Update the row from a view; return how many numbers are new, 0 at the first update.

        Waits that ended are added to `times`.
        """
        if times is not None:
            self.waits.update(view, times, self.taken_ns, now_ns)
        news = max(0, view.window[2] - self.lead) if self.taken_ns else 0
        if self.taken_ns and now_ns > self.taken_ns:
            self.rates.add(news * SECOND / (now_ns - self.taken_ns))
        self.taken_ns = now_ns
        self.topic, self.session_id, self.active = view.topic, view.session_id, view.active
        self.messages, self.lead = view.messages, view.window[2]
        self.memory_bytes, self.disk_bytes = view.memory[0], view.offsets[1]
        self.holes, self.lost, self.bursts, self.drops = view.holes, view.lost, view.bursts[2], view.drops[1]
        self.given_up = view.given_up
        self.lacking, self.lacking_ns, self.refilled = view.lacking, view.lacking_ns, view.refilled
        self.received = view.traffic.received
        self.life = f"{view.session_index:x}.{view.topic_index:x}"
        self.groups, self.group = view.groups, view.group
        self.naks, self.duplicates = view.traffic.naks, view.traffic.duplicates
        self.lag = max((receiver.lag for receiver in view.receivers), default=0)
        self.lags.add(self.lag)
        self.readers = tuple((one.reg_id, one.lag, one.active) for one in view.receivers)
        self.findings = findings_of(view)
        self.level = self.findings[0][1].level if self.findings else Urgency.OK
        return news


SWEEP_SECONDS = 1.0
"""Shortest pause between sweeps, in seconds."""
SWEEP_SHARE = 0.05
"""Largest share of a processor that sweeps use, measured on the monitor's thread.

The stores' part takes about the same.
"""
LONGEST_SECONDS = 30.0
"""Longest pause between sweeps, in seconds."""
STALE_NS = 120 * SECOND
"""Age in ns from which on a snapshot is stale, because the store's loop does not answer."""
CHUNK = 32
"""Sources that are read in one turn of a store's loop."""


@attrs.define
class StoreHistory:
    """Keep a store's last samples: rates of messages and retransmissions, worst lag, bytes that wait for the disk.

    `times` has the histograms since the start of the monitor.
    """

    rate: SampleSeries = attrs.field(factory=SampleSeries)
    served: SampleSeries = attrs.field(factory=SampleSeries)
    lag: SampleSeries = attrs.field(factory=SampleSeries)
    queued: SampleSeries = attrs.field(factory=SampleSeries)
    times: StoreTimes = attrs.field(factory=StoreTimes)


@attrs.frozen
class Snapshot:
    """Hold a store and its sources by RegID. `level` is that of the most urgent finding."""

    view: StoreView
    findings: tuple[HealthFinding, ...]
    rows: dict[int, SourceRow]
    level: Urgency
    history: StoreHistory


@attrs.define
class Board:
    """Hold the snapshots of all stores; used on the monitor's loop only. `sweeps` counts finished sweeps."""

    watched: Sequence[WatchedStore]
    clock: Callable[[], float] = attrs.field(factory=lambda: machine.clock.thread_seconds)
    stores: list[Snapshot] = attrs.field(factory=list)
    sweeps: int = 0
    over: bool = False
    _news: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def sweep(self) -> None:
        """Read every store once and notify viewers."""
        before = dict(enumerate(self.stores))
        self.stores = [await self._look(index, before.get(index)) for index in range(len(self.watched))]
        self.sweeps += 1
        self._announce()

    async def _look(self, index: int, before: Snapshot | None) -> Snapshot:
        """Return a new snapshot of one store.

        Each chunk is a separate call, so the store's loop runs its own work between chunks.
        """
        watched, known = self.watched[index], {} if before is None else before.rows
        history = StoreHistory() if before is None else before.history
        asked_at = machine.clock.monotonic_ns()
        history.times.loop_lag.add(await watched.call(machine.clock.monotonic_ns) - asked_at)
        view = await watched.view()
        rows: dict[int, SourceRow] = {}
        news = 0
        reg_ids = await watched.ask(partial(_reg_ids, watched))
        for at in range(0, len(reg_ids), CHUNK):
            found = await watched.ask(partial(look, watched, reg_ids[at : at + CHUNK]))
            now_ns = machine.clock.wall_ns()
            for source in found:
                row = rows[source.reg_id] = known.get(source.reg_id) or SourceRow(source.reg_id)
                news += row.update(source, now_ns, history.times)
            await asyncio.sleep(0)
        elapsed = 0 if before is None else view.taken_ns - before.view.taken_ns
        if elapsed > 0:
            history.rate.add(news * SECOND / elapsed)
        history.served.add(view.requests[2])
        history.lag.add(max((row.lag for row in rows.values()), default=0))
        history.queued.add(view.journal.queued_bytes)
        findings = tuple(health.of_store(view))
        level = max((health.worst(findings), *(row.level for row in rows.values())))
        return Snapshot(view, findings, rows, level, history)

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            started = self.clock()
            await self.sweep()
            took = self.clock() - started
            await asyncio.sleep(pause(took))

    async def news(self) -> None:
        """Wait for the next sweep, or the end."""
        if not self.over:
            await self._news.wait()

    def end(self) -> None:
        """Release every waiter; no sweep follows."""
        self.over = True
        self._announce()

    def _announce(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    @property
    def level(self) -> Urgency:
        """The level of the most urgent finding of all stores."""
        return max((store.level for store in self.stores), default=Urgency.OK)

    @property
    def age_ns(self) -> int:
        return max((machine.clock.wall_ns() - store.view.taken_ns for store in self.stores), default=0)


async def _reg_ids(watched: WatchedStore) -> list[int]:
    return sorted(watched.store.machine.status.repositories)


async def look(watched: WatchedStore, reg_ids: Sequence[int]) -> list[SourceView]:
    """Return the views of the sources that exist. Call it on the store's loop."""
    found = (watched.one_source(reg_id) for reg_id in reg_ids)
    return [view for view in found if view is not None]


def pause(took: float) -> float:
    """Return the pause in seconds after a sweep that used `took` seconds of a processor.

    >>> pause(0.01), pause(1.0), pause(5.0)
    (1.0, 19.0, 30.0)
    """
    return min(LONGEST_SECONDS, max(SWEEP_SECONDS, took * (1 / SWEEP_SHARE - 1)))
