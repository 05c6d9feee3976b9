"""Memory of a store for a message on disk, by the length of the runs in which messages arrived.

The interpreter counts the memory of the store's machine and of the journal's index of the same messages. A source that
sends seldom makes runs of one message, a busy source runs of 64. Both parts together must stay below 32 bytes.
"""

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.effects import PersistMessages
from stablecast.core.protocol.inputs import Data, Persisted
from stablecast.core.protocol.settings import RepositoryConfig
from stablecast.store.journal.index import Index
from stablecast.store.journal.segments import JournalSegment, RecordPlace
from tools.bench.core_costs import PAYLOAD_BYTES, registered
from tools.bench.scenario import Figures, Options, Scenario

RUNS: Final = 20_000

ON_DISK: Final = RepositoryConfig(size_threshold=1, disk_limit=0)
"""Synced messages leave the memory at once."""


def machine(run_messages: int) -> object:
    """Return the store's machine after all runs, without its effects."""
    _, store = registered(ON_DISK)
    for token in range(RUNS):
        now = token * MILLISECOND
        store.receive(Data(1, 1, token * run_messages, run_messages, run_messages * PAYLOAD_BYTES, False, token), now)
        for effect in store.take_effects():
            if isinstance(effect, PersistMessages):
                store.receive(Persisted(effect.ticket), now)
        store.take_effects()
    return store


def index(run_messages: int) -> object:
    """Return the journal's index of the same number of records."""
    known, segment = Index(), JournalSegment(1, 0, Path("1.seg"))
    size = run_messages * PAYLOAD_BYTES
    for number in range(RUNS):
        known.add(1, RecordPlace(segment, number * size, size, number * run_messages, 1, run_messages))
    return known


def _bytes(make: Callable[[int], object], run_messages: int) -> float:
    gc.collect()
    tracemalloc.start()
    try:
        kept = make(run_messages)
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del kept
    return used / (RUNS * run_messages)


def measured(run_messages: int, _options: Options, _directory: Path) -> Figures:
    return {"machine": _bytes(machine, run_messages), "index": _bytes(index, run_messages)}


def memory(_: Options) -> Scenario:
    """Return the scenario with runs of 64 messages and of one."""
    return Scenario(
        "memory",
        "bytes that a disk store keeps in memory for a stored message",
        "",
        {"runs of 64": partial(measured, 64), "runs of 1": partial(measured, 1)},
        {"machine": "the store's machine", "index": "the journal's index"},
    )
