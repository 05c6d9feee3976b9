"""The options of a run of tests, as the command line gives them."""

import os
from contextvars import ContextVar
from typing import Final

import attrs


def usable_cores() -> int:
    """Return the number of cores that this process may use; 1 in a worker of pytest-xdist."""
    return 1 if "PYTEST_XDIST_WORKER" in os.environ else len(os.sched_getaffinity(0))


@attrs.frozen
class RunOptions:
    """The options of all tests that use a world.

    Attributes:
        seeds: Number of seeds in place of each test's own; None keeps it.
        seed: Run this seed only.
        jobs: Number of processes that share the seeds of one test.
        traces: Directory for the traces of failing runs; empty: a temporary one.
        real: Run on the sockets, processes and disks of this machine.
    """

    seeds: int | None = None
    seed: int | None = None
    jobs: int = attrs.Factory(usable_cores)
    traces: str = ""
    real: bool = False


OPTIONS: Final[ContextVar[RunOptions]] = ContextVar("stablecast options")
"""The options of the tests that run now."""
