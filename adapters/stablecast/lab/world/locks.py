"""Locks, semaphores and results: the threads of a world wait for them."""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from stablecast.lab.world.kernel import Kernel, SimulatedThread

ResultT = TypeVar("ResultT")


class SimulatedSemaphore:
    """A counting semaphore; `acquire` blocks the thread that calls it."""

    def __init__(self, kernel: Kernel, value: int = 1) -> None:
        self._kernel = kernel
        self._value = value
        self._waiting: deque[SimulatedThread] = deque()

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take one from the count, and wait for it at most `timeout` seconds; return whether it was taken."""
        limited = timeout is not None and timeout >= 0
        deadline = self._kernel.now + int((timeout or 0) * 1e9) if limited else None
        while not self._value:
            if not blocking or (deadline is not None and self._kernel.now >= deadline):
                return False
            self._waiting.append(self._kernel.running())
            self._kernel.block(deadline)
        self._value -= 1
        return True

    def release(self, n: int = 1) -> None:
        """Add to the count, and wake those who wait."""
        self._value += n
        waiting, self._waiting = self._waiting, deque()
        for thread in waiting:
            thread.wake()

    def locked(self) -> bool:
        """Return whether `acquire` would wait."""
        return not self._value

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimulatedLock(SimulatedSemaphore):
    """A lock. Any thread may release it."""

    def release(self, n: int = 1) -> None:
        """Unlock. Raises RuntimeError if it is not locked."""
        if self._value:
            raise RuntimeError("release unlocked lock")
        super().release(n)


class Result(Generic[ResultT]):
    """The result of another thread; `result` blocks until it is there."""

    def __init__(self, kernel: Kernel) -> None:
        self._done = SimulatedSemaphore(kernel, 0)
        self._value: Callable[[], ResultT] | None = None

    def set_result(self, value: ResultT) -> None:
        """Set the value that `result` returns."""
        self._value = lambda: value
        self._done.release()

    def set_exception(self, error: BaseException) -> None:
        """Set the exception that `result` raises."""

        def fail() -> ResultT:
            raise error

        self._value = fail
        self._done.release()

    def result(self, timeout: float | None = None) -> ResultT:
        """Wait for the value and return it, or raise the exception. Raises TimeoutError."""
        if not self._done.acquire(timeout=timeout):
            raise TimeoutError
        self._done.release()
        assert self._value is not None
        return self._value()
