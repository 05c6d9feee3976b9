"""Many small messages through a repository with limits: does a store's memory stay what it was?

The machine, the memory and the journal of a store, without sockets; the disk is written but not synced. The long form
is one command, some minutes: `make bench ARGS="bounded --messages 100000000 --size 16 --rounds 1"`.

What a process has taken from the system for its small objects it does not give back. So its memory is that of its worst
moment: when the disk stalled for so long that as much waited for it as may wait. A run that does not begin with that
moment seems to grow whenever the machine is busy. This one does: the disk stands still until no more may wait.
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
from tests.bench.bookkeeping import registered
from tests.bench.scenario import Figures, Options, Scenario

RUN_MESSAGES: Final = 64
HEADER_BYTES: Final = 12
RUNS_IN_A_TURN: Final = 64
LIFE: Final = 1
LIMITS: Final = RepositoryConfig(size_threshold=1 << 20, disk_limit=4 << 20)
"""Bytes that a source may have in memory and on disk: both are full after a few percent of the default run."""

SEGMENT_BYTES: Final = 1 << 20


class Store:
    """A machine and what it keeps where."""

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
        """A run arrived."""
        self.now += MILLISECOND
        token = self.tokens.keep(Run(LIFE, wire(first), RUN_MESSAGES, RUN_MESSAGES * size, block), LIFE)
        data = Data(LIFE, LIFE, wire(first), RUN_MESSAGES, RUN_MESSAGES * size, False, token)
        self.machine.receive(data, self.now)
        self._perform()

    async def written(self) -> None:
        """Everything is on the disk."""
        while self.journal.queued_bytes:
            self._told.clear()
            await self._told.wait()

    def _unsynced(self, _: int) -> None:
        """The kernel may take its time: memory is measured, not the disk. Stands still until it is let go on."""
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
    """What `look` says after each part of so many, when everything is written."""
    store, block = Store(directory), os.urandom(RUN_MESSAGES * (size + HEADER_BYTES))
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
    assert 0 < held * (size + HEADER_BYTES) <= LIMITS.disk_limit, "the repository does not keep to its limits"
    await store.journal.close()
    return found


def _resident() -> float:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measured(options: Options, directory: Path) -> Figures:
    """Megabytes of the process, after a tenth of the messages and after all."""
    early, *_, late = uvloop.run(through(options.messages, options.size, directory, 10, _resident))
    return {"early": early / 1e6, "late": late / 1e6, "messages": options.messages}


def bounded(_: Options) -> Scenario:
    """One repository."""
    return Scenario(
        "bounded",
        f"messages through a repository of {LIMITS.disk_limit >> 20} MiB",
        "",
        {"store": measured},
        {"early": "MB after a tenth", "late": "MB after all", "messages": "messages"},
    )
