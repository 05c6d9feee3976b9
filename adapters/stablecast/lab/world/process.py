"""One program on a host: its threads, sockets and signals, and its end."""

import asyncio
import errno
import io
import logging
import random
import signal
import socket
import weakref
from collections.abc import Callable, Coroutine, Sequence
from itertools import count
from typing import Any, Protocol

from stablecast.lab.world.clock import HostClock
from stablecast.lab.world.datagrams import UdpSocket
from stablecast.lab.world.disk import SimulatedDisk
from stablecast.lab.world.event_loop import SimulatedEventLoop, address_info
from stablecast.lab.world.filesystem import FileSystem
from stablecast.lab.world.kernel import Kernel, Owner, SimulatedThread
from stablecast.lab.world.network import ANY, LOOPBACK, NetworkHost, refusal
from stablecast.lab.world.sockets import SimulatedSocket
from stablecast.lab.world.streams import TcpSocket

FIRST_DESCRIPTOR = 2_000_000
"""Number of the first simulated socket, far above the descriptors of the system."""


_STOPPING = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
_IGNORED = frozenset({signal.SIGCONT, signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGPIPE})
"""Signals that stop a process, and those that do nothing, unless it handles them."""


class Console(io.TextIOBase):
    """The output of a process, line by line."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, lines: list[str]) -> None:
        """Append the lines of a process to a list."""
        self._lines = lines
        self._begun = ""

    def write(self, text: str) -> int:
        """Append text; each newline ends a line."""
        *lines, self._begun = (self._begun + text).split("\n")
        self._lines += lines
        return len(text)

    def flush(self) -> None:
        """Do nothing: whole lines are there already."""

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        """Return True, because it is written only."""
        return True

    @property
    def buffer(self) -> "ConsoleBytes":
        return ConsoleBytes(self)


class ConsoleBytes(io.RawIOBase):
    """A console that takes bytes of UTF-8."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def write(self, octets: Any, /) -> int:
        """Append the text of whole characters."""
        self._console.write(bytes(octets).decode("utf-8", "replace"))
        return len(octets)


class ProcessHost(NetworkHost, Protocol):
    kernel: Kernel
    clock: HostClock
    environment: dict[str, str]
    disk: SimulatedDisk
    descriptors: "count[int]"

    @property
    def running(self) -> "Sequence[SimulatedProcess]": ...

    def on_end(self, process: "SimulatedProcess") -> None:
        """Note that a process has ended by itself."""

    def on_error(self, process: "SimulatedProcess", error: BaseException) -> None:
        """Note an exception that ended a thread of a process."""


