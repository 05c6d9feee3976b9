"""The semaphore of a world: its threads wait for it, and all locks are made of it."""

from collections import deque

from stablecast.lab.world.kernel import Kernel, SimulatedThread


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
