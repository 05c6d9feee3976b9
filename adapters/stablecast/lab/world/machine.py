"""The machine of a world: what the shipped programs take from the operating system, for each simulated process.

The objects here have the protocols of `stablecast.runtime.machine`. Each looks up the process of the running thread, so
one installation serves all hosts of a world.
"""

import asyncio
import queue
import socket
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar, cast

from stablecast.lab.world.event_loop import ENDING, HANG_UP, SimulatedEventLoop
from stablecast.lab.world.host_files import HostFiles
from stablecast.lab.world.kernel import Kernel, SimulatedThread
from stablecast.lab.world.locks import Result, SimulatedLock, SimulatedSemaphore
from stablecast.lab.world.process import SimulatedProcess, run_loop
from stablecast.lab.world.sockets import SimulatedSocket
from stablecast.runtime import machine
from stablecast.runtime.machine import datagram_reading
from stablecast.runtime.machine.protocols import DatagramMemory, DatagramReader, Socket

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IFF_UP, _IFF_LOOPBACK, _IFF_MULTICAST = 0x1, 0x8, 0x1000


class WorldPart:
    """One object of the seam; `process` is the process of the running thread."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    @property
    def process(self) -> SimulatedProcess:
        """The process whose thread runs now. Raises WorldError outside of a program."""
        return cast("SimulatedProcess", self._kernel.running().owner)


class WorldClock(WorldPart):
    """The clocks of the running host."""

    def monotonic_ns(self) -> int:
        """Return the monotonic clock in ns."""
        current = self._kernel.current  # The clock is read most often of all.
        return (current or self._kernel.running()).owner.clock.monotonic_ns()

    def monotonic(self) -> float:
        """Return the monotonic clock in seconds."""
        return self.monotonic_ns() / 1e9

    def wall_ns(self) -> int:
        """Return the ns since the epoch."""
        return self.process.host.clock.wall_ns()

    def utc_now(self) -> datetime:
        """Return the wall clock as a date in UTC."""
        return _EPOCH + timedelta(microseconds=self.wall_ns() // 1_000)

    def thread_seconds(self) -> float:
        """Return 0: computing takes no time in a world."""
        return 0.0

    def process_seconds(self) -> float:
        """Return 0: computing takes no time in a world."""
        return 0.0


class WorldEntropy(WorldPart):
    """Entropy that the seed determines."""

    def octets(self, count: int, /) -> bytes:
        """Return `count` random bytes."""
        return self.process.random.randbytes(count)

    def bits(self, count: int, /) -> int:
        """Return a random number of at most `count` bits."""
        return self.process.random.getrandbits(count)

    def below(self, limit: int, /) -> int:
        """Return a random number from 0 to below `limit`."""
        return self.process.random.randrange(limit)


class WorldNetwork(WorldPart):
    """The network of the running host."""

    def stream(self) -> Socket:
        """Return a new socket for TCP."""
        return cast("Socket", self.process.socket(socket.SOCK_STREAM))

    def datagram(self) -> Socket:
        """Return a new socket for UDP."""
        return cast("Socket", self.process.socket(socket.SOCK_DGRAM))

    def reader_of_datagrams(self, memory: DatagramMemory, /) -> DatagramReader:
        """Return a function that reads many datagrams into a memory."""
        return datagram_reading.one_by_one(memory, lambda sock: cast("SimulatedSocket", sock).readable)

    def is_of_owner(self, local: tuple[str, int], remote: tuple[str, int], /) -> bool:
        """Return True: hosts have one user."""
        return True

    def devices(self) -> Iterator[tuple[str, str, int]]:
        """Yield the loopback device and the one of the network."""
        yield "lo", "127.0.0.1", _IFF_UP | _IFF_LOOPBACK
        yield "eth0", self.process.host.address, _IFF_UP | _IFF_MULTICAST

    def route(self, address: str, /) -> str:
        """Return the own address from which packets to an address leave."""
        return "127.0.0.1" if address.startswith("127.") else self.process.host.address

    def resolve(self, host: str, /) -> str:
        """Return the address of a host name. Raises OSError."""
        return self.process.resolve(host)


class WorldQueue:
    """A queue between threads, with a bound."""

    def __init__(self, kernel: Kernel, limit: int) -> None:
        self._items: deque[Any] = deque()
        self._room, self._filled = SimulatedSemaphore(kernel, limit), SimulatedSemaphore(kernel, 0)

    def put(self, item: Any, block: bool = True) -> None:
        """Append an item; wait for room, or raise `queue.Full` unless `block`."""
        if not self._room.acquire(blocking=block):
            raise queue.Full
        self._items.append(item)
        self._filled.release()

    def get(self) -> Any:
        """Wait for an item, and remove it."""
        self._filled.acquire()
        self._room.release()
        return self._items.popleft()

    def full(self) -> bool:
        """Return whether there is no room."""
        return self._room.locked()

    def task_done(self) -> None:
        """Do nothing: nobody waits for the jobs of a queue."""


class WorldExecutor:
    """Threads that do jobs in the order in which they were submitted; here one thread, while there are jobs."""

    def __init__(self, process: SimulatedProcess, name: str) -> None:
        self._process = process
        self._name = name
        self._jobs: deque[Callable[[], object]] = deque()
        self._thread: SimulatedThread | None = None

    def submit(self, job: Callable[..., object], /, *arguments: Any) -> object:
        """Queue a job; the executor's thread does it after those before."""
        result: Result[object] = Result(self._process.kernel)

        def run() -> None:
            try:
                result.set_result(job(*arguments))
            except Exception as error:  # noqa: BLE001 - it belongs to whoever asks for the result
                result.set_exception(error)

        self._jobs.append(run)
        if self._thread is None or self._thread.ended:
            self._thread = self._process.start_thread(self._run, self._name)
        return result

    def shutdown(self) -> None:
        """Wait until all jobs are done."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while self._jobs:
            self._jobs.popleft()()


_SPARE: dict[Callable[[], Any], list[Any]] = {}
"""Objects of threads that have ended, by the function that made them: buffers of megabytes serve all worlds."""


def reclaim(thread: SimulatedThread) -> None:
    """Keep the objects of a thread that has ended, for later threads."""
    for factory, made in thread.objects.items():
        _SPARE.setdefault(factory, []).append(made)
    thread.objects = {}


class WorldThreads(WorldPart):
    """The threads of the running process."""

    def start(self, name: str, target: Callable[..., object], /, *arguments: Any) -> SimulatedThread:
        """Start a thread of the running process."""
        return self.process.start_thread(partial(target, *arguments), name)

    async def call(self, function: Callable[..., T], /, *arguments: Any) -> T:
        """Call a function that blocks in another thread, and return its result."""
        result: T = await asyncio.get_running_loop().run_in_executor(None, function, *arguments)
        return result

    def executor(self, name: str, workers: int = 1) -> WorldExecutor:
        """Return a thread that does submitted jobs."""
        return WorldExecutor(self.process, name)

    def lock(self) -> SimulatedLock:
        """Return a lock that is free."""
        return SimulatedLock(self._kernel)

    def semaphore(self, value: int = 1) -> SimulatedSemaphore:
        """Return a semaphore whose counter is `value`."""
        return SimulatedSemaphore(self._kernel, value)

    def queue(self, limit: int) -> WorldQueue:
        """Return an empty queue for at most `limit` items."""
        return WorldQueue(self._kernel, limit)

    def future(self) -> "Future[Any]":
        """Return a future without result."""
        return cast("Future[Any]", Result(self._kernel))

    def ident(self) -> int:
        """Return the number of the running thread."""
        return self._kernel.running().number

    def local(self, factory: Callable[[], T]) -> T:
        """Return the object that `factory` made for the running thread; the first call makes it."""
        made = self._kernel.running().objects
        if factory not in made:
            spare = _SPARE.get(factory)
            made[factory] = spare.pop() if spare else factory()
        found: T = made[factory]
        return found

    def ask_short_slices(self, slice_ns: int) -> bool:
        """Return False: a thread of a world runs until it blocks."""
        return False

    def yields_help(self) -> bool:
        """Return False, because all threads run soon."""
        return False

    def give_way(self) -> None:
        """Let other threads run that are due."""
        self._kernel.pay()


class WorldProcess(WorldPart):
    """The process of the running thread, for the shipped programs."""

    owns_interpreter = False

    def on_fork(self, callback: Callable[[], object]) -> None:
        """Do nothing, because no program of a world forks."""

    @property
    def environment(self) -> MutableMapping[str, str]:
        """The environment of the running host."""
        return self.process.host.environment

    @property
    def started_ns(self) -> int:
        """The start of the process is not known, so this is the epoch."""
        return 0

    def resident_bytes(self) -> int:
        """Return 0: the memory of one process among many is not known."""
        return 0

    def notify(self, place: str, text: bytes) -> None:
        """Raise NotImplementedError: nobody manages services."""
        _refuse("a service manager", "remove NOTIFY_SOCKET from the environment")

    def pid(self) -> int:
        """Return the number of this process."""
        return self.process.number

    def is_root(self) -> bool:
        """Return False: a world has no users."""
        return False

    def new_loop(self) -> SimulatedEventLoop:
        """Return a new event loop on simulated sockets."""
        return self.process.new_loop()

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on a new loop to its end, and return its result."""
        result: T = run_loop(self.new_loop(), main)
        return result

    def on_ending(self, callback: Callable[[], object]) -> None:
        """Call back on the running loop at each signal that asks the program to end."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, callback)

    def on_hang_up(self, callback: Callable[[], object]) -> None:
        """Call back on the running loop at each SIGHUP, which then ends nothing."""
        asyncio.get_running_loop().add_signal_handler(HANG_UP, callback)

    def exit(self, status: int, /) -> None:
        """End the process at once, as a crash would."""
        process = self.process
        process.status = status
        process.kill()
        self._kernel.running().leave()

    def at_exit(self, callback: Callable[[], object], /) -> None:
        """Call back when the process ends in an orderly way."""
        self.process.at_exit.append(callback)

    def not_at_exit(self, callback: Callable[[], object], /) -> None:
        """Cancel an earlier `at_exit` of this callback."""
        with suppress(ValueError):
            self.process.at_exit.remove(callback)

    def output(self) -> TextIO:
        """Return the stream for programs."""
        return cast("TextIO", self.process.console)

    def errors(self) -> TextIO:
        """Return the stream for people."""
        return cast("TextIO", self.process.console)

    def input_descriptor(self) -> int:
        """Raise NotImplementedError: nobody types."""
        _refuse("standard input", "give the program its lines as arguments")

    def detach(self) -> int:
        """Raise NotImplementedError: there is one process."""
        _refuse("a detached daemon", "start it without --detach")

    def change_user(self, uid: int | None, gid: int | None, files: Sequence[Path]) -> None:
        """Do nothing: a world has one user."""

    def keep_files_private(self) -> None:
        """Do nothing: a world has one user."""

    def raise_descriptor_limit(self) -> None:
        """Do nothing: the world sets the limit."""

    def free_descriptors(self) -> int:
        """Return the number of descriptors that this process may still open."""
        return self.process.free_descriptors


def _refuse(what: str, remedy: str) -> NoReturn:
    raise NotImplementedError(f"a world does not simulate {what}: {remedy}")


@contextmanager
def installed(kernel: Kernel) -> Iterator[None]:
    """Give all shipped programs the machine of a world while the context lasts."""
    previous = machine.install(
        clock=WorldClock(kernel),
        entropy=WorldEntropy(kernel),
        files=HostFiles(lambda: cast("SimulatedProcess", kernel.running().owner).files),
        network=WorldNetwork(kernel),
        threads=WorldThreads(kernel),
        process=WorldProcess(kernel),
    )
    try:
        yield
    finally:
        machine.install(**previous)