class SimulatedProcess(Owner):
    """A program that runs until its function returns, or until the world kills it.

    Attributes:
        gone: It has ended.
        killed: The world has ended it.
        runs: It is not stopped.
        error: The exception that ended it.
        status: What its function returned.
        output: Lines that it printed.
        at_exit: What is called before it ends by itself, the latest first.
        foreground: Calls that return when a thread has ended; it makes them before it ends by itself.
        environment: Its environment variables.
        memory: What replaced functions keep for the process.
        reference: A weak reference to it.
    """

    def __init__(self, host: ProcessHost, name: str, number: int) -> None:
        """Make a process; `run` or `call` starts it."""
        self.reference = weakref.ref(self)
        self.host = host
        self.clock = host.clock
        self.kernel = host.kernel
        self.name = name
        self.number = number
        self.gone = False
        self.killed = False
        self.runs = True
        self.error: BaseException | None = None
        self.status: Any = None
        self.output: list[str] = []
        self.console = Console(self.output)
        self.at_exit: list[Callable[[], object]] = []
        self.foreground: list[Callable[[], object]] = []
        self.environment = dict(host.environment)
        self.memory: dict[Any, Any] = {}
        self.loops: list[SimulatedEventLoop] = []
        self.signals: dict[int, Callable[[], object]] = {}
        self.random = random.Random(self.kernel.random.getrandbits(64))  # noqa: S311 - a seed must repeat its run
        self.files = FileSystem(host.disk, host.descriptors)
        self.main: SimulatedThread | None = None
        self.interrupts: list[Callable[[], object]] = []
        self._threads: list[SimulatedThread] = []
        self._postponed: list[Callable[[], object]] = []
        self._sockets: dict[int, SimulatedSocket] = {}
        self._next_descriptor = FIRST_DESCRIPTOR
        self._waiting: list[SimulatedThread] = []

    # -------------------------------------------------------------------------------------------------------- life

    def run(self, main: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Start a coroutine function on an event loop of its own; the process ends with it."""
        self.call(lambda: run_loop(self.new_loop(), main()))

    def call(self, main: Callable[[], Any]) -> None:
        def body() -> None:
            try:
                self.status = main()
            except SystemExit as exit_:
                self.status = exit_.code
            finally:
                if not self.gone:
                    self._finish()

        self.main = self.start_thread(body, self.name)

    def _finish(self) -> None:
        """End as an interpreter does: wait for the threads that are no daemons, then call what waits for the exit."""
        try:
            while self.foreground:
                self.foreground.pop(0)()
            while self.at_exit:
                self.at_exit.pop()()
        finally:
            self.kernel.after(0, self.end)

    def start_thread(self, target: Callable[[], object], name: str) -> SimulatedThread:
        thread = SimulatedThread(self.kernel, self, name, target)
        self._threads.append(thread)
        thread.start()
        return thread

    def new_loop(self) -> SimulatedEventLoop:
        return SimulatedEventLoop(self)

    def signal(self, number: int) -> None:
        """Send a signal: its handler is called, or the process ends, or it stops or goes on."""
        handler = self.signals.get(number)
        if number == signal.SIGKILL:
            self.kill()
        elif number in _STOPPING:
            self.stop()
        elif handler is not None:
            handler()
        elif number == signal.SIGINT:
            self.interrupt(_raise_interrupt)
        elif number not in _IGNORED:
            self.kill()
        if number == signal.SIGCONT:
            self.resume()

    def interrupt(self, act: Callable[[], object]) -> None:
        """Call `act` soon in the main thread, also while that blocks."""
        self.interrupts.append(act)
        if self.main is not None:
            self.main.wake()

    def on_resume(self, thread: SimulatedThread) -> None:
        """Make the calls of `interrupt` in the main thread."""
        while self.interrupts and thread is self.main:
            self.interrupts.pop(0)()

    def stop(self) -> None:
        """Let none of its threads run; its sockets go on receiving."""
        self.runs = False

    def resume(self) -> None:
        """Let its threads run again."""
        self.runs = True
        postponed, self._postponed = self._postponed, []
        for act in postponed:
            self.kernel.after(self.kernel.random.randrange(1_000), act)

    def kill(self, *, power: bool = False, ordered: bool = False) -> None:
        """End the process: nothing of it runs any more. Without `power` the peers of its connections learn it."""
        if self.gone:
            return
        self.killed = power or ordered
        self.gone = True
        self.files.kill()
        for sock in list(self._sockets.values()):
            if power:
                sock.lose_power()
            sock.abandon()
        self._sockets.clear()
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            thread.wake()

    def end(self) -> None:
        if not self.gone:
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

    def dispose(self) -> None:
        """Release the memory of a process; `finally` clauses run in a world without effect."""
        self.gone = True
        disabled = logging.root.manager.disable
        logging.disable()  # Programs log what fails while they are released.
        for loop in self.loops:
            loop.halt()
        for thread in self._threads:
            thread.dispose()
        self.kernel.current = self._threads[-1] if self._threads else None  # For what is closed now.
        for loop in self.loops:
            loop.dispose()
        self.kernel.current = None
        logging.disable(disabled)
        self._threads.clear()

    # ----------------------------------------------------------------------------------------------------- as an owner

    def postpone(self, act: Callable[[], object]) -> None:
        self._postponed.append(act)

    def on_error(self, thread: SimulatedThread, error: BaseException) -> None:
        """Keep the exception that ended a thread, and end the process."""
        if self.error is None:
            self.error = error
        self.host.on_error(self, error)

    # --------------------------------------------------------------------------------------------------------- sockets

    def socket(self, kind: int = socket.SOCK_STREAM, proto: int = 0) -> SimulatedSocket:
        """Return a new socket. Raises OSError."""
        bare = socket.SocketKind(kind & 0xF)
        return (TcpSocket if bare is socket.SOCK_STREAM else UdpSocket)(self, bare, proto)

    def open(self, sock: SimulatedSocket) -> int:
        """Give a socket a descriptor. Raises OSError if the process has too many."""
        self.files.check_limit()
        self._next_descriptor += 1
        self._sockets[self._next_descriptor] = sock
        self.files.reserved_descriptors = len(self._sockets)
        return self._next_descriptor

    @property
    def limit(self) -> int:
        """The number of descriptors that the process may have open, of sockets and files."""
        return self.files.descriptor_limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self.files.descriptor_limit = limit

    @property
    def free_descriptors(self) -> int:
        """The number of descriptors that the process may still open."""
        return max(0, self.limit - len(self._sockets) - self.files.open_descriptors)

    def forget(self, descriptor: int) -> None:
        self._sockets.pop(descriptor, None)
        self.files.reserved_descriptors = len(self._sockets)

    def selectable(self, descriptor: int) -> SimulatedSocket:
        sock = self._sockets.get(descriptor)
        if sock is None:
            raise refusal(errno.EBADF)
        return sock

    def resolve(self, name: str) -> str:
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

    def addresses(self, host: Any, port: Any, kind: int = 0, proto: int = 0, flags: int = 0) -> list[Any]:
        nobody = ANY if flags & socket.AI_PASSIVE else LOOPBACK
        name = host.decode() if isinstance(host, bytes) else (host or nobody)
        return address_info(self.resolve(name), int(port or 0), kind, proto)


class _Waker:
    """Something that is woken like a thread."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self.wake = wake


def _raise_interrupt() -> None:
    raise KeyboardInterrupt


def run_loop(loop: SimulatedEventLoop, main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end on a loop, cancel what is left, and close the loop, as `asyncio.run` does."""
    try:
        return loop.run_until_complete(main)
    finally:
        if not loop.process.gone:
            _cancel_rest(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


def _cancel_rest(loop: SimulatedEventLoop) -> None:
    left = sorted(asyncio.all_tasks(loop), key=hash)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
