"""Protocols of everything that the shipped programs take from the operating system.

The `system_*` modules beside this one implement them on the real machine. A simulated world implements the same
protocols. A function that fails raises `OSError` with the number that the system call would have given.
"""

import socket
from collections.abc import Callable, Coroutine, Iterable, MutableMapping, Sequence
from contextlib import AbstractContextManager
from mmap import mmap
from os import PathLike, stat_result
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TextIO, TypeVar

if TYPE_CHECKING:  # Every command imports this module, and few commands need these.
    import asyncio
    from concurrent.futures import Future
    from datetime import datetime
    from types import TracebackType

Octets = bytes | bytearray | memoryview
"""Bytes to write."""

Mapped = bytes | mmap
"""The bytes of a mapped file; the mapping ends with its context."""

Place = str | PathLike[str]
"""The path of a file."""

Socket = socket.socket
"""The type of a socket. A simulated socket has the same methods."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Clock(Protocol):
    """The clocks of one host: monotonic, wall and processor time."""

    def monotonic_ns(self) -> int:
        """Return the monotonic clock in ns. Deadlines are set on it."""

    def monotonic(self) -> float:
        """Return the monotonic clock in seconds."""

    def wall_ns(self) -> int:
        """Return the ns since the epoch. This clock may leap."""

    def utc_now(self) -> "datetime":
        """Return the wall clock as a date in UTC."""

    def thread_seconds(self) -> float:
        """Return the processor time of the calling thread in seconds."""

    def process_seconds(self) -> float:
        """Return the processor time of the program in seconds."""


class Entropy(Protocol):
    """A source of numbers that no peer can guess."""

    def octets(self, count: int, /) -> bytes:
        """Return `count` random bytes."""

    def bits(self, count: int, /) -> int:
        """Return a random number of at most `count` bits."""

    def below(self, limit: int, /) -> int:
        """Return a random number from 0 to below `limit`."""


class Descriptors(Protocol):
    """Files by descriptor. Each function is the system call that its docstring names."""

    def open(self, path: Place, flags: int, mode: int = 0o777) -> int:
        """Open a file and return its descriptor: `open`; `flags` are those of `os`."""

    def close(self, descriptor: int, /) -> None:
        """Close a descriptor and release its lock: `close`."""

    def read(self, descriptor: int, count: int, /) -> bytes:
        """Read at most `count` bytes at the descriptor's position, b"" at the end: `read`."""

    def write(self, descriptor: int, octets: Octets, /) -> int:
        """Write at the descriptor's position and return the number of written bytes: `write`."""

    def pread(self, descriptor: int, count: int, offset: int, /) -> bytes:
        """Read at most `count` bytes at `offset`: `pread`."""

    def pwrite(self, descriptor: int, octets: Octets, offset: int, /) -> int:
        """Write at `offset` and return the number of written bytes: `pwrite`."""

    def pwritev(self, descriptor: int, parts: Sequence[Octets], offset: int, /) -> int:
        """Write several parts at `offset` and return the number of written bytes: `pwritev`."""

    def truncate(self, descriptor: int, size: int, /) -> None:
        """Set the size of a file in bytes: `ftruncate`."""

    def allocate(self, descriptor: int, offset: int, size: int, /) -> None:
        """Reserve `size` bytes of the disk from `offset` on: `posix_fallocate`."""

    def sync_data(self, descriptor: int, /) -> None:
        """Make the contents and the size of a file durable: `fdatasync`."""

    def sync(self, descriptor: int, /) -> None:
        """Make a file and its attributes durable: `fsync`."""

    def status(self, descriptor: int, /) -> stat_result:
        """Return the attributes of an open file: `fstat`."""

    def lock(self, descriptor: int, /) -> None:
        """Lock a file for this descriptor alone: `flock`. Raises BlockingIOError if another descriptor has the lock."""


