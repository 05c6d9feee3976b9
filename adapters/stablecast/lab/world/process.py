"""One program on a host: its threads, sockets and signals, and its end."""

import asyncio
import errno
import random
import socket
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from stablecast.lab.world import event_loop
from stablecast.lab.world.datagrams import DatagramSocket
from stablecast.lab.world.event_loop import SimulatedEventLoop, address_info
from stablecast.lab.world.filesystem import FileSystem
from stablecast.lab.world.kernel import Owner, Thread
from stablecast.lab.world.network import refusal
from stablecast.lab.world.sockets import SimulatedSocket
from stablecast.lab.world.streams import StreamSocket

if TYPE_CHECKING:
    from stablecast.lab.world.host import Host

DESCRIPTORS = 1_024
"""Sockets that a process may have open."""

FIRST_DESCRIPTOR = 2_000_000
"""Number of the first simulated socket, far above the descriptors of the system."""


CLOSINGS = 100
"""Awaits in `finally` clauses that are ended when a process is disposed of."""


class Console:
    """The output of a process, line by line."""

    encoding = "utf-8"

    def __init__(self, lines: list[str]) -> None:
        """Append the lines of a process to a list."""
        self._lines = lines
        self._begun = ""

    def write(self, text: str) -> int:
        """Write text."""
        *lines, self._begun = (self._begun + text).split("\n")
        self._lines += lines
        return len(text)

    def flush(self) -> None:
        """Do nothing: whole lines are there already."""

    def isatty(self) -> bool:
        """Return False."""
        return False


