"""How a daemon looks for cycles of dead objects: seldom through what lives long.

A store of ten thousand sources has 600,000 objects that live as long as their clients, and a full collection walks
through them all: a quarter of a second and more in which nothing is answered, seven times while they register. What was
made before the daemon began to serve is never looked through again; what comes later is, in portions that take some
milliseconds, and all of it only after fifty million objects. Hardly anything here forms cycles.
"""

import gc

YOUNG = 10_000
"""New objects, less those that went, before the young are looked through; the interpreter's default is 700."""
MIDDLE = 5
"""So many of these before those that survived one are looked through."""
OLD = 1000
"""So many of those before all are."""


def settle() -> None:
    """What there is now stays: call it once, when the daemon serves."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
