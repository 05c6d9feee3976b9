"""The memory and the processor time of a process, as the kernel reports them."""

import os
from pathlib import Path

KIB = 1024
TICKS = os.sysconf("SC_CLK_TCK")


def peak(pid: int) -> int:
    """Return the peak of the resident memory, in bytes."""
    return _status(pid, "VmHWM:")


def resident(pid: int) -> int:
    """Return the resident memory, in bytes."""
    return _status(pid, "VmRSS:")


def cpu(pid: int) -> float:
    """Return the processor time, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def wakeups(pid: int) -> int:
    """Return how often the main thread waited and went on."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))


def _status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return KIB * next(int(line.split()[1]) for line in lines if line.startswith(name))
