"""Restart: the time to open a store's journal, by the way in which full segments are read.

The long form opens 10 GB: `make bench ARGS="restart --messages 90000000 --rounds 1"`.
"""

import asyncio
import os
import time
from pathlib import Path
from typing import Final

import uvloop

from stablecast.store.journal import Disk, Journal
from stablecast.store.journal.summary import SUMMARY_SUFFIX
from tools.bench.scenario import Figures, Options, Scenario

RUN_MESSAGES: Final = 64
"""Number of messages that a busy source of small messages puts into a packet of 8 KB."""

HEADER_BYTES: Final = 12
STREAM: Final = 1
AT_ONCE: Final = 1000
"""Number of records that are appended in one turn of the loop."""


def _unsynced(_: int) -> None:
    """Skip the sync, because the writing of the journal is not measured."""


async def _fill(options: Options, directory: Path) -> None:
    block = os.urandom(RUN_MESSAGES * (options.size + HEADER_BYTES))
    journal = Journal.open(directory, Disk(sync=_unsynced))
    journal.set_checkpoint(list)
    journal.start(asyncio.get_running_loop())
    for number in range(0, options.messages, RUN_MESSAGES):
        journal.append_messages(STREAM, number, RUN_MESSAGES, 1, block, number + 1)
        while journal.pressure or number % (AT_ONCE * RUN_MESSAGES) == 0:
            await asyncio.sleep(0)
            if not journal.pressure:
                break
    await journal.close()


def _opened(directory: Path, *, verify: bool) -> tuple[float, Journal]:
    started = time.perf_counter()
    journal = Journal.open(directory, Disk(verify=verify))
    elapsed = time.perf_counter() - started
    journal.abort()
    return elapsed, journal


def measured(options: Options, directory: Path) -> Figures:
    """Open one journal in four ways; return the seconds of each."""
    uvloop.run(_fill(options, directory))
    summaries, journal = _opened(directory, verify=False)
    checked, _ = _opened(directory, verify=True)
    for path in directory.glob(f"*{SUMMARY_SUFFIX}"):
        path.unlink()
    headers, _ = _opened(directory, verify=False)
    for path in directory.glob(f"*{SUMMARY_SUFFIX}"):
        path.unlink()
    verified, _ = _opened(directory, verify=True)
    runs = sum(1 for _ in journal.sizes(STREAM))
    return {
        "summaries": summaries,
        "checked": checked,
        "headers": headers,
        "verified": verified,
        "size": journal.disk_bytes / 1e9,
        "runs": runs,
    }


def restart(_: Options) -> Scenario:
    """Return the scenario: from summaries, from the headers of records, and with every block verified."""
    return Scenario(
        "restart",
        f"a journal with runs of {RUN_MESSAGES} messages is opened from the page cache",
        "",
        {"journal": measured},
        {
            "summaries": "s from summaries",
            "checked": "s from summaries, every block verified",
            "headers": "s from the headers of records",
            "verified": "s without summaries, every block verified",
            "size": "GB",
            "runs": "runs",
        },
    )
