"""Ten thousand sources in one store: the cost of its machine, the longest pauses, and the cost over sockets.

The machine alone gets the inputs of clients. Over sockets (`source_registration`) each source registers, announces
itself ten times and answers the store, which probes every source that is silent for 500 ms. The journal is synced.
"""

import asyncio
import gc
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any, Final

from stablecast.core.protocol.inputs import Arrived
from stablecast.core.protocol.messages import Keepalive, Role
from stablecast.runtime import garbage_collection
from tests.adapters.ops.monitor.staged_store import Staged
from tools.bench import source_registration
from tools.bench.scenario import Figures, Options, Scenario

SOURCES: Final = 10_000
FIRST_REG_ID: Final = 5000
WATCHED_SECONDS: Final = 10.0
A_LOOK: Final = 20
"""Divisor of the number of sources over sockets in a short run."""


class _Pauses:
    """The longest garbage collection (s)."""

    def __init__(self) -> None:
        self.longest = self._began = 0.0

    def __call__(self, phase: str, _: dict[str, Any]) -> None:
        now = time.process_time()
        if phase == "start":
            self._began = now
        else:
            self.longest = max(self.longest, now - self._began)


def registered(count: int) -> tuple[Staged, list[int]]:
    """Return a store with `count` sources, and their lives."""
    staged = Staged()
    return staged, [staged.source(FIRST_REG_ID + number, f"topic/{number}") for number in range(count)]


def _bytes(count: int) -> float:
    tracemalloc.start()
    kept = registered(count)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return used / count


async def _longest_turn(staged: Staged) -> float:
    """Return the longest turn of the loop while the monitor reads the store and all its sources (s)."""
    watched, longest, done = staged.watched(), 0.0, False

    async def look() -> None:
        nonlocal done
        await watched.view()
        await watched.sources()
        done = True

    looking = asyncio.ensure_future(look())
    while not done:
        began = time.process_time()
        await asyncio.sleep(0)
        longest = max(longest, time.process_time() - began)
    await looking
    return longest


def measured(count: int) -> Figures:
    """Measure the machine in this process, with the garbage collector set as in a daemon."""
    before, pauses = gc.get_threshold(), _Pauses()
    kept = _bytes(count)
    garbage_collection.keep_served()
    gc.callbacks.append(pauses)
    try:
        began = time.process_time()
        staged, lives = registered(count)
        registering = time.process_time() - began
        began = time.process_time()
        for number, life in enumerate(lives):
            staged.feed(Arrived(Keepalive(Role.SOURCE, life, FIRST_REG_ID + number, True, 0)))
        keeping = time.process_time() - began
        turn = asyncio.run(_longest_turn(staged))
    finally:
        gc.callbacks.remove(pauses)
        gc.unfreeze()
        gc.set_threshold(*before)
    return {
        "registration": registering / count * 1e6,
        "keepalive": keeping / count * 1e6,
        "bytes": kept,
        "turn": turn * 1e3,
        "pause": pauses.longest * 1e3,
    }


def sources(options: Options) -> Scenario:
    """Return the scenario with ten thousand sources, or fewer for fewer messages and with `--fast`."""
    count = min(SOURCES, options.messages)
    few = min(options.sources, count if count == SOURCES else count // A_LOOK)
    seconds = WATCHED_SECONDS * few / SOURCES

    def machine(_options: Options, _directory: Path) -> Figures:
        return measured(count)

    def over_sockets(contexts: int, transport: str, _options: Options, directory: Path) -> Figures:
        size = source_registration.Size(few, min(contexts, few), transport, seconds)
        return source_registration.measured(size, directory)

    return Scenario(
        "sources",
        f"a store with {count:,} registered sources: its machine; over sockets with {few:,}",
        "",
        {
            "machine": machine,
            "1 context, TCP": partial(over_sockets, 1, "tcp"),
            "100 contexts, TCP": partial(over_sockets, 100, "tcp"),
            "1 context, LBT-RU": partial(over_sockets, 1, "lbtru"),
        },
        {
            "seconds": "s until all are registered",
            "registration": "µs of the store's CPU to register one",
            "crowd": "µs of the sources' CPU to register one",
            "keepalive": "µs of the store's CPU to answer a keepalive",
            "living": "% of a core for the store, while all sources are silent",
            "theirs": "% of a core for all sources",
            "bytes": "bytes of the store's memory per source",
            "turn": "ms, longest turn while the monitor reads all sources",
            "pause": "ms, longest garbage collection",
        },
    )
