"""Asking the kernel to be prompt: messages are handed over soon on a host with few cores.

The kernel wakes the reader of a loopback connection on the writer's core as a rule, where it waits until the writer
sleeps, even if another core is idle. Two things help together, and neither does alone (spec/performance.md):

* the reader asks for *short slices*, shorter than the writer's: when it wakes it may come before a thread with longer
  ones (Linux 6.12; nobody gets more of the processor by that, only sooner and shorter);
* the writer *gives way* behind each message that leaves at once. By that it falls behind the reader in the kernel's
  accounts, and from then on a reader that it wakes runs at once. A writer that says much in a turn of its loop gives
  way to nobody: it gains by writing on.

Where there is more to do than there are cores, others would take that for a surrender of the slice: who had to wait
long for the core gives it away no more for a while.
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
"""Who had to wait so long for the core has given it to others than those it woke."""

PAUSE: Final = 100
"""Then it is given away no more for so many times as long: no more than a hundredth of the time is lost that way."""

_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQII")
"""`struct sched_attr`: size, policy, flags, nice, priority, runtime, deadline, period, two clamps."""


def short_slices() -> bool:
    """Ask for short slices of this thread; returns whether the system granted them. Its policy and nice value stay."""
    number = _SETATTR.get(platform.machine())
    if number is None or platform.system() != "Linux" or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, SLICE_NS, 0, 0, 0, 0)
    granted: int = ctypes.CDLL(None).syscall(number, 0, attributes, 0)
    return granted == 0


class Courtesy:
    """Gives way while that costs little."""

    def __init__(self) -> None:
        """It has cost nothing yet."""
        self._from = 0

    def give_way(self) -> None:
        """Let those run first who wait for this core."""
        began = time.monotonic_ns()
        if began < self._from:
            return
        os.sched_yield()
        waited = time.monotonic_ns() - began
        if waited > LONG_NS:
            self._from = began + waited * (PAUSE + 1)


def courtesy() -> Courtesy | None:
    """What a thread's sources share; None on systems of which nobody knows how they take it."""
    return Courtesy() if platform.system() == "Linux" else None
