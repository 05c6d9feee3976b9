"""The newest that is known of every store, and who waits for news of it.

One sweep looks at all stores, one after the other, a few sources at a time on the store's loop; what is made of that is
made here, on the monitor's own thread. The next sweep waits a second, and so long that sweeps take a small share of a
processor however many sources there are.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.ops.monitor import health
from stablecast.ops.monitor.health import Finding, Level
from stablecast.ops.monitor.source_rows import Row, Series
from stablecast.store.observatory import Observatory, SourceView, StoreView, WatchedStore

SWEEP_SECONDS = 1.0
"""From one sweep to the next, at least."""
SWEEP_SHARE = 0.05
"""Share of a processor that sweeps may take, as far as this thread can tell: the stores' part is about the same."""
LONGEST_SECONDS = 30.0
"""From one sweep to the next, at most."""
STALE_NS = 120 * SECOND
"""A look that is older than this says nothing any more: the store's loop does not answer."""
CHUNK = 32
"""Sources that are looked at in one turn of a store's loop."""


@attrs.define
class History:
    """A store's last minutes: messages and retransmissions a second, the worst lag, bytes that wait for the disk."""

    rate: Series = attrs.field(factory=Series)
    served: Series = attrs.field(factory=Series)
    lag: Series = attrs.field(factory=Series)
    queued: Series = attrs.field(factory=Series)


@attrs.frozen
class Snapshot:
    """A store and its sources by RegID. `level`: the most urgent of all that is in it."""

    view: StoreView
    findings: tuple[Finding, ...]
    rows: dict[int, Row]
    level: Level
    history: History


@attrs.define
class Board:
    """What is known; it belongs to the monitor's loop. `sweeps` counts the looks taken."""

    watched: Sequence[WatchedStore]
    clock: Callable[[], float] = time.thread_time
    stores: list[Snapshot] = attrs.field(factory=list)
    sweeps: int = 0
    over: bool = False
    observatory: Observatory = attrs.field(
        init=False, default=attrs.Factory(lambda self: Observatory(self.watched), takes_self=True)
    )
    _news: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def sweep(self) -> None:
        """Look at every store."""
        before = dict(enumerate(self.stores))
        self.stores = [await self._look(index, before.get(index)) for index in range(len(self.watched))]
        self.sweeps += 1
        self._announce()

    async def _look(self, index: int, before: Snapshot | None) -> Snapshot:
        """One store. Its thread runs between chunks, and so does whatever waits on this one."""
        watched, known = self.watched[index], {} if before is None else before.rows
        view = await self.observatory.store(index)
        rows: dict[int, Row] = {}
        news = 0
        reg_ids = await watched.ask(partial(_reg_ids, watched))
        for at in range(0, len(reg_ids), CHUNK):
            found = await watched.ask(partial(look, watched, reg_ids[at : at + CHUNK]))
            now_ns = time.time_ns()
            for source in found:
                row = rows[source.reg_id] = known.get(source.reg_id) or Row(source.reg_id)
                news += row.update(source, now_ns)
            await asyncio.sleep(0)
        history = History() if before is None else before.history
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
        """Sweep for ever."""
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
        """There will be no more news."""
        self.over = True
        self._announce()

    def _announce(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    @property
    def level(self) -> Level:
        """The most urgent finding of all stores."""
        return max((store.level for store in self.stores), default=Level.OK)

    @property
    def age_ns(self) -> int:
        """How old the oldest look is."""
        return max((time.time_ns() - store.view.taken_ns for store in self.stores), default=0)


async def _reg_ids(watched: WatchedStore) -> list[int]:
    return sorted(watched.store.machine.status.repositories)


async def look(watched: WatchedStore, reg_ids: Sequence[int]) -> list[SourceView]:
    """These sources, as far as they are there; to be asked on the store's loop."""
    found = (watched.one_source(reg_id) for reg_id in reg_ids)
    return [view for view in found if view is not None]


def pause(took: float) -> float:
    """How long to wait after a sweep that took so many seconds of a processor.

    >>> pause(0.01), pause(1.0), pause(5.0)
    (1.0, 19.0, 30.0)
    """
    return min(LONGEST_SECONDS, max(SWEEP_SECONDS, took * (1 / SWEEP_SHARE - 1)))
