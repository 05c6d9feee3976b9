"""Keep the newest snapshot of every store, and notify viewers of it.

One sweep reads all stores in turn, a few sources at a time on the store's loop. The monitor's own thread builds the
snapshots. After a sweep the board waits at least a second, and long enough that sweeps use a small share of one
processor, however many sources there are.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.ops.monitor import health
from stablecast.ops.monitor.health import HealthFinding, Urgency
from stablecast.ops.monitor.source_rows import SampleSeries, SourceRow
from stablecast.runtime import machine
from stablecast.store.observatory import Observatory, SourceView, StoreView, WatchedStore

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
    """Keep a store's last samples: rates of messages and retransmissions, worst lag, bytes that wait for the disk."""

    rate: SampleSeries = attrs.field(factory=SampleSeries)
    served: SampleSeries = attrs.field(factory=SampleSeries)
    lag: SampleSeries = attrs.field(factory=SampleSeries)
    queued: SampleSeries = attrs.field(factory=SampleSeries)


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
    observatory: Observatory = attrs.field(
        init=False, default=attrs.Factory(lambda self: Observatory(self.watched), takes_self=True)
    )
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
        view = await self.observatory.store(index)
        rows: dict[int, SourceRow] = {}
        news = 0
        reg_ids = await watched.ask(partial(_reg_ids, watched))
        for at in range(0, len(reg_ids), CHUNK):
            found = await watched.ask(partial(look, watched, reg_ids[at : at + CHUNK]))
            now_ns = machine.clock.wall_ns()
            for source in found:
                row = rows[source.reg_id] = known.get(source.reg_id) or SourceRow(source.reg_id)
                news += row.update(source, now_ns)
            await asyncio.sleep(0)
        history = StoreHistory() if before is None else before.history
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
        """The age of the oldest snapshot, in ns."""
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
