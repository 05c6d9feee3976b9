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

import ctypes
import os
import platform
import struct
import time
from typing import Final

SLICE_NS: Final = 100_000
"""The shortest slice that the kernel grants."""

LONG_NS: Final = 2 * SLICE_NS
"""A wait this long (ns) shows that the core went to other threads than the woken reader."""

PAUSE: Final = 100
"""Factor of that wait for which the thread stops yielding, so that at most a hundredth of its time is lost."""

_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQII")
"""`struct sched_attr`: size, policy, flags, nice, priority, runtime, deadline, period, two clamps."""


def short_slices() -> bool:
    """Ask for short slices of this thread and return whether the system granted them; policy and nice value stay."""
    number = _SETATTR.get(platform.machine())
    if number is None or platform.system() != "Linux" or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, SLICE_NS, 0, 0, 0, 0)
    granted: int = ctypes.CDLL(None).syscall(number, 0, attributes, 0)
    return granted == 0


class Courtesy:
    """Yield the core as long as that costs little; the sources of one thread share it."""

    def __init__(self) -> None:
        self._from = 0

    def give_way(self) -> None:
        """Yield to the threads that wait for this core, unless yielding was expensive lately."""
        began = time.monotonic_ns()
        if began < self._from:
            return
        os.sched_yield()
        waited = time.monotonic_ns() - began
        if waited > LONG_NS:
            self._from = began + waited * (PAUSE + 1)


def courtesy() -> Courtesy | None:
    """Return the `Courtesy` of a thread; None on systems whose reaction to a yield is not measured."""
    return Courtesy() if platform.system() == "Linux" else None
