"""Stores in processes that kill themselves at a given step of their disk."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.settings import RepositoryConfig, RepositoryType, StoreConfig
from stablecast.store.client_records import clients_of
from stablecast.store.journal import Disk, Journal
from stablecast.store.journal.segments import FEW_OPEN_FILES
from stablecast.store.store import Store, StoreSettings
from stablecast.transports.codec.lbttcp import payloads
from tests.adapters.store.journal.support import read

LOCAL = "127.0.0.1:0"
SEGMENT_BYTES = 4_000
SENDER, READER = 1, 2
"""Session ids."""

KINDS = {
    "disk": (RepositoryType.DISK, Disk(segment_bytes=SEGMENT_BYTES, short_ns=-1)),
    "quick": (RepositoryType.DISK, Disk(segment_bytes=SEGMENT_BYTES, short_ns=1 << 60)),
    "reduced-fd": (RepositoryType.REDUCED_FD, Disk(segment_bytes=SEGMENT_BYTES, open_files=FEW_OPEN_FILES)),
    "preallocated": (RepositoryType.DISK, Disk(segment_bytes=SEGMENT_BYTES, preallocate=True)),
    "unverified": (RepositoryType.DISK, Disk(segment_bytes=SEGMENT_BYTES, verify=False)),
    "paced": (RepositoryType.DISK, Disk(segment_bytes=SEGMENT_BYTES)),
}
"""Each way to use a disk. One that is never quick is flushed by the writer's thread, one that always is by the loop."""

IN_MEMORY = {
    "memory": (RepositoryType.MEMORY, Disk(segment_bytes=SEGMENT_BYTES)),
    "no-cache": (RepositoryType.NO_CACHE, Disk(segment_bytes=SEGMENT_BYTES)),
}
"""Each way to keep no messages on it: who is registered, and who acknowledged what, is there all the same."""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["stablecast.store.store"])


@attrs.define
class Killer:
    """Ends the process when a step is taken for the nth time, as `kill -9` does."""

    step: str
    nth: int
    seen: int = 0

    def __call__(self, step: str) -> None:
        if step == self.step:
            self.seen += 1
            if self.seen == self.nth:
                os.kill(os.getpid(), signal.SIGKILL)


PACED_FLIGHT = {"ume_receiver_paced_persistence": 1, "ume_flight_size": 20, "ume_flight_size_bytes": 4_000}
PACED = {"ume_receiver_paced_persistence": 1}
"""The wishes of a source and a receiver where the receivers set the pace."""


def config(kind: RepositoryType) -> StoreConfig:
    """A store whose journal turns over quickly."""
    kept = RepositoryConfig(
        kind=kind, disk_limit=12_000, size_threshold=3_000, source_lifetime_ns=3600 * SECOND,
        receiver_lifetime_ns=3600 * SECOND, allow_rpp=True,
    )  # fmt: skip
    return StoreConfig(LOCAL, 1, repository=kept)


def serve(directory: str, kind: str, step: str, nth: int, told: Connection) -> None:
    """The child: a store that tells where it listens, and goes on until it is killed."""
    repository, disk = (KINDS | IN_MEMORY)[kind]
    settings = StoreSettings(
        LOCAL, Path(directory), config(repository), disk=attrs.evolve(disk, step=Killer(step, nth)), new=True
    )

    async def run() -> None:
        store = Store(settings)
        await store.start()
        told.send(store.address)
        await store.failed

    asyncio.run(run())


@attrs.frozen
class Child:
    """A store's process. `address` is empty if it died before it listened."""

    address: str
    died: "asyncio.Future[None]"


@asynccontextmanager
async def child(directory: Path, kind: str, step: str, nth: int) -> AsyncIterator[Child]:
    """A store until the end of the body, or its own."""
    loop = asyncio.get_running_loop()
    hears, tells = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=serve, args=(str(directory), kind, step, nth, tells))
    process.start()
    tells.close()

    def address() -> str:
        try:
            return str(hears.recv())
        except EOFError:
            return ""

    died: asyncio.Future[None] = loop.create_future()

    def dead() -> None:
        if not died.done():
            died.set_result(None)

    loop.add_reader(process.sentinel, dead)
    try:
        yield Child(await loop.run_in_executor(None, address), died)
    finally:
        loop.remove_reader(process.sentinel)
        process.kill()
        process.join()
        hears.close()
        process.close()


def text(number: int) -> bytes:
    return b"message %d " % number + b"." * 150


@attrs.frozen
class Left:
    """The contents of a journal: RegIDs by session id, the reader's acknowledged number, and the source's numbers."""

    reg_ids: dict[int, int]
    acknowledged: int
    trail: int
    numbers: dict[int, bytes]
    reports: list[str]


def left(directory: Path) -> Left:
    """The contents that a restart would find."""
    journal = Journal.open(directory)
    clients = clients_of(journal.recovered_states)
    sessions = {client.session_id: client for client in clients.values()}
    source = sessions[SENDER]
    numbers: dict[int, bytes] = {}
    for first, count, _ in journal.extents(source.reg_id):
        for number in range(first, first + count):
            run = read(journal, source.reg_id, number)
            assert run is not None
            numbers[number] = bytes(next(iter(payloads(run[3], number - run[0], 1))))
    reader = sessions.get(READER)
    found = Left(
        {session: client.reg_id for session, client in sessions.items()},
        -1 if reader is None else reader.acknowledged,
        journal.trail(source.reg_id) or 0,
        numbers,
        journal.reports,
    )
    assert source.role is Role.SOURCE
    journal.abort()
    return found
