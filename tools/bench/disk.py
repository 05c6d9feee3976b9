"""The bandwidth of the journal next to plain writes and flushes of the same bytes."""

import asyncio
import os
import time
from pathlib import Path
from typing import Final

import uvloop

from stablecast.store.journal import Journal
from tools.bench.scenario import Figures, Options, Scenario

BATCH_BYTES: Final = 64 * 1024
BATCH_MESSAGES: Final = 512
TOTAL_BYTES: Final = 256 << 20
AT_ONCE: Final = 8
"""Batches of one flush. In the journal as many more may wait while a flush is running."""


def _batches(options: Options) -> int:
    return min(TOTAL_BYTES, options.messages * (options.size + 12)) // BATCH_BYTES + 1


def plain(options: Options, directory: Path) -> Figures:
    """Write some batches with `pwrite` and call `fdatasync`, again and again."""
    block, count = b"x" * BATCH_BYTES, _batches(options)
    descriptor = os.open(directory / "plain", os.O_CREAT | os.O_WRONLY, 0o600)
    started = time.perf_counter()
    for first in range(0, count, AT_ONCE):
        blocks = [block] * min(AT_ONCE, count - first)
        os.pwritev(descriptor, blocks, first * BATCH_BYTES)
        os.fdatasync(descriptor)
    elapsed = time.perf_counter() - started
    os.close(descriptor)
    return {"bandwidth": count * BATCH_BYTES / elapsed / 1e6}


async def _journal(options: Options, directory: Path) -> float:
    block, count = b"x" * BATCH_BYTES, _batches(options)
    journal = Journal.open(directory)
    journal.set_checkpoint(list)
    synced, changed = 0, asyncio.Event()

    def on_synced(ticket: int) -> None:
        nonlocal synced
        synced = ticket
        changed.set()

    journal.on_synced = on_synced
    journal.start(asyncio.get_running_loop())
    started = time.perf_counter()
    for ticket in range(1, count + 1):
        while ticket - synced > 2 * AT_ONCE:
            changed.clear()
            await changed.wait()
        journal.append_messages(1, ticket * BATCH_MESSAGES, BATCH_MESSAGES, 1, block, ticket)
    while synced < count:
        changed.clear()
        await changed.wait()
    elapsed = time.perf_counter() - started
    await journal.close()
    return elapsed


def journal(options: Options, directory: Path) -> Figures:
    """Append the batches to a journal, which commits them in groups."""
    return {"bandwidth": _batches(options) * BATCH_BYTES / uvloop.run(_journal(options, directory)) / 1e6}


def disk(_: Options) -> Scenario:
    """Return the scenario with batches of 64 KiB."""
    return Scenario(
        "journal",
        f"batches of {BATCH_BYTES // 1024} KiB, {AT_ONCE} to a flush; as many more may wait for the journal's next one",
        "fdatasync returned",
        {"pwrite + fdatasync": plain, "journal": journal},
        {"bandwidth": "MB/s"},
        [("journal", "pwrite + fdatasync", "bandwidth")],
    )