class Files(Descriptors, Protocol):
    """The file systems of a host: files by descriptor, and names."""

    def file(self, path: Place, mode: str, buffering: int = -1) -> BinaryIO:
        """Open a binary file of Python; `mode` is "rb", "wb" or "ab". `fileno()` of it is a descriptor of `files`."""

    def read_bytes(self, path: Place, /) -> bytes:
        """Return the contents of a file."""

    def write_bytes(self, path: Place, octets: Octets, /) -> object:
        """Create or replace the contents of a file; nothing is synced."""

    def map(self, path: Place, /) -> AbstractContextManager[Mapped]:
        """Map a whole file that is not empty, for reading."""

    def exists(self, path: Place, /) -> bool:
        """Return whether there is a file or directory of this name."""

    def is_file(self, path: Place, /) -> bool:
        """Return whether there is a file of this name."""

    def is_directory(self, path: Place, /) -> bool:
        """Return whether there is a directory of this name."""

    def is_readable(self, path: Place, /) -> bool:
        """Return whether this process may read a file."""

    def stat(self, path: Place, /) -> stat_result:
        """Return the attributes of a file or directory: `stat`."""

    def set_times(self, path: Place, accessed_ns: int, modified_ns: int, /) -> None:
        """Set the times of a file in ns since the epoch: `utimensat`."""

    def names(self, directory: Place, /) -> list[str]:
        """Return the names in a directory, in no order."""

    def make_directories(self, directory: Path, /) -> None:
        """Make a directory and its parents, if they are missing."""

    def rename(self, path: Place, to: Place, /) -> None:
        """Rename a file and replace the one that has the name: `rename`."""

    def remove(self, path: Place, /) -> None:
        """Remove the name of a file: `unlink`."""

    def copy(self, path: Place, to: Place, /) -> object:
        """Copy a file with its times."""

    def sync_directory(self, directory: Place, /) -> None:
        """Make the names in a directory durable: created files exist, and removed files stay away."""

    def free_bytes(self, directory: Place, /) -> int:
        """Return the bytes that this process may still write to a directory's file system; 0 if it has no inode.

        Quotas of a user do not show here.
        """


class Network(Protocol):
    """The network of a host. Sockets that wait are given to the running event loop."""

    def stream(self) -> Socket:
        """Return a new socket for TCP over IPv4."""

    def datagram(self) -> Socket:
        """Return a new socket for UDP over IPv4."""

    def reader_of_datagrams(self, memory: "DatagramMemory", /) -> "DatagramReader":
        """Return a function that reads many datagrams into a memory."""

    def is_of_owner(self, local: tuple[str, int], remote: tuple[str, int], /) -> bool:
        """Return whether the other end of a connection on this host belongs to this user or to root."""

    def devices(self) -> Iterable[tuple[str, str, int]]:
        """Return name, IPv4 address and flags (`IFF_*`) of each device with an address, in the system's order."""

    def resolve(self, host: str, /) -> str:
        """Return the IPv4 address of a host name."""

    def route(self, address: str, /) -> str:
        """Return the own IPv4 address from which packets to an IPv4 address leave."""


class DatagramMemory(Protocol):
    """Memory for the datagrams of one read.

    Attributes:
        octets: Room for all datagrams; number n begins at n * `stride` and has at most `size` bytes.
        names: Room for the sender of each: 16 bytes of a `sockaddr_in`, the port at 2 and the address at 4.
        count: Datagrams that fit.
    """

    octets: bytearray
    names: bytearray
    count: int
    stride: int
    size: int


class DatagramReader(Protocol):
    """A function that reads datagrams into the memory that it was made for."""

    def __call__(self, sock: Socket, /) -> Sequence[int]:
        """Read the datagrams that wait at a non-blocking socket, and return their sizes in bytes, at least one.

        Raises:
            BlockingIOError: No datagram waits.
            OSError: The network reported an error about an earlier datagram that this socket sent.
        """


class Thread(Protocol):
    """The handle of a thread that was started."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread, at most `timeout` seconds."""


