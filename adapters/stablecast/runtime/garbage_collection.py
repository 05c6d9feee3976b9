"""Garbage collection: when each kind of program looks for cycles of dead objects.

Hardly any object here is part of a cycle, and each full collection walks through all that live. A store of ten thousand
sources has 600,000 objects that live as long as their clients: a full collection takes a quarter of a second in which
the store answers nobody. A program that starts, a daemon that serves and a batch each have a function here.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_AT_START = 50_000
"""New objects before a collection while a command starts: collecting what it loads took a tenth of the start."""
YOUNG_USUAL = 700
"""New objects before a collection in a command that runs: the interpreter's default."""
YOUNG = 10_000
"""New objects before the youngest generation of a store daemon is collected."""
MIDDLE = 5
"""Collections of the youngest generation before the middle one is collected."""
OLD = 1000
"""Collections of the middle generation before the oldest one is collected."""


def defer_at_start() -> None:
    """Collect rarely while modules load: none of it is garbage."""
    gc.set_threshold(YOUNG_AT_START, *gc.get_threshold()[1:])


def keep_loaded() -> None:
    """Exempt what is loaded by now: walking through it would stop a daemon for 30 ms. Collect as usual from now on."""
    gc.freeze()
    gc.set_threshold(YOUNG_USUAL, *gc.get_threshold()[1:])


def keep_served() -> None:
    """Exempt what a store daemon has made by now, and collect its later objects in small portions.

    Call it once, when the daemon serves.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)


def keep_worker() -> None:
    """Exempt what a Spark worker has as a task begins.

    After each task a worker collects: it walked through 120,000 objects of modules in 70 ms. What is there when the
    next task begins has survived that, so it is no garbage.
    """
    gc.freeze()


@contextmanager
def paused() -> Iterator[None]:
    """Collect nothing inside: decoding one frame makes a hundred thousand objects without cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