class Process(Owner):
    """A program that runs until its function returns, or until the world kills it.

    Attributes:
        gone: It has ended.
        runs: It is not stopped.
        error: The exception that ended it.
        status: What its function returned.
        output: Lines that it printed.
    """

    def __init__(self, host: "Host", name: str, number: int) -> None:
        """Make a process; `run` or `call` starts it."""
        self.host = host
        self.clock = host.clock
        self.kernel = host.kernel
        self.name = name
        self.number = number
        self.gone = False
        self.runs = True
        self.error: BaseException | None = None
        self.status: Any = None
        self.output: list[str] = []
        self.console = Console(self.output)
        self.at_exit: list[Callable[[], object]] = []
        self.loops: list[SimulatedEventLoop] = []
        self.signals: dict[int, Callable[[], object]] = event_loop.default_signals()
        self.random = random.Random(self.kernel.random.getrandbits(64))  # noqa: S311 - a seed must repeat its run
        self.limit = DESCRIPTORS
        self.files = FileSystem(host.disk, host.descriptors)
        self._threads: list[Thread] = []
        self._postponed: list[Callable[[], object]] = []
        self._sockets: dict[int, SimulatedSocket] = {}
        self._next_descriptor = FIRST_DESCRIPTOR
        self._waiting: list[Thread] = []

    # -------------------------------------------------------------------------------------------------------- life

    def run(self, main: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Start a coroutine function on an event loop of its own; the process ends with it."""
        self.call(lambda: run_loop(self.new_loop(), main()))

    def call(self, main: Callable[[], Any]) -> None:
        """Start a function; the process ends with it."""

        def body() -> None:
            try:
                self.status = main()
            except SystemExit as exit_:
                self.status = exit_.code
            else:
                for callback in self.at_exit:
                    callback()
            finally:
                if not self.gone:
                    self.kernel.after(0, self.end)

        self.start_thread(body, self.name)

    def start_thread(self, target: Callable[[], object], name: str) -> Thread:
        """Start a thread of the process."""
        thread = Thread(self.kernel, self, name, target)
        self._threads.append(thread)
        thread.start()
        return thread

    def new_loop(self) -> SimulatedEventLoop:
        """Return a new event loop."""
        return SimulatedEventLoop(self)

    def signal(self, number: int) -> None:
        """Send a signal: its handler is called, or the process ends."""
        handler = self.signals.get(number)
        if handler is not None:
            handler()
        else:
            self.kill()

    def stop(self) -> None:
        """Let none of its threads run; its sockets go on receiving."""
        self.runs = False

    def resume(self) -> None:
        """Let its threads run again."""
        self.runs = True
        postponed, self._postponed = self._postponed, []
        for act in postponed:
            self.kernel.after(self.kernel.random.randrange(1_000), act)

    def kill(self, *, power: bool = False) -> None:
        """End the process: nothing of it runs any more. Without `power` the peers of its connections learn it."""
        if self.gone:
            return
        self.gone = True
        self.files.kill()
        for sock in list(self._sockets.values()):
            if isinstance(sock, StreamSocket) and sock.end is not None and power:
                sock.end.lose_host()
            elif isinstance(sock, StreamSocket) and sock.end is not None and sock.end.inbox:
                sock.abandon()
            sock.close()
        self._sockets.clear()
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            thread.wake()

    def end(self) -> None:
        """End the process as a program that returns does."""
        self.host.on_end(self)
        self.kill()

    async def wait(self) -> Any:
        """Wait until the process has ended, in another process; return its status."""
        loop = asyncio.get_running_loop()
        if not self.gone:
            done = asyncio.Event()
            self._waiting.append(_Waker(lambda: loop.call_soon_threadsafe(done.set)))  # type: ignore[arg-type]
            await done.wait()
        return self.status

    def dispose(self) -> list[Thread]:
        """Release the memory of a process and return its threads; `finally` clauses run in a world without effect."""
        self.gone = True
        for thread in self._threads:
            self.kernel.current = thread
            thread.dispose()
        self.kernel.current = None
        for loop in self.loops:
            for task in asyncio.all_tasks(loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _close(task.get_coro())
            loop._ready.clear()  # type: ignore[attr-defined]
            loop._scheduled.clear()  # type: ignore[attr-defined]
            for transport in list(loop._transports.values()):  # type: ignore[attr-defined]
                transport._closing, transport._sock = True, None  # Otherwise Python warns of each.
            loop._closed = True  # type: ignore[attr-defined]
        threads, self._threads = self._threads, []
        return threads

    # ----------------------------------------------------------------------------------------------------- as an owner

    def postpone(self, act: Callable[[], object]) -> None:
        """Call `act` when the process goes on."""
        self._postponed.append(act)

    def on_error(self, thread: Thread, error: BaseException) -> None:
        """Keep the exception that ended a thread, and end the process."""
        if self.error is None:
            self.error = error
        self.host.on_error(self, error)

    # --------------------------------------------------------------------------------------------------------- sockets

    def socket(self, kind: int = socket.SOCK_STREAM, proto: int = 0) -> SimulatedSocket:
        """Return a new socket. Raises OSError."""
        bare = socket.SocketKind(kind & 0xF)
        return (StreamSocket if bare is socket.SOCK_STREAM else DatagramSocket)(self, bare, proto)

    def open(self, sock: SimulatedSocket) -> int:
        """Give a socket a descriptor. Raises OSError if the process has too many."""
        if len(self._sockets) >= self.limit:
            raise refusal(errno.EMFILE)
        self._next_descriptor += 1
        self._sockets[self._next_descriptor] = sock
        return self._next_descriptor

    @property
    def free_descriptors(self) -> int:
        """The number of sockets that the process may still open."""
        return self.limit - len(self._sockets)

    def forget(self, descriptor: int) -> None:
        """Take back a descriptor."""
        self._sockets.pop(descriptor, None)

    def selectable(self, descriptor: int) -> SimulatedSocket:
        """Return the socket of a descriptor. Raises OSError."""
        sock = self._sockets.get(descriptor)
        if sock is None:
            raise refusal(errno.EBADF)
        return sock

    def resolve(self, name: str) -> str:
        """Return the address of a host name. Raises OSError."""
        try:
            socket.inet_aton(name)
        except OSError:
            pass
        else:
            return name
        try:
            return self.host.network.resolve(name)
        except KeyError:
            raise socket.gaierror(socket.EAI_NONAME, f"the world has no host {name}") from None

    def addresses(self, host: Any, port: Any, kind: int = 0, proto: int = 0) -> list[Any]:
        """Return the answer of getaddrinfo. Raises OSError."""
        name = host.decode() if isinstance(host, bytes) else (host or "127.0.0.1")
        return address_info(self.resolve(name), int(port or 0), kind, proto)


class _Waker:
    """Something that is woken like a thread."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self.wake = wake


def run_loop(loop: SimulatedEventLoop, main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end on a loop, cancel what is left, and close the loop, as `asyncio.run` does."""
    try:
        return loop.run_until_complete(main)
    finally:
        if not loop.process.gone:
            _cancel_rest(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


def _close(coroutine: Any) -> None:
    """Close a coroutine; each try ends one more await of its `finally` clauses."""
    for _ in range(CLOSINGS):
        try:
            coroutine.close()
        except BaseException:  # noqa: BLE001 - a coroutine may do anything when it is closed
            continue
        break


def _cancel_rest(loop: SimulatedEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in sorted(left, key=lambda one: one.get_name()):  # A set has the order of addresses.
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
