"""Memory: what a store keeps in it for a message that is on disk, by the length of the runs in which messages came.

Counted by the interpreter's own books, for the machine of the store and the journal's index of the same messages. One
message a run is a source that sends seldom; 64 a busy one. Both together are to stay below 32 bytes a message.
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
from tests.bench.bookkeeping import PAYLOAD_BYTES, registered
from tests.bench.scenario import Figures, Options, Scenario

RUNS: Final = 20_000

ON_DISK: Final = RepositoryConfig(size_threshold=1, disk_limit=0)
"""What is synced leaves the memory at once."""


def machine(run_messages: int) -> object:
    """The store's machine, told of all runs; what is told to others is let go."""
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
    """The journal's index of as many records."""
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
    """Bytes for a message."""
    return {"machine": _bytes(machine, run_messages), "index": _bytes(index, run_messages)}


def memory(_: Options) -> Scenario:
    """Runs of 64, and of one."""
    return Scenario(
        "memory",
        "bytes that a disk store keeps in memory for a stored message",
        "",
        {"runs of 64": partial(measured, 64), "runs of 1": partial(measured, 1)},
        {"machine": "the store's machine", "index": "the journal's index"},
    )
