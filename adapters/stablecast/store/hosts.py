"""Several stores in one process, each on a loop of its own in a thread of its own (P-125).

A store that computes delays the sync reports and streams of another by the interpreter's switch interval at most.
Threads share one interpreter, so stores that need a core each should get a daemon each.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import attrs

from stablecast.config.plan import StoreLimits
from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.runtime import address, machine
from stablecast.runtime.event_loop import limit_scarcity_reports
from stablecast.store.failed_stores import ROOM_SECONDS, FreeSpace, RestartBackoff, is_no_room, remedy
from stablecast.store.journal import JournalError
from stablecast.store.log_lines import Severity
from stablecast.store.observatory import WatchedStore
from stablecast.store.settings import StoreSettings
from stablecast.store.store import Store
from stablecast.text.scarcity import is_scarce

NewLoop = Callable[[], asyncio.AbstractEventLoop]


class Host:
    """The thread of one store. `failed` is a future of the owner's loop with the error that ended the service."""

    def __init__(self, settings: StoreSettings, new_loop: NewLoop, index: int = 0) -> None:
        """Make a store that has not started, number `index` of its daemon. Call this on the owner's loop."""
        self.store = Store(settings)
        self.loop = new_loop()
        limit_scarcity_reports(self.loop)
        self.watched = WatchedStore(self.store, self.loop, index)
        self.watched.resume = self.resume
        self._settings = settings
        self._owner = asyncio.get_running_loop()
        self.failed: asyncio.Future[JournalError] = self._owner.create_future()
        self._parked = False
        self._asked = asyncio.Event()
        self._move: asyncio.Task[None] | None = None
        self._thread: machine.Thread | None = None

    async def start(self) -> None:
        """Start the thread and the store. Raises like `Store.start`."""
        self._thread = machine.threads.start(f"store-{self._settings.name}", self._run)
        try:
            await self._on_loop(self.store.start)
        except BaseException:
            await self._end()
            raise
        self._listen_for_failure()

    async def stop(self) -> None:
        """Stop the store and the thread. Raises like `Store.stop`."""
        if self._move is not None:
            await asyncio.wait([self._move])  # Half of a step would leave files open.
        try:
            if self._parked:
                raise self.failed.result()
            await self._on_loop(self.store.stop)
        finally:
            await self._end()

    async def turn(self) -> None:
        """Wait until the loop of the store has turned. It does not while it computes, or waits for a blocked disk."""
        await self._on_loop(partial(asyncio.sleep, 0))

    async def watch_room(self) -> None:
        """Check the free space of the store's file system for ever, and log when it becomes low or enough again."""
        least = self._settings.limits.room_bytes
        while True:
            room = self.store.room
            with suppress(OSError):
                if room.update(await machine.threads.call(machine.files.free_bytes, self._settings.directory)):
                    self._log_room(room)
            await asyncio.sleep(ROOM_SECONDS if least else ROOM_SECONDS * 10)

    async def tend(self) -> None:
        """Park the store whenever its disk fails, and start it again; for ever. See `failed_stores`."""
        backoff = RestartBackoff()
        while True:
            error = await self.failed
            await self._moved(self._park(error))
            wait = backoff.after((machine.clock.monotonic_ns() - self.store.started_at) / SECOND)
            while self._parked:
                await self._until_due(error, wait)
                await self._moved(self._return())
                wait = backoff.after(0)

    def limit(self, limits: StoreLimits) -> None:
        """Let the store follow other limits from now on, also when it returns after a failure."""
        self._settings = attrs.evolve(self._settings, limits=limits)
        self.loop.call_soon_threadsafe(self.store.limit, limits)

    async def resume(self) -> bool:
        """Start a parked store again for an operator; return False if it is not parked. Any loop may call this."""
        if not self._parked:
            return False
        self._owner.call_soon_threadsafe(self._asked.set)
        return True

    async def _moved(self, step: Coroutine[Any, Any, None]) -> None:
        """Complete a step even if the caller is cancelled, because half of it would leave files open."""
        self._move = self._owner.create_task(step)
        await asyncio.shield(self._move)
        self._move = None

    async def _park(self, error: JournalError) -> None:
        """Stop the store; its peers see their connections end."""
        self._parked = True
        self._asked.clear()
        with suppress(StablecastError, OSError):
            await self._on_loop(self.store.stop)
        text = f"the store is parked, the others go on: {remedy(error, self.store.room.least, self.watched.index)}"
        self._settings.log(Severity.ERROR, self._settings.name, "parked", text)

    async def _until_due(self, error: JournalError, wait: float) -> None:
        """Wait for the operator, or for free space if that was lacking and `wait` seconds are over."""
        tried_at = self._owner.time() + wait
        while not self._asked.is_set():
            room = self.store.room
            roomy = is_no_room(error) and room.free >= max(1, room.least)
            if (roomy or is_scarce(error.__cause__)) and self._owner.time() >= tried_at:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(ROOM_SECONDS / 2):
                    await self._asked.wait()
        self._asked.clear()

    async def _return(self) -> None:
        """Start the store again at its old address.

        It is not `new`, because its journal may have lost a registration that a client counts on.
        """
        host, _ = address.parse(self._settings.listen)
        _, port = address.parse(self.store.address)
        settings = attrs.evolve(self._settings, listen=address.join(host, port), new=False)
        store = Store(settings)
        store.draining, store.room = self.store.draining, self.store.room
        try:
            await self._on_loop(store.start)
        except (StablecastError, OSError) as error:
            self._settings.log(Severity.ERROR, self._settings.name, "parked", f"it could not be started again: {error}")
            return
        self.store = self.watched.store = store
        self.failed = self._owner.create_future()
        self._parked = False
        self._listen_for_failure()
        self._settings.log(Severity.WARNING, self._settings.name, "returned", "the store serves again")

    def _log_room(self, room: FreeSpace) -> None:
        where, name = self._settings.directory, self._settings.name
        if room.low:
            text = f"{room.free:,} bytes are free in {where}, fewer than {room.least:,} (limit room-bytes): make room"
            if not room.free:
                text = f"no byte or no inode is free in {where}: make room"
            self._settings.log(Severity.WARNING, name, "room-low", f"{text}, or the store will stop serving")
        else:
            self._settings.log(Severity.INFO, name, "room-back", f"{room.free:,} bytes are free in {where}")

    def _listen_for_failure(self) -> None:
        self.loop.call_soon_threadsafe(self.store.failed.add_done_callback, self._on_failed)

    async def _on_loop(self, coroutine: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine(), self.loop))

    async def _end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        if self._thread is not None:
            await machine.threads.call(self._thread.join)

    def _on_failed(self, failed: "asyncio.Future[JournalError]") -> None:
        self._owner.call_soon_threadsafe(self.failed.set_result, failed.result())

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()


class Hosts:
    """The stores of a daemon, each with its thread."""

    def __init__(self, settings: Sequence[StoreSettings], new_loop: NewLoop) -> None:
        self.hosts = [Host(one, new_loop, at) for at, one in enumerate(settings)]
        self.watched = [host.watched for host in self.hosts]

    async def start(self) -> None:
        """Start all stores in order; if one cannot start, stop those before it. Raises like `Store.start`."""
        started: list[Host] = []
        try:
            for host in self.hosts:
                await host.start()
                started.append(host)
        except BaseException:
            for host in started:
                await host.stop()
            raise

    async def tend(self) -> None:
        """Watch the free space of all stores, park those whose disk fails and start them again; for ever."""
        async with asyncio.TaskGroup() as group:
            for host in self.hosts:
                group.create_task(host.tend())
                group.create_task(host.watch_room())
            if not self.hosts:
                await asyncio.get_running_loop().create_future()

    async def stop(self) -> None:
        """Stop all stores, then raise the error of the first that failed."""
        results = await asyncio.gather(*(host.stop() for host in self.hosts), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
