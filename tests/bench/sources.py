"""Ten thousand sources registered in one store: what its machine costs, how long anybody has to wait for it, and what a
store costs that has them over sockets, in one context or in a hundred.

The machine alone is told what clients say. Over sockets (`crowd`) each source registers, announces itself ten times and
answers the store, which asks whoever is silent for 500 ms; its journal is synced.
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
from tests.adapters.ops.monitor.staged import Staged
from tests.bench import crowd
from tests.bench.scenario import Figures, Options, Scenario

SOURCES: Final = 10_000
FIRST_REG_ID: Final = 5000
WATCHED_SECONDS: Final = 10.0
A_LOOK: Final = 20
"""Over sockets a short run has so much fewer of them."""


class _Pauses:
    """How long the longest collection of cycles took."""

    def __init__(self) -> None:
        self.longest = self._began = 0.0

    def __call__(self, phase: str, _: dict[str, Any]) -> None:
        now = time.process_time()
        if phase == "start":
            self._began = now
        else:
            self.longest = max(self.longest, now - self._began)


def registered(count: int) -> tuple[Staged, list[int]]:
    """A store with so many sources, and their lives."""
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
    """The longest that the loop is held up while the store and all its sources are looked at."""
    watched, longest, done = staged.watched(), 0.0, False

    async def look() -> None:
        nonlocal done
        await watched.view()
        await watched.all_sources()
        done = True

    looking = asyncio.ensure_future(look())
    while not done:
        began = time.process_time()
        await asyncio.sleep(0)
        longest = max(longest, time.process_time() - began)
    await looking
    return longest


def measured(count: int) -> Figures:
    """CPU of a daemon's process; its collector is set as a daemon sets it."""
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
    """Ten thousand of them; fewer where fewer messages are asked for than that, or over sockets a look is enough."""
    count = min(SOURCES, options.messages)
    few = min(options.sources, count if count == SOURCES else count // A_LOOK)
    seconds = WATCHED_SECONDS * few / SOURCES

    def machine(_options: Options, _directory: Path) -> Figures:
        return measured(count)

    def crowded(contexts: int, transport: str, _options: Options, directory: Path) -> Figures:
        return crowd.measured(crowd.Size(few, min(contexts, few), transport, seconds), directory)

    return Scenario(
        "sources",
        f"a store with {count:,} registered sources: its machine; over sockets with {few:,}",
        "",
        {
            "machine": machine,
            "1 context, TCP": partial(crowded, 1, "tcp"),
            "100 contexts, TCP": partial(crowded, 100, "tcp"),
            "1 context, LBT-RU": partial(crowded, 1, "lbtru"),
        },
        {
            "seconds": "s until all are registered",
            "registration": "µs of the store's CPU to register one",
            "crowd": "µs of its own process's CPU to register one",
            "keepalive": "µs of the store's CPU to answer a keepalive",
            "living": "% of a core for the store, while all are silent",
            "theirs": "% of a core for all of them",
            "bytes": "bytes of the store's memory for one",
            "turn": "ms, longest turn while all are looked at",
            "pause": "ms, longest collection",
        },
    )
