"""The event loop of a simulated thread: asyncio's own, on a simulated selector, clock and signals.

Everything above the sockets is the code of asyncio: tasks, transports, servers, streams, TLS, timeouts. So what works in
asyncio works here, and what is not simulated is refused by a sentence that names it.
"""

import asyncio
import signal
import socket
from asyncio import selector_events
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from stablecast.lab.world.selector import Selector

if TYPE_CHECKING:
    from stablecast.lab.world.process import Process


class SimulatedEventLoop(selector_events.BaseSelectorEventLoop):
    """An event loop of a process of the world."""

    def __init__(self, process: "Process") -> None:
        """Make a loop; the thread that calls it runs it."""
        self.process = process
        self._clock = process.host.clock
        self.alarms: Selector = Selector(process.kernel, process, process.host.clock.true_wait)
        super().__init__(self.alarms)
        self._clock_resolution = 1e-9
        process.loops.append(self)

    def time(self) -> float:
        """Return the monotonic time of the host in s."""
        return self._clock.monotonic_ns() / 1e9

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]
        """Run a function in a thread of its own; return the future of its result."""
        future: asyncio.Future[Any] = self.create_future()

        def run() -> None:
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001 - it belongs to whoever awaits the future
                self.call_soon_threadsafe(_fail, future, error)
            else:
                self.call_soon_threadsafe(_succeed, future, result)

        self.process.start_thread(run, f"job of {self.process.name}")
        return future

    async def getaddrinfo(self, host: Any, port: Any, **how: Any) -> list[Any]:  # type: ignore[override]
        """Resolve a host of the world."""
        return self.process.addresses(host, port, how.get("type", 0), how.get("proto", 0))

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        """Return the address itself: a world has no names for it."""
        return str(sockaddr[0]), str(sockaddr[1])

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:
        """Call back when the world sends the signal to the process."""
        self.process.signals[sig] = lambda: self.call_soon_threadsafe(callback, *args)

    def remove_signal_handler(self, sig: int) -> bool:
        """Handle a signal no more; return whether it was handled."""
        return self.process.signals.pop(sig, None) is not None

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

    async def subprocess_exec(self, *args: Any, **how: Any) -> NoReturn:  # type: ignore[override]
        """Refuse."""
        _refuse("a subprocess", "start a program of its own with World.start")

    async def subprocess_shell(self, *args: Any, **how: Any) -> NoReturn:  # type: ignore[override]
        """Refuse."""
        _refuse("a subprocess", "start a program of its own with World.start")

    async def connect_read_pipe(self, *args: Any) -> NoReturn:  # type: ignore[override]
        """Refuse."""
        _refuse("a pipe", "use a stream")

    async def connect_write_pipe(self, *args: Any) -> NoReturn:  # type: ignore[override]
        """Refuse."""
        _refuse("a pipe", "use a stream")

    async def create_unix_connection(self, *args: Any, **how: Any) -> NoReturn:  # type: ignore[override]
        """Refuse."""
        _refuse("a Unix socket", "use TCP at 127.0.0.1")

    async def create_unix_server(self, *args: Any, **how: Any) -> NoReturn:  # type: ignore[override]
        """Refuse."""
        _refuse("a Unix socket", "use TCP at 127.0.0.1")

    def _make_self_pipe(self) -> None:
        """Make none: the selector is alarmed instead."""
        self._ssock = self._csock = None

    def _close_self_pipe(self) -> None:
        pass

    def _write_to_self(self) -> None:
        self.alarms.alarm()


def default_signals() -> dict[int, Callable[[], object]]:
    """Return no handlers: the world ends a process that handles no signal."""
    return {}


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a process unless it handles them."""


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
