"""The event loop of a simulated thread: asyncio's own, on a simulated selector, clock and signals.

Everything above the sockets is the code of asyncio: tasks, transports, servers, streams, TLS, timeouts. So what works
in asyncio works here, and what is not simulated is refused by a sentence that names it.
"""

import asyncio
import itertools
import signal
import socket
import traceback
import weakref
from asyncio import selector_events
from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import Context
from heapq import heapify, heappop, heappush
from typing import Any, NoReturn, Protocol, TypeVar, TypeVarTuple, Unpack

from stablecast.lab.world.clock import HostClock
from stablecast.lab.world.handles import SoonHandle, SoonTimer
from stablecast.lab.world.kernel import Kernel, ProcessGone, SimulatedThread
from stablecast.lab.world.selector import FREE_TURNS, READ, WRITE, Selectable, Selector

SUBPROCESS = "start a program of its own with World.start"
"""The remedy for a program that wants a subprocess."""

ResultT = TypeVar("ResultT")
ArgsT = TypeVarTuple("ArgsT")


FEW_CANCELLED = 100
"""Cancelled timers that a loop keeps, whatever their share of all timers is."""

LONGEST_WAIT = 86_400
"""The longest wait of a turn in s, as in asyncio."""

CLOSINGS = 100
"""Awaits in `finally` clauses that are ended when a process is disposed of."""


