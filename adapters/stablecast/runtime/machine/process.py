"""The process of a program: environment, signals, streams, user, terminal and descriptors."""

import atexit
import errno
import os
import resource
import signal
import stat
import sys
import time
from collections.abc import Callable, Coroutine, MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_PAGE_BYTES = 4096
"""Bytes of a memory page, the unit in /proc."""

_STARTED_NS = time.time_ns()

environment: MutableMapping[str, str] = os.environ
pid = os.getpid

exit = os._exit  # noqa: A001 - callers write `process.exit`
"""End the process at once, as a crash would."""


def owns_interpreter() -> bool:
    """Return True: no other program shares the interpreter, so this one may set its garbage collection."""
    return True


def started_ns() -> int:
    """Return the wall clock at the start of the program, in ns since the epoch."""
    return _STARTED_NS


def on_fork(callback: Callable[[], object]) -> None:
    """Call back in each process that is forked from this one, before its program goes on."""
    os.register_at_fork(after_in_child=callback)


def is_root() -> bool:
    return os.geteuid() == 0


def new_loop() -> "asyncio.AbstractEventLoop":
    """Return a new event loop: uvloop if it is installed, because asyncio's own does the same work slower."""
    import asyncio  # noqa: PLC0415 - commands without a loop need not load it

    try:
        import uvloop  # noqa: PLC0415 - programs without a loop need not load it
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a new loop to its end, and return its result."""
    import asyncio  # noqa: PLC0415 - see `new_loop`

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


def on_ending(callback: Callable[[], object]) -> None:
    """Call back on the running loop at each signal that asks the program to end: Ctrl-C, SIGTERM, SIGHUP.

    SIGHUP stays ignored if it is ignored already (under nohup, in a detached daemon).
    """
    import asyncio  # noqa: PLC0415 - see `new_loop`

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, callback)


def on_hang_up(callback: Callable[[], object]) -> None:
    """Call back on the running loop at each SIGHUP, which then ends nothing, ignored before or not."""
    import asyncio  # noqa: PLC0415 - see `new_loop`

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, callback)


def at_exit(callback: Callable[[], object]) -> None:
    """Call back when the interpreter ends in an orderly way."""
    atexit.register(callback)


def not_at_exit(callback: Callable[[], object]) -> None:
    """Cancel an earlier `at_exit` of this callback."""
    atexit.unregister(callback)


def output() -> TextIO:
    """Return standard output, as it is now."""
    return sys.stdout


def errors() -> TextIO:
    """Return standard error, as it is now."""
    return sys.stderr


def input_descriptor() -> int:
    return sys.stdin.fileno()


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes, 0 where /proc does not show it."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * _PAGE_BYTES
    return 0


def notify(place: str, text: bytes) -> None:
    """Send one datagram to a Unix socket; a place that begins with `@` has no file. Raises OSError."""
    import socket  # noqa: PLC0415 - commands without a service manager need not load it

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto(text, "\0" + place[1:] if place.startswith("@") else place)


def detach() -> "DetachedProcess | int":
    """Continue in a process with a session of its own.

    Returns:
        In the daemon, the object to call when it is ready. In the process that was started, its exit status: 0 if the
        daemon is ready, else the daemon's status. The daemon has written the error to standard error.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        if os.read(reading, 1):
            return 0
        return abs(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) or 1
    os.close(reading)
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # No terminal is left that could hang up.
    return DetachedProcess(writing)


def change_user(uid: int | None, gid: int | None, files: Sequence[Path]) -> None:
    """Become another user or group, and give them the `files`; this needs the rights of root."""
    for path in files:
        _give(path, -1 if uid is None else uid, -1 if gid is None else gid)
    if gid is not None:
        os.setgroups([gid])
        os.setgid(gid)
    if uid is not None:
        os.setuid(uid)


def keep_files_private() -> None:
    """Let no other user read the files that this process creates from now on."""
    os.umask(0o077)


def raise_descriptor_limit() -> None:
    """Raise the limit on descriptors to the hard limit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def free_descriptors() -> int:
    """Return the number of descriptors that this process may still open, 0 if none.

    Linux before 6.2 does not count them. It gives out the lowest free number, so there all below it count as used.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError):
        if used := Path("/proc/self/fd").stat().st_size:
            return max(0, allowed - used)
    try:
        lowest = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return 0
    os.close(lowest)
    return allowed - lowest


def _give(path: Path, uid: int, gid: int) -> None:
    """Give a file away, but not what a link in its place leads to."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            os.fchown(descriptor, uid, gid)
        elif found.st_nlink > 1:
            raise OSError(errno.EMLINK, f"{path} has a second name")
    finally:
        os.close(descriptor)


class DetachedProcess:
    """The daemon's side of a detachment. The process that was started waits for `ready`."""

    def __init__(self, pipe: int) -> None:
        """Report by the writing end of a pipe."""
        self._pipe = pipe

    def ready(self) -> None:
        """End the process that was started, and go on without its terminal. From now on use the log."""
        sys.stdout.flush()
        sys.stderr.flush()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.close(nowhere)
        os.write(self._pipe, b"1")
        os.close(self._pipe)
