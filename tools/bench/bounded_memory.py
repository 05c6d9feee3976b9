"""The memory of a store while many small messages pass through a repository with limits. It must not grow.

The benchmark runs the machine, the memory and the journal of a store without sockets. It writes to the disk without
syncs. The long form takes some minutes: `make bench ARGS="bounded --messages 100000000 --size 16 --rounds 1"`.

A process does not return memory of small objects to the system. Its memory is therefore that of its worst moment: a
stalled disk with a full queue. A run seems to grow if this moment comes late, on a busy machine. This run starts with
it: the disk stands still until the queue is full.
"""

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import uvloop

from stablecast.core.machine.serial import wire
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Data, Persisted
from stablecast.core.protocol.settings import RepositoryConfig
from stablecast.runtime.kept_runs import Tokens
from stablecast.store.journal import Disk, Journal
from stablecast.store.message_storage import MessageStorage
from stablecast.transports.codec.lbttcp import Run
from tools.bench.core_costs import registered
from tools.bench.scenario import Figures, Options, Scenario

RUN_MESSAGES: Final = 64
HEADER_BYTES: Final = 12
RUNS_IN_A_TURN: Final = 64
LIFE: Final = 1
LIMITS: Final = RepositoryConfig(size_threshold=1 << 20, disk_limit=4 << 20)
"""Limits of a source in memory and on disk. Both are full after a few percent of the default run."""

SEGMENT_BYTES: Final = 1 << 20


class BenchStore:
    def __init__(self, directory: Path) -> None:
        _, self.machine = registered(LIMITS)
        self.disk = threading.Event()
        self.journal = Journal.open(directory, Disk(sync=self._unsynced, segment_bytes=SEGMENT_BYTES))
        self.tokens = Tokens()
        self.shelf = MessageStorage(self.journal, self.tokens)
        self.now = 0
        self._told = asyncio.Event()
        self.journal.set_checkpoint(list)
        self.journal.on_synced = self._on_synced
        self.journal.start(asyncio.get_running_loop())

    def data(self, first: int, block: bytes, size: int) -> None:
        self.now += MILLISECOND
        token = self.tokens.keep(Run(LIFE, wire(first), RUN_MESSAGES, RUN_MESSAGES * size, block), LIFE)
        data = Data(LIFE, LIFE, wire(first), RUN_MESSAGES, RUN_MESSAGES * size, False, token)
        self.machine.receive(data, self.now)
        self._perform()

    async def written(self) -> None:
        """Wait until all data is on the disk."""
        while self.journal.queued_bytes:
            self._told.clear()
            await self._told.wait()

    def _unsynced(self, _: int) -> None:
        """Wait until the disk may go on, and do not sync, because the benchmark measures memory."""
        self.disk.wait()

    def _on_synced(self, ticket: int) -> None:
        self._told.set()
        self.machine.receive(Persisted(ticket), self.now)
        self._perform()

    def _perform(self) -> None:
        for effect in self.machine.take_effects():
            match effect:
                case fx.PersistMessages():
                    self.shelf.persist(effect)
                case fx.CacheMessages() | fx.PersistCached() | fx.Uncache() | fx.Reclaim() | fx.Cut():
                    self.shelf.change(effect)
                case fx.Discard():
                    self.tokens.drop(effect.token)
                case _:
                    pass


async def through(messages: int, size: int, directory: Path, looks: int, look: Callable[[], float]) -> list[float]:
    """Send messages through a store; return the value of `look` after each of `looks` parts of them."""
    store, block = BenchStore(directory), os.urandom(RUN_MESSAGES * (size + HEADER_BYTES))
    runs, found = messages // RUN_MESSAGES, list[float]()
    for run in range(runs):
        store.data(run * RUN_MESSAGES, block, size)
        if run % RUNS_IN_A_TURN == 0:
            await asyncio.sleep(0)
        if store.journal.pressure or run + 1 == runs // looks:
            store.disk.set()
            await store.written()
        if (run + 1) % (runs // looks) == 0:
            await store.written()
            gc.collect()
            found.append(look())
    held = store.machine.repositories[next(iter(store.machine.repositories))].held.total()
    assert 0 < held * (size + HEADER_BYTES) <= LIMITS.disk_limit, "the repository exceeds its limits"
    await store.journal.close()
    return found


def _resident() -> float:
    """Return the resident memory of this process (bytes)."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measured(options: Options, directory: Path) -> Figures:
    """Return the megabytes of the process after a tenth of the messages and after all."""
    early, *_, late = uvloop.run(through(options.messages, options.size, directory, 10, _resident))
    return {"early": early / 1e6, "late": late / 1e6, "messages": options.messages}


def bounded(_: Options) -> Scenario:
    return Scenario(
        "bounded",
        f"messages through a repository of {LIMITS.disk_limit >> 20} MiB",
        "",
        {"store": measured},
        {"early": "MB after a tenth", "late": "MB after all", "messages": "messages"},
    )