class Lock(Protocol):
    """A lock that any thread may release."""

    def acquire(self) -> bool:
        """Wait until the lock is free, and lock it."""

    def release(self) -> None:
        """Unlock it, from any thread."""

    def locked(self) -> bool:
        """Return whether it is locked."""

    def __enter__(self) -> bool:
        """Wait until the lock is free, and lock it."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: "TracebackType | None", /
    ) -> object:
        """Unlock it."""


class Semaphore(Protocol):
    """A counter that `acquire` lowers and `release` raises."""

    def acquire(self) -> bool:
        """Wait until the counter is above 0, and lower it."""

    def release(self) -> None:
        """Raise the counter and wake one that waits."""


class Queue(Protocol[T]):
    """A queue between threads, with a bound."""

    def put(self, item: T, block: bool = True) -> None:
        """Append an item; wait for room, or raise `queue.Full` unless `block`."""

    def get(self) -> T:
        """Wait for an item, and remove it."""

    def full(self) -> bool:
        """Return whether there is no room."""

    def task_done(self) -> None:
        """Note that an item from `get` is done."""


class Executor(Protocol):
    """Threads that do jobs in the order in which they were submitted."""

    def submit(self, job: Callable[..., object], /, *arguments: Any) -> object:
        """Queue a job for the next free thread."""

    def shutdown(self) -> None:
        """Wait until all jobs are done, and end the threads."""


class Threads(Protocol):
    """The threads of a process, and what they wait for."""

    def start(self, name: str, target: Callable[..., object], /, *arguments: Any) -> Thread:
        """Start a thread. The process may end before it: a disk that never answers must not keep a process alive."""

    async def call(self, function: Callable[..., T], /, *arguments: Any) -> T:
        """Call a function that blocks in another thread, and return its result."""

    def executor(self, name: str, workers: int = 1) -> Executor:
        """Return `workers` threads that do submitted jobs."""

    def lock(self) -> Lock:
        """Return a lock that is free."""

    def semaphore(self, value: int = 1) -> Semaphore:
        """Return a semaphore whose counter is `value`."""

    def queue(self, limit: int) -> Queue[Any]:
        """Return an empty queue for at most `limit` items."""

    def future(self) -> "Future[Any]":
        """Return a future without result. Its `result()` blocks the calling thread."""

    def ident(self) -> int:
        """Return the number of the calling thread."""

    def local(self, factory: Callable[[], T]) -> T:
        """Return the object that `factory` made for the calling thread; the first call makes it."""

    def ask_short_slices(self, slice_ns: int) -> bool:
        """Ask the scheduler for short slices (ns) of the calling thread; return whether it granted them."""

    def yields_help(self) -> bool:
        """Return whether a yield lets the reader run that this thread woke."""

    def give_way(self) -> None:
        """Yield the core to another thread: `sched_yield`."""


class Detachment(Protocol):
    """The daemon's side of a detachment."""

    def ready(self) -> None:
        """End the process that was started, and go on without its terminal."""


class Process(Protocol):
    """The process of a program."""

    @property
    def environment(self) -> MutableMapping[str, str]:
        """The environment variables."""

    @property
    def started_ns(self) -> int:
        """The wall clock at the start of the program, in ns since the epoch."""

    @property
    def owns_interpreter(self) -> bool:
        """True if no other program shares the interpreter, so that this one may set its garbage collection."""

    def pid(self) -> int:
        """Return the number of this process."""

    def on_fork(self, callback: Callable[[], object]) -> None:
        """Call back in each process that is forked from this one, before its program goes on."""

    def is_root(self) -> bool:
        """Return whether this process has the rights of root."""

    def new_loop(self) -> "asyncio.AbstractEventLoop":
        """Return a new event loop, the fastest that is installed."""

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on a new loop to its end, and return its result."""

    def on_ending(self, callback: Callable[[], object]) -> None:
        """Call back on the running loop at each signal that asks the program to end: Ctrl-C, SIGTERM, SIGHUP.

        SIGHUP stays ignored if it is ignored already (under nohup, in a detached daemon).
        """

    def on_hang_up(self, callback: Callable[[], object]) -> None:
        """Call back on the running loop at each SIGHUP, which then ends nothing, ignored before or not."""

    def exit(self, status: int, /) -> None:
        """End the process at once, as a crash would."""

    def at_exit(self, callback: Callable[[], object], /) -> None:
        """Call back when the process ends in an orderly way."""

    def not_at_exit(self, callback: Callable[[], object], /) -> None:
        """Cancel an earlier `at_exit` of this callback."""

    def output(self) -> TextIO:
        """Return the stream for programs: standard output."""

    def errors(self) -> TextIO:
        """Return the stream for people: standard error."""

    def input_descriptor(self) -> int:
        """Return the descriptor of standard input."""

    def resident_bytes(self) -> int:
        """Return the resident memory of this process in bytes, 0 if it is not known."""

    def notify(self, place: str, text: bytes) -> None:
        """Send one datagram to the service manager's Unix socket at `place`. Raises OSError."""

    def detach(self) -> Detachment | int:
        """Continue in a process with a session of its own.

        Returns:
            In the daemon, the object to call when it is ready. In the process that was started, its exit status: 0 if
            the daemon is ready, else the daemon's status. The daemon has written the error to standard error.
        """

    def change_user(self, uid: int | None, gid: int | None, files: Sequence[Path]) -> None:
        """Become another user or group, and give them the `files`; this needs the rights of root."""

    def keep_files_private(self) -> None:
        """Let no other user read the files that this process creates from now on."""

    def raise_descriptor_limit(self) -> None:
        """Raise the limit on descriptors to the hard limit."""

    def free_descriptors(self) -> int:
        """Return the number of descriptors that this process may still open, 0 if none.

        The system gives out the lowest free number, so all below it count as used.
        """
