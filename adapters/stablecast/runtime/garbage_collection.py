"""Garbage collection: the policy of each kind of program.

Hardly any object here is part of a cycle, and each full collection visits all live objects. A store of ten thousand
sources has 600,000 objects that live as long as their clients. A full collection takes a quarter of a second there, in
which the store answers nobody. This module has one function each for a start, a daemon, a Spark worker and a batch.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_AT_START = 50_000
"""New objects before a collection while a command starts: collections took a tenth of the start."""
YOUNG_USUAL = 700
"""New objects before a collection in a command that runs: the interpreter's default."""
YOUNG = 10_000
"""New objects before the youngest generation of a store daemon is collected."""
MIDDLE = 5
"""Collections of the youngest generation before the middle one is collected."""
OLD = 1000
"""Collections of the middle generation before the oldest one is collected."""


def defer_at_start() -> None:
    """Collect rarely while modules load, because nothing that they create is garbage."""
    gc.set_threshold(YOUNG_AT_START, *gc.get_threshold()[1:])


def keep_loaded() -> None:
    """Exempt the loaded modules, which would stop a daemon for 30 ms each time, and collect as usual from now on."""
    if not _owns_interpreter():
        return
    gc.freeze()
    gc.set_threshold(YOUNG_USUAL, *gc.get_threshold()[1:])


def keep_served() -> None:
    """Exempt the present objects of a store daemon, and collect its later objects in small portions.

    Call it once, when the daemon begins to serve.
    """
    if not _owns_interpreter():
        return
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)


def keep_worker() -> None:
    """Exempt the objects that a Spark worker has when a task begins.

    A worker collects after each task, and visited 120,000 objects of modules in 70 ms. Objects that are present when
    the next task begins have survived that collection, so they are no garbage.
    """
    gc.freeze()


@contextmanager
def paused() -> Iterator[None]:
    """Suspend collection in the body: decoding one frame creates a hundred thousand objects without cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _owns_interpreter() -> bool:
    """Return False in a simulated world, whose other programs would pay for the policy of one."""
    from stablecast.runtime import machine  # noqa: PLC0415 - every command starts with this module

    return machine.process.owns_interpreter()
