"""An event loop in a thread of its own, and calls into it that block.

A forked process has the objects and not the thread, so every call there is refused: it would wait for ever.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from stablecast.client import Closed
from stablecast.client.loop_ownership import OPEN, watch_forks
from stablecast.core.errors import MisuseError
from stablecast.runtime import machine

T = TypeVar("T")

FORKED: Final = (
    "this process was forked from the one that opened the context, and has no thread for it: make another Context here"
)
"""The text of the error of a call in a forked process."""


class LoopThread:
    """A thread that runs an event loop from `start` until `stop`.

    Attributes:
        forked: True in a process that was forked from the one with the thread.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ident = 0
        self._thread: machine.Thread | None = None
        self._submitting = machine.threads.lock()  # A call that found the loop running must reach it before its end.
        self.forked = False

    @property
    def running(self) -> bool:
        return self._thread is not None

    def disown(self) -> None:
        """Refuse every later call in this process, which was forked from the one that has the thread."""
        self.forked, self._thread = True, None
        self._submitting = machine.threads.lock()  # A thread that is not here may have held the other.

    def start(self) -> None:
        """Start the thread. Raises MisuseError if it runs, or if threads were replaced."""
        if self._thread is not None:
            raise MisuseError("the context is open already: make another Context")
        if self.forked:
            raise MisuseError(FORKED)
        started: Any = machine.threads.future()
        watch_forks()
        OPEN.add(self)
        try:
            self._thread = machine.threads.start("stablecast-sync", self._run, started)
        except machine.ReplacedThreadsError as error:
            raise MisuseError(str(error)) from None
        self._loop: asyncio.AbstractEventLoop = started.result()

    def _run(self, started: Any) -> None:
        loop = machine.process.new_loop()
        self._ident = machine.threads.ident()
        asyncio.set_event_loop(loop)
        started.set_result(loop)
        try:
            loop.run_forever()
            loop.run_until_complete(self._abandon())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread and return its result.

        A caller that is interrupted cancels it.

        Raises:
            MisuseError: This is the thread itself, which would wait for itself.
            Closed: The thread has stopped, or stops before the result is there.
        """
        result: Any = machine.threads.future()
        began: list[asyncio.Task[T]] = []
        try:
            with self._submitting:
                self._check()
                self._loop.call_soon_threadsafe(self._begin, coroutine, result, began)
        except BaseException:
            coroutine.close()
            raise
        try:
            found: T = result.result()
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in began])
            raise
        return found

    def call(self, function: Callable[..., T], *arguments: Any, **more: Any) -> T:
        """Call a function in the thread and return its result. Raises like `run`."""

        async def called() -> T:
            return function(*arguments, **more)

        return self.run(called())

    def stop(self) -> None:
        """End the loop and the thread. A second call does nothing."""
        OPEN.discard(self)
        with self._submitting:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
        if thread is not None:
            thread.join()

    async def _abandon(self) -> None:
        """Cancel the calls that still wait. Their callers get Closed."""
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait([*self._tasks])

    def _check(self) -> None:
        if self.forked:
            raise MisuseError(FORKED)
        if self._thread is None:
            raise Closed("the context is not open: use it inside 'with'")
        if machine.threads.ident() == self._ident:
            raise MisuseError(
                "a callback must not block: give the work to another thread, or use stablecast.client with asyncio"
            )

    def _begin(self, coroutine: Coroutine[Any, Any, T], result: Any, began: list["asyncio.Task[T]"]) -> None:
        task = self._loop.create_task(coroutine)
        began.append(task)
        self._tasks.add(task)
        task.add_done_callback(partial(self._end, result))

    def _end(self, result: Any, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if task.cancelled():
            result.set_exception(Closed("the call was cancelled, because the context is closed"))
        elif (error := task.exception()) is not None:
            result.set_exception(error)
        else:
            result.set_result(task.result())
