"""Reading a frame makes a hundred thousand objects that hold no cycles: looking for some costs more than the rest."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Nobody looks for cycles meanwhile; what had cycles is found afterwards."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
