"""Several stores in one process, each on a loop of its own in a thread of its own (P-125).

A store that computes does not hold up the sync reports or the streams of another for longer than the interpreter's
switch interval, and their journals lie on as many disks as are given. Threads share one interpreter: stores that need a
core each are given a daemon each.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from stablecast.daemon.observe import Watched
from stablecast.daemon.settings import StoreSettings
from stablecast.daemon.store import Store
from stablecast.journal import JournalError

NewLoop = Callable[[], asyncio.AbstractEventLoop]


class Host:
    """The thread of one store. `failed` is a future of the owner's loop: why the store serves no more."""

    def __init__(self, settings: StoreSettings, new_loop: NewLoop) -> None:
        """A store that has not started; made on the owner's loop."""
        self.store = Store(settings)
        self.loop = new_loop()
        self.failed: asyncio.Future[JournalError] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.get_running_loop()
        # A daemon thread: a second interrupt ends the process, whatever a disk is doing (P-708).
        self._thread = threading.Thread(target=self._run, name=f"store-{settings.name}", daemon=True)

    async def start(self) -> None:
        """Start thread and store. Raises like `Store.start`."""
        self._thread.start()
        try:
            await self._on_loop(self.store.start)
        except BaseException:
            await self._end()
            raise
        self.loop.call_soon_threadsafe(self.store.failed.add_done_callback, self._on_failed)

    async def stop(self) -> None:
        """Stop both. Raises like `Store.stop`."""
        try:
            await self._on_loop(self.store.stop)
        finally:
            await self._end()

    async def _on_loop(self, coroutine: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine(), self.loop))

    async def _end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        await self._owner.run_in_executor(None, self._thread.join)

    def _on_failed(self, failed: "asyncio.Future[JournalError]") -> None:
        self._owner.call_soon_threadsafe(self.failed.set_result, failed.result())

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()


class Hosts:
    """The stores of a daemon."""

    def __init__(self, settings: Sequence[StoreSettings], new_loop: NewLoop) -> None:
        """Stores that have not started."""
        self.hosts = [Host(one, new_loop) for one in settings]
        self.watched = [Watched(host.store, host.loop, at) for at, host in enumerate(self.hosts)]

    async def start(self) -> None:
        """Start all, one after the other; if one cannot be started those before it are stopped. Raises like a store."""
        started: list[Host] = []
        try:
            for host in self.hosts:
                await host.start()
                started.append(host)
        except BaseException:
            for host in started:
                await host.stop()
            raise

    async def failure(self) -> JournalError:
        """Wait until one fails; for ever if there are none."""
        if not self.hosts:
            await asyncio.get_running_loop().create_future()
        done, _ = await asyncio.wait([host.failed for host in self.hosts], return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()

    async def stop(self) -> None:
        """Stop all. Raises the first error of a store that failed, when all are stopped."""
        results = await asyncio.gather(*(host.stop() for host in self.hosts), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
