"""Locks of the threads of programs.

A lock may stand in a module, and the programs of all hosts import the same module. Therefore a lock has one state for
each process, and a real lock for code outside of programs.
"""

import threading
from typing import Any, Final
from weakref import WeakKeyDictionary

from stablecast.lab.world.locks import SimulatedSemaphore
from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.user_code.replacement import installation

_REAL_LOCK: Final = threading.Lock
_REAL_RLOCK: Final = threading.RLock


class _Holder:
    """The state of a lock in one process."""

    __slots__ = ("count", "free", "owner")

    def __init__(self, process: SimulatedProcess) -> None:
        self.free = SimulatedSemaphore(process.kernel, 1)
        self.owner: int | None = None
        self.count = 0


class ThreadLock:
    """A `threading.Lock` with one state for each process."""

    def __init__(self) -> None:
        self._real: Any = self._real_lock()
        self._holders: WeakKeyDictionary[SimulatedProcess, _Holder] = WeakKeyDictionary()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Wait until the lock is free, and lock it; return whether that succeeded within `timeout` seconds."""
        _check(blocking, timeout)
        process = installation.programs()
        if process is None:
            taken: bool = self._real.acquire(blocking, timeout)
            return taken
        return self._holder(process).free.acquire(blocking, None if timeout < 0 else timeout)

    def release(self) -> None:
        """Unlock. Raises RuntimeError if the lock is free."""
        process = installation.programs()
        if process is None:
            self._real.release()
            return
        holder = self._holder(process)
        if not holder.free.locked():
            raise RuntimeError("release unlocked lock")
        holder.free.release()

    def locked(self) -> bool:
        process = installation.programs()
        if process is None:
            return bool(self._real.locked())
        return self._holder(process).free.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _holder(self, process: SimulatedProcess) -> _Holder:
        # `get` of the dictionary itself would make another reference to the process each time.
        holder: _Holder | None = self._holders.data.get(process.reference)  # type: ignore[attr-defined]
        if holder is None:
            holder = self._holders[process] = _Holder(process)
        return holder

    def _real_lock(self) -> Any:
        return _REAL_LOCK()

    def _at_fork_reinit(self) -> None:
        self._holders.clear()
        self._real._at_fork_reinit()


class ThreadRLock(ThreadLock):
    """A `threading.RLock`: its thread may acquire it again."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Wait until the lock is free or held by this thread, and hold it once more."""
        process = installation.programs()
        if process is None:
            return super().acquire(blocking, timeout)
        holder, thread = self._holder(process), process.kernel.running().number
        if holder.owner != thread and not super().acquire(blocking, timeout):
            return False
        holder.owner = thread
        holder.count += 1
        return True

    def release(self) -> None:
        """Hold it once less. Raises RuntimeError in another thread."""
        process = installation.programs()
        if process is None:
            self._real.release()
            return
        holder = self._holder(process)
        if holder.owner != process.kernel.running().number:
            raise RuntimeError("cannot release un-acquired lock")
        holder.count -= 1
        if not holder.count:
            holder.owner = None
            holder.free.release()

    def _real_lock(self) -> Any:
        return _REAL_RLOCK()

    def _is_owned(self) -> bool:
        process = installation.programs()
        if process is None:
            return bool(self._real._is_owned())
        return self._holder(process).owner == process.kernel.running().number

    def _recursion_count(self) -> int:
        process = installation.programs()
        if process is None:
            return int(self._real._recursion_count())
        return self._holder(process).count if self._is_owned() else 0

    def _release_save(self) -> Any:
        """Release it wholly, for `Condition.wait`; return what `_acquire_restore` needs."""
        process = installation.programs()
        if process is None:
            return self._real._release_save()
        holder = self._holder(process)
        if holder.owner != process.kernel.running().number:
            raise RuntimeError("cannot release un-acquired lock")
        count, holder.count, holder.owner = holder.count, 0, None
        holder.free.release()
        return count

    def _acquire_restore(self, state: Any) -> None:
        process = installation.programs()
        if process is None:
            self._real._acquire_restore(state)
            return
        holder = self._holder(process)
        holder.free.acquire()
        holder.owner, holder.count = process.kernel.running().number, state


def _check(blocking: bool, timeout: float) -> None:
    if not blocking and timeout != -1:
        raise ValueError("can't specify a timeout for a non-blocking call")
    if timeout < 0 and timeout != -1:
        raise ValueError("timeout value must be a non-negative number")