class SimulatedTask(asyncio.Task[ResultT]):
    """A task that a set orders by its number, not by its address, so that a seed repeats `for task in done`."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class SimulatedFuture(asyncio.Future[ResultT]):
    """A future that a set orders by the number of its first use in a set."""

    number = 0

    def __hash__(self) -> int:
        if not self.number:
            self.number = self.get_loop().next_number()  # type: ignore[attr-defined]
        return self.number


class GeneratorSet:
    """Asynchronous generators that are not finished, in the order in which they were begun."""

    def __init__(self) -> None:
        self._generators: dict[int, weakref.ref[Any]] = {}

    def add(self, generator: Any) -> None:
        self._generators[id(generator)] = weakref.ref(generator, lambda _: self._generators.pop(id(generator), None))

    def discard(self, generator: Any) -> None:
        self._generators.pop(id(generator), None)

    def clear(self) -> None:
        self._generators.clear()

    def __len__(self) -> int:
        return len(self._generators)

    def __iter__(self) -> Iterator[Any]:
        return iter([one for reference in self._generators.values() if (one := reference()) is not None])


class LoopHost(Protocol):
    clock: HostClock


class LoopConsole(Protocol):
    def write(self, text: str) -> int: ...


class LoopOwner(Protocol):
    name: str
    gone: bool
    kernel: Kernel
    loops: "list[SimulatedEventLoop]"
    signals: dict[int, Callable[[], object]]

    @property
    def host(self) -> LoopHost: ...

    @property
    def console(self) -> LoopConsole: ...

    def start_thread(self, target: Callable[[], object], name: str) -> SimulatedThread: ...

    def addresses(self, host: Any, port: Any, kind: int = 0, proto: int = 0, flags: int = 0) -> list[Any]:
        """Return the answer of getaddrinfo. Raises OSError."""

    def selectable(self, descriptor: int) -> Selectable:
        """Return the socket of a descriptor. Raises OSError."""


class SimulatedTransport(selector_events._SelectorSocketTransport):  # type: ignore[name-defined,misc]
    """A transport whose `writelines` waits behind bytes that wait, so that a seed has one run on all versions.

    Before Python 3.12 asyncio did so. Later versions look for room first.
    """

    def writelines(self, list_of_data: Iterable[bytes]) -> None:
        """Write all parts as one, behind the bytes that wait."""
        self.write(b"".join(list_of_data))


class SimulatedEventLoop(selector_events.BaseSelectorEventLoop):
    _closed: bool
    _debug: bool
    _stopping: bool
    _timer_cancelled_count: int
    _check_closed: Callable[[], None]
    _ready: deque[asyncio.Handle]
    _transports: MutableMapping[int, Any]

    def __init__(self, process: LoopOwner) -> None:
        """Make a loop; the thread that calls it runs it."""
        self.process = process
        self._clock = process.host.clock
        self._kernel = process.kernel
        self._read_at = -1
        self._read = 0.0
        self.alarms = Selector(process.kernel, process, process.host.clock.true_wait)
        super().__init__(self.alarms)
        self._clock_resolution = 1e-9
        self._numbers = itertools.count(1)
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers_of_timers = itertools.count()
        self._next_turn: Any = self.call_soon
        self._asyncgens: Any = GeneratorSet()
        self._jobs: dict[asyncio.Future[Any], None] = {}
        self._handled: set[int] = set()
        self._secured: weakref.WeakSet[Any] = weakref.WeakSet()
        process.loops.append(self)

    def time(self) -> float:
        """Return the monotonic time of the host in s."""
        now = self._kernel.now
        if now != self._read_at:  # A clock is read several times at most moments.
            self._read_at, self._read = now, self._clock.monotonic_ns() / 1e9
        return self._read

    def call_soon(
        self, callback: Callable[[Unpack[ArgsT]], object], *args: *ArgsT, context: Context | None = None
    ) -> asyncio.Handle:
        """Call back in the next turn, as asyncio does, in fewer steps."""
        if self._closed or self._debug:
            return super().call_soon(callback, *args, context=context)
        handle = SoonHandle(callback, args, self, context)
        if args and callback == self._next_turn:  # A driver calls back one turn later: no call makes the second handle.
            later: Any = args
            handle._callback = self._ready.append
            handle._args = (SoonHandle(later[0], later[1:], self, context),)
        self._ready.append(handle)
        return handle

    def _make_socket_transport(
        self, sock: Any, protocol: Any, waiter: Any = None, *, extra: Any = None, server: Any = None
    ) -> SimulatedTransport:
        self._ensure_fd_no_transport(sock)  # type: ignore[attr-defined]
        return SimulatedTransport(self, sock, protocol, waiter, extra, server)

    def _make_ssl_transport(self, *args: Any, **how: Any) -> Any:
        secured = super()._make_ssl_transport(*args, **how)  # type: ignore[misc]
        self._secured.add(secured)
        return secured

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[ArgsT]], object], *args: *ArgsT, context: Context | None = None
    ) -> asyncio.Handle:
        """Call back in the next turn, and end the wait of the loop. Any thread may call this."""
        handle = self.call_soon(callback, *args, context=context)
        self.alarms.alarm()
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[ArgsT]], object],
        *args: *ArgsT,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        if delay is None:
            raise TypeError("delay must not be None")
        now = self._read if self._kernel.now == self._read_at else self.time()
        return self.call_at(now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[ArgsT]], object],
        *args: *ArgsT,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call back at a time in s. Timers of one time are called in the order in which they were set."""
        if when is None:
            raise TypeError("when cannot be None")
        if self._closed:
            self._check_closed()
        timer: asyncio.TimerHandle
        if self._debug:
            timer = asyncio.TimerHandle(when, callback, args, self, context)
            timer._scheduled = True  # type: ignore[attr-defined]
        else:
            timer = SoonTimer(when, callback, args, self, context)
        heappush(self._timers, (when, next(self._numbers_of_timers), timer))
        return timer

    def _forget_cancelled(self) -> None:
        """Forget the cancelled timers before they are due, once they are many."""
        if 2 * self._timer_cancelled_count > len(self._timers):
            self._timers[:] = [one for one in self._timers if not one[2]._cancelled]
            heapify(self._timers)
            self._timer_cancelled_count = 0

    def _run_once(self) -> None:
        """Run turns until the loop stops, as asyncio does, in fewer steps.

        Worlds spend a fifth of their time between callbacks.
        """
        timers, ready, alarms, kernel = self._timers, self._ready, self.alarms, self._kernel
        while True:
            if self._timer_cancelled_count > FEW_CANCELLED:
                self._forget_cancelled()
            while timers and timers[0][2]._cancelled:
                self._timer_cancelled_count -= 1
                heappop(timers)[2]._scheduled = False  # type: ignore[attr-defined]
            if ready or self._stopping:
                if not alarms.candidates and alarms.turns < FREE_TURNS - 1:
                    alarms.turns += 1  # As a look that finds nothing.
                    alarms.alarmed = False
                elif events := alarms.select(0):
                    self._process_events(events)
            elif events := alarms.select(self._wait() if timers else None):
                self._process_events(events)
            if timers:
                end = (self._read if kernel.now == self._read_at else self.time()) + self._clock_resolution
                while timers and timers[0][0] < end:
                    timer = heappop(timers)[2]
                    timer._scheduled = False  # type: ignore[attr-defined]
                    ready.append(timer)
            for _ in range(len(ready)):  # Not what these callbacks add.
                handle = ready.popleft()
                if handle._cancelled:
                    continue
                try:
                    handle._context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
                except (SystemExit, KeyboardInterrupt, ProcessGone):
                    raise
                except BaseException as error:  # noqa: BLE001  # reported, as asyncio does
                    self._report(handle, error)
            if self._stopping:
                if self.process.gone:
                    kernel.running().leave()
                return

    def _wait(self) -> float:
        """Return the time in s until the first timer is due."""
        wait = self._timers[0][0] - (self._read if self._kernel.now == self._read_at else self.time())
        return 0 if wait < 0 else min(wait, LONGEST_WAIT)

    def _process_events(self, event_list: list[Any]) -> None:
        """Append the callbacks of ready sockets."""
        ready = self._ready
        for key, mask in event_list:
            reader, writer = key.data
            if reader is not None and mask & READ:
                if reader._cancelled:
                    self._remove_reader(key.fileobj)  # type: ignore[attr-defined]
                else:
                    ready.append(reader)
            if writer is not None and mask & WRITE:
                if writer._cancelled:
                    self._remove_writer(key.fileobj)  # type: ignore[attr-defined]
                else:
                    ready.append(writer)

    def _report(self, handle: asyncio.Handle, error: BaseException) -> None:
        source = asyncio.format_helpers._format_callback_source(handle._callback, handle._args)  # type: ignore[attr-defined]
        self.call_exception_handler(
            {"message": f"Exception in callback {source}", "exception": error, "handle": handle}
        )

    def next_number(self) -> int:
        """Return a number that no other task or future of the loop has."""
        return next(self._numbers)

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future that has an order in sets."""
        return SimulatedFuture(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None, **how: Any) -> Any:
        """Return a task; its usual name counts the tasks of this loop."""
        if self._task_factory is not None:  # type: ignore[attr-defined]  # that of users
            return super().create_task(coro, name=name, context=context, **how)
        self._check_closed()
        number = self.next_number()
        task: SimulatedTask[Any] = SimulatedTask.__new__(SimulatedTask)
        task.number = number  # The initializer enters the task in sets.
        SimulatedTask.__init__(task, coro, loop=self, name=name or f"Task-{number}", context=context, **how)
        return task

    def call_exception_handler(self, context: Any) -> None:
        """Report what nobody handled, unless the process has ended."""
        if not self.process.gone:
            super().call_exception_handler(context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[ArgsT]], ResultT], *args: *ArgsT
    ) -> asyncio.Future[ResultT]:
        """Run a function in a thread of its own, unless the caller has an executor; return the future of its result."""
        self._check_closed()
        if executor is not None:
            return super().run_in_executor(executor, func, *args)
        future: asyncio.Future[ResultT] = self.create_future()

        def run() -> None:
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001 - it belongs to whoever awaits the future
                self.call_soon_threadsafe(_fail, future, error)
            else:
                self.call_soon_threadsafe(_succeed, future, result)

        self.process.start_thread(run, f"job of {self.process.name}")
        self._jobs[future] = None
        future.add_done_callback(self._jobs.pop)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as in asyncio
        """Wait for the functions of `run_in_executor`."""
        if self._jobs:
            await asyncio.wait(self._jobs, timeout=timeout)

    async def getaddrinfo(self, host: Any, port: Any, **how: Any) -> list[Any]:
        return self.process.addresses(host, port, how.get("type", 0), how.get("proto", 0), how.get("flags", 0))

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        """Return the address itself: a world has no names for it."""
        return str(sockaddr[0]), str(sockaddr[1])

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Print what nobody handled, as asyncio logs it."""
        error = context.get("exception")
        self.process.console.write(f"{context.get('message') or 'Unhandled exception in event loop'}\n")
        if error is not None:
            self.process.console.write("".join(traceback.format_exception(error)))

    def add_signal_handler(self, sig: int, callback: Callable[[Unpack[ArgsT]], Any], *args: *ArgsT) -> None:
        """Call back when the world sends the signal to the process."""
        self._check_closed()
        self._handled.add(sig)
        self.process.signals[sig] = lambda: self.call_soon_threadsafe(callback, *args)

    def remove_signal_handler(self, sig: int) -> bool:
        self._handled.discard(sig)
        return self.process.signals.pop(sig, None) is not None

    def close(self) -> None:
        """Close the loop. It handles no more signals, as on Unix."""
        for sig in tuple(self._handled):
            self.remove_signal_handler(sig)
        super().close()

    async def sendfile(
        self, transport: Any, file: Any, offset: int = 0, count: Any = None, *, fallback: bool = True
    ) -> int:
        """Send a file through a transport, read by read."""
        if not fallback:
            raise asyncio.SendfileNotAvailableError("a world has no sendfile")
        file.seek(offset)
        data = file.read() if count is None else file.read(count)
        transport.write(data)
        return len(data)

    async def subprocess_exec(self, *args: Any, **how: Any) -> NoReturn:
        """Refuse, because a world has no such thing."""
        _refuse("a subprocess", SUBPROCESS)

    async def subprocess_shell(self, *args: Any, **how: Any) -> NoReturn:
        """Refuse, because a world has no such thing."""
        _refuse("a subprocess", SUBPROCESS)

    async def connect_read_pipe(self, *args: Any) -> NoReturn:
        """Refuse, because a world has no such thing."""
        _refuse("a pipe", "use a stream")

    async def connect_write_pipe(self, *args: Any) -> NoReturn:
        """Refuse, because a world has no such thing."""
        _refuse("a pipe", "use a stream")

    async def create_unix_connection(self, *args: Any, **how: Any) -> NoReturn:
        """Refuse, because a world has no such thing."""
        _refuse("a Unix socket", "use TCP at 127.0.0.1")

    async def create_unix_server(self, *args: Any, **how: Any) -> NoReturn:
        """Refuse, because a world has no such thing."""
        _refuse("a Unix socket", "use TCP at 127.0.0.1")

    def halt(self) -> None:
        """Call nothing back any more: the process has ended, perhaps in the middle of a turn."""
        for handle in self._ready:
            handle.cancel()
        self._stopping = True

    def dispose(self) -> None:
        """Release the tasks and transports of a process that has ended; nothing is reported."""
        tasks = [task for task in asyncio.all_tasks(self) if isinstance(task, SimulatedTask)]
        self._closed = True
        self._check_closed = lambda: None  # Coroutines that are closed now may use it.
        for task in sorted(tasks, key=hash):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            _close(task.get_coro())
        self._ready.clear()
        self._timers.clear()
        for transport in list(self._transports.values()):
            transport._sock, transport._closing = None, True  # The finalizers would report an unclosed transport.
        for secured in self._secured:
            secured._closed = True
        self.alarms.close()

    def _make_self_pipe(self) -> None:
        """Make none: the selector is alarmed instead."""
        self._ssock = self._csock = None

    def _close_self_pipe(self) -> None:
        pass

    def _write_to_self(self) -> None:
        self.alarms.alarm()


HANG_UP = signal.SIGHUP
ENDING = (signal.SIGINT, signal.SIGTERM, HANG_UP)
"""Signals that end a process unless it handles them."""


def _close(coroutine: Any) -> None:
    """Close a coroutine; each try ends one more await of its `finally` clauses."""
    for _ in range(CLOSINGS):
        with suppress(BaseException):  # A coroutine may do anything when it is closed.
            coroutine.close()
            return


def _refuse(what: str, remedy: str) -> NoReturn:
    raise NotImplementedError(f"a world does not simulate {what}: {remedy}")


def _succeed(future: "asyncio.Future[Any]", result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def address_info(address: str, port: int, kind: int, proto: int) -> list[Any]:
    """Return the answer of getaddrinfo for an IPv4 address."""
    kinds = [(socket.SOCK_STREAM, socket.IPPROTO_TCP), (socket.SOCK_DGRAM, socket.IPPROTO_UDP)]
    return [
        (socket.AF_INET, one, number, "", (address, port))
        for one, number in kinds
        if kind in (0, one) and proto in (0, number)
    ]
