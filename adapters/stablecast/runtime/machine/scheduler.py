"""Requests to the scheduler of Linux that Python has no function for."""

import ctypes
import os
import platform
import struct
import sys
from typing import Final

_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
"""The number of `sched_setattr` by processor."""

_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQII")
"""`struct sched_attr`: size, policy, flags, nice, priority, runtime, deadline, period, two clamps."""


def ask_short_slices(slice_ns: int) -> bool:
    """Ask for short slices (ns) of this thread and return whether the system granted them.

    Policy and nice value stay as they are.
    """
    number = _SETATTR.get(platform.machine())
    # Other policies have no slices, and a change of the policy would be visible to the user.
    if number is None or not sys.platform.startswith("linux") or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, slice_ns, 0, 0, 0, 0)
    granted: int = ctypes.CDLL(None).syscall(number, 0, attributes, 0)
    return granted == 0
