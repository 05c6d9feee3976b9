"""Scheduling requests to the kernel that shorten the wake-up of a reader on a host with few cores.

The kernel usually wakes the reader of a loopback connection on the writer's core. There the reader waits until the
writer sleeps, even if another core is idle. Two requests help together, and neither helps alone (spec/performance.md):

* the reader asks for *short slices*, shorter than the writer's. When it wakes, it may run before a thread with longer
  slices (Linux 6.12). It gets no more processor time, only sooner and in shorter pieces;
* the writer *yields* after each message that leaves at once. So the kernel accounts it behind the reader, and a reader
  that it wakes runs at once. A writer of many messages in one turn of its loop does not yield, because it gains by
  writing on.

With more runnable threads than cores, a yield gives the slice to other threads. A thread that waited long for its core
therefore stops yielding for a while.
"""

from typing import Final

from stablecast.runtime import machine

SLICE_NS: Final = 100_000
"""The shortest slice that the kernel grants."""

LONG_NS: Final = 2 * SLICE_NS
"""A wait this long (ns) shows that the core went to other threads than the woken reader."""

PAUSE: Final = 100
"""Factor of that wait for which the thread stops yielding, so that at most a hundredth of its time is lost."""


def short_slices() -> bool:
    """Ask for short slices of this thread and return whether the system granted them; policy and nice value stay."""
    return machine.threads.ask_short_slices(SLICE_NS)


class Courtesy:
    """Yield the core as long as that costs little; the sources of one thread share it."""

    def __init__(self) -> None:
        self._from = 0

    def give_way(self) -> None:
        """Yield to the threads that wait for this core, unless yielding was expensive lately."""
        began = machine.clock.monotonic_ns()
        if began < self._from:
            return
        machine.threads.give_way()
        waited = machine.clock.monotonic_ns() - began
        if waited > LONG_NS:
            self._from = began + waited * (PAUSE + 1)


def courtesy() -> Courtesy | None:
    """Return the `Courtesy` of a thread; None on systems whose reaction to a yield is not measured."""
    return Courtesy() if machine.threads.yields_help() else None
