"""The seeds of one test, shared by several processes.

A child is a copy of this process, so that a test with its fixtures needs no import path and no pickling. A child
reports one line for each world. The lowest failing seed is found, whatever number of processes runs.
"""

import gc
import json
import mmap
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NoReturn

from stablecast.core.errors import StablecastError

ALONE_S: Final = 0.5
"""Seconds within which this process runs the first seeds by itself: a short search needs no children."""

NONE: Final = 1 << 62
"""A number above all seeds."""

One = Callable[[int], tuple[bool, list[str]]]
"""Run a seed; return whether it failed, and its faults."""


class SeedProcessError(StablecastError):
    """A process that ran seeds ended without a report."""


def first_failing(seeds: Sequence[int], one: One, jobs: int, on_world: Callable[[int, list[str]], None]) -> int | None:
    """Return the lowest failing seed, or None.

    Args:
        seeds: The seeds in ascending order.
        one: Runs a seed.
        jobs: The number of processes.
        on_world: Is called for each world with its seed and its faults.

    Raises:
        SeedProcessError: A process ended without a report.
    """
    until = time.monotonic() + (ALONE_S if jobs > 1 else float("inf"))
    for number, seed in enumerate(seeds):
        if time.monotonic() > until:
            return _shared(seeds[number:], one, jobs, on_world)
        failed, struck = one(seed)
        on_world(seed, struck)
        if failed:
            return seed
    return None


def _shared(seeds: Sequence[int], one: One, jobs: int, on_world: Callable[[int, list[str]], None]) -> int | None:
    """Let `jobs` children run every `jobs`-th seed each."""
    lowest = mmap.mmap(-1, 8)
    lowest[:] = NONE.to_bytes(8, "little")
    children: dict[int, _Child] = {}
    gc.freeze()  # A collection in a child would copy the memory that it shares with this process.
    try:
        for job in range(jobs):
            child = _Child(seeds[job::jobs], one, lowest)
            children[child.reading] = child
        while children:
            for reading in select.select(list(children), [], [])[0]:
                if not children[reading].receive(on_world):
                    children.pop(reading).finish()
    finally:
        gc.unfreeze()
        for child in children.values():
            child.kill()
    found = int.from_bytes(lowest[:], "little")
    return None if found == NONE else found


class _Child:
    """One process that runs seeds."""

    def __init__(self, seeds: Sequence[int], one: One, lowest: mmap.mmap) -> None:
        self.reading, writing = os.pipe()
        self._rest = b""
        self._done = False
        self._pid = os.fork()
        if not self._pid:
            os.close(self.reading)
            _run_child(seeds, one, lowest, writing)
        os.close(writing)

    def receive(self, on_world: Callable[[int, list[str]], None]) -> bool:
        """Read the reports that have arrived; return False at their end."""
        octets = os.read(self.reading, 1 << 16)
        *lines, self._rest = (self._rest + octets).split(b"\n")
        for line in lines:
            report = json.loads(line)
            if report is None:
                self._done = True
            else:
                on_world(*report)
        return bool(octets)

    def finish(self) -> None:
        """Reap the process. Raises SeedProcessError unless it ran all of its seeds."""
        os.close(self.reading)
        os.waitpid(self._pid, 0)
        if not self._done:
            raise SeedProcessError(
                f"process {self._pid} ended while it ran seeds: run the test with --stablecast-jobs 1 to see why"
            )

    def kill(self) -> None:
        """End the process, which no longer matters."""
        with suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self.reading)


def _run_child(seeds: Sequence[int], one: One, lowest: mmap.mmap, writing: int) -> NoReturn:
    """Run seeds and report each; end at the first failing one, or when another child found a lower one."""
    status = 1
    try:
        for seed in seeds:
            if seed > int.from_bytes(lowest[:], "little"):
                break
            failed, struck = one(seed)
            os.write(writing, json.dumps([seed, struck]).encode() + b"\n")
            if failed:
                # Two children may write at once: the parent then runs the seed that remains, which also fails.
                if seed < int.from_bytes(lowest[:], "little"):
                    lowest[:] = seed.to_bytes(8, "little")
                break
        os.write(writing, b"null\n")
        status = 0
    finally:
        os._exit(status)
