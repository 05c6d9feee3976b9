"""Sockets of programs, what waits for them, and event loops.

`socket.socket(...)` makes a simulated socket in a program, so everything above it runs unmodified: asyncio, aiohttp,
`http.client`, `socketserver`. The class itself stays, so `isinstance` and subclasses of it work as before.
"""

import _socket
import asyncio
import asyncio.unix_events
import errno
import select
import selectors
import socket
import sys
from collections.abc import Callable, Iterable
from typing import Any

from stablecast.lab.world.network import LOOPBACK, refusal
from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.selector import Selector
from stablecast.lab.world.sockets import SimulatedSocket
from stablecast.lab.world.streams import TcpSocket
from stablecast.lab.world.user_code.replacement import (
    Replacement,
    Table,
    in_programs,
    installation,
    refusal_in_programs,
    refuse,
)

_all_tasks = asyncio.all_tasks
_gather = asyncio.gather
_KINDS = (socket.SOCK_STREAM, socket.SOCK_DGRAM)
_SELECTORS = ("SelectSelector", "PollSelector", "EpollSelector")


def table() -> Table:
    """Return the replacements of sockets, selectors and event loops."""
    return [*_sockets(), *_names(), *_selectors(), *_loops()]


# ----------------------------------------------------------------------------------------------------------- sockets


def _sockets() -> Table:
    return [
        Replacement(socket.socket, "__new__", staticmethod(_new_socket)),
        in_programs(socket, "socketpair", _pair),
        *[
            refusal_in_programs(socket, name, f"socket.{name}", "hand over the socket itself")
            for name in ("fromfd", "send_fds", "recv_fds")
        ],
    ]


def _new_socket(cls: type, *args: Any, **options: Any) -> Any:
    process = installation.programs()
    if process is None:
        return _socket.socket.__new__(cls)
    if cls is not socket.socket:
        refuse(f"the class of sockets {cls.__name__}", "use socket.socket")
    return _open(process, *args, **options)


def _open(
    process: SimulatedProcess, family: int = -1, kind: int = -1, proto: int = -1, fileno: Any = None, **how: Any
) -> Any:
    """Return a simulated socket. Raises OSError for a family that the hosts of a world lack."""
    if fileno is not None:
        refuse("a socket for a descriptor", "hand over the socket itself")
    if family == socket.AF_UNIX:
        refuse("a Unix socket", f"use TCP at {LOOPBACK}")
    if family not in (-1, socket.AF_UNSPEC, socket.AF_INET):
        raise refusal(errno.EAFNOSUPPORT)
    number = how.get("type", kind)
    bare = socket.SOCK_STREAM if number == -1 else number & 0xF
    if bare not in _KINDS:
        raise refusal(errno.EPERM)
    sock = process.socket(bare, max(proto, 0))
    if number != -1 and number & socket.SOCK_NONBLOCK:
        sock.setblocking(False)
    return sock


def _pair(process: SimulatedProcess, *_: Any, **__: Any) -> tuple[Any, Any]:
    listener, first = TcpSocket(process), TcpSocket(process)
    listener.bind((LOOPBACK, 0))
    listener.listen()
    first.connect(listener.getsockname())
    second, _peer = listener.accept()
    listener.close()
    return first, second


# ------------------------------------------------------------------------------------------------------------- names


def _names() -> Table:
    return [
        in_programs(socket, "getaddrinfo", _addresses),
        in_programs(socket, "gethostbyname", lambda process, name: process.resolve(_text(name))),
        in_programs(socket, "gethostbyname_ex", lambda process, name: (name, [], [process.resolve(_text(name))])),
        in_programs(socket, "gethostbyaddr", lambda process, name: (name, [], [process.resolve(_text(name))])),
        in_programs(socket, "getnameinfo", lambda _, address, *__: (str(address[0]), str(address[1]))),
    ]


def _addresses(
    process: SimulatedProcess, host: Any, port: Any, family: int = 0, kind: int = 0, *rest: int, **how: int
) -> Any:
    if family not in (socket.AF_UNSPEC, socket.AF_INET):
        raise socket.gaierror(socket.EAI_FAMILY, "the hosts of a world have IPv4 only")
    proto, flags = (*rest, 0, 0)[:2]
    return process.addresses(host, port, how.get("type", kind), how.get("proto", proto), how.get("flags", flags))


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


# --------------------------------------------------------------------------------------------------------- selectors


def _selectors() -> Table:
    def selector(process: SimulatedProcess) -> Selector:
        return Selector(process.kernel, process, process.host.clock.true_wait)

    new = staticmethod(_new_selector(selector))
    return [
        *[Replacement(getattr(selectors, name), "__new__", new) for name in _SELECTORS if hasattr(selectors, name)],
        in_programs(select, "select", _select),
        in_programs(select, "poll", ProgramPoll),
        refusal_in_programs(select, "epoll", "select.epoll", "use selectors.DefaultSelector"),
    ]


def _new_selector(make: Callable[[SimulatedProcess], Selector]) -> Callable[..., Any]:
    def new(cls: type, *_: Any) -> Any:
        process = installation.programs()
        return object.__new__(cls) if process is None else make(process)

    return new


def _select(
    process: SimulatedProcess,
    rlist: Iterable[Any],
    wlist: Iterable[Any],
    _: Iterable[Any],
    timeout: float | None = None,
    /,
) -> tuple[list[Any], list[Any], list[Any]]:
    readers = [(one, process.selectable(_descriptor(one))) for one in rlist]
    writers = [(one, process.selectable(_descriptor(one))) for one in wlist]

    def ready() -> tuple[list[Any], list[Any]]:
        return [one for one, sock in readers if sock.readable], [one for one, sock in writers if sock.writable]

    found = _await(process, [sock for _, sock in (*readers, *writers)], ready, any, timeout)
    return (*found, [])


class ProgramPoll:
    """A `select.poll` of simulated sockets."""

    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process
        self._watched: dict[int, int] = {}

    def register(self, fd: Any, eventmask: int = select.POLLIN | select.POLLOUT, /) -> None:
        self._watched[_descriptor(fd)] = eventmask

    modify = register

    def unregister(self, fd: Any, /) -> None:
        """Stop watching a socket. Raises KeyError."""
        del self._watched[_descriptor(fd)]

    def poll(self, timeout: float | None = None, /) -> list[tuple[int, int]]:
        """Return the ready sockets and their events, and wait for them at most `timeout` ms."""
        sockets: dict[int, SimulatedSocket | None] = {}
        for descriptor in self._watched:
            try:
                sockets[descriptor] = self._process.selectable(descriptor)
            except OSError:
                sockets[descriptor] = None

        def ready() -> list[tuple[int, int]]:
            found = [(descriptor, self._events(descriptor, sock)) for descriptor, sock in sockets.items()]
            return [one for one in found if one[1]]

        seconds = None if timeout is None or timeout < 0 else timeout / 1e3
        found: list[tuple[int, int]] = _await(
            self._process, [sock for sock in sockets.values() if sock], ready, bool, seconds
        )
        return found

    def _events(self, descriptor: int, sock: SimulatedSocket | None) -> int:
        if sock is None:
            return select.POLLNVAL
        wanted = self._watched[descriptor]
        return (select.POLLIN if wanted & select.POLLIN and sock.readable else 0) | (
            select.POLLOUT if wanted & select.POLLOUT and sock.writable else 0
        )


def _await(
    process: SimulatedProcess,
    sockets: list[SimulatedSocket],
    ready: Callable[[], Any],
    suffices: Callable[[Any], bool],
    timeout: float | None,
) -> Any:
    """Block until what `ready` returns suffices, or for `timeout` seconds; return it."""
    kernel = process.kernel
    kernel.pay()
    deadline = None if timeout is None else kernel.now + process.host.clock.true_wait(timeout)
    while not suffices(found := ready()) and (deadline is None or (timeout and kernel.now < deadline)):
        for sock in sockets:
            sock.wake_on_change(kernel.running())
        kernel.block(deadline)
    return found


def _descriptor(one: Any) -> int:
    return one if isinstance(one, int) else int(one.fileno())


# ------------------------------------------------------------------------------------------------------- event loops


def _loops() -> Table:
    unix_loop: Any = asyncio.unix_events._UnixSelectorEventLoop
    real_new = object.__new__

    def new(cls: type, *_: Any, **__: Any) -> Any:
        process = installation.programs()
        return real_new(cls) if process is None else process.new_loop()

    return [
        Replacement(unix_loop, "__new__", staticmethod(new)),
        in_programs(asyncio.events, "new_event_loop", lambda process: process.new_loop()),
        in_programs(asyncio.events, "set_event_loop", _set_loop),
        in_programs(asyncio.events, "get_event_loop", _loop),
        in_programs(asyncio.tasks, "all_tasks", _tasks),
        *([in_programs(asyncio.tasks, "gather", _gathered)] if sys.version_info < (3, 12) else []),
        *_loops_of_uvloop(),
    ]


def _loops_of_uvloop() -> Table:
    """Replace the loops of uvloop, which a program may import while it runs, as web servers do."""
    try:
        import uvloop  # noqa: PLC0415 - only a world needs it here
    except ModuleNotFoundError:  # It is not for Windows.
        return []
    return [
        in_programs(uvloop, "new_event_loop", lambda process: process.new_loop()),
        # It accepts no loop but its own.
        in_programs(uvloop, "run", lambda _, main, *, debug=None, **__: asyncio.run(main, debug=debug)),
    ]


def _tasks(_: SimulatedProcess, loop: Any = None) -> set[Any]:
    """Return the tasks of a loop in a set that was filled in their order, so that it has one order itself."""
    ordered = sorted(_all_tasks(loop), key=hash)
    return set(ordered)


def _gathered(_: SimulatedProcess, *awaitables: Any, return_exceptions: bool = False) -> Any:
    """Return what `gather` returns since Python 3.12: a future that is done if all of `awaitables` are.

    Python 3.11 needs a turn of the loop for that. In it another task may get ahead, so the runs would part.
    """
    if not awaitables or not all(isinstance(one, asyncio.Future) and one.done() for one in awaitables):
        return _gather(*awaitables, return_exceptions=return_exceptions)
    failures = [asyncio.CancelledError() if one.cancelled() else one.exception() for one in awaitables]
    first = next((one for one in failures if one is not None), None)
    future: asyncio.Future[Any] = awaitables[0].get_loop().create_future()
    if first is None or return_exceptions:
        outcomes = zip(awaitables, failures, strict=True)
        future.set_result([one.result() if failure is None else failure for one, failure in outcomes])
    else:
        future.set_exception(first)
    return future


def _loop_key(process: SimulatedProcess) -> tuple[str, int]:
    return "loop", process.kernel.running().number


def _set_loop(process: SimulatedProcess, loop: Any) -> None:
    process.memory[_loop_key(process)] = loop


def _loop(process: SimulatedProcess) -> Any:
    """Return the running loop, or the one of the thread. Raises RuntimeError without one."""
    found = asyncio._get_running_loop() or process.memory.get(_loop_key(process))
    if found is None:
        raise RuntimeError(f"There is no current event loop in thread {process.kernel.running().name!r}.")
    return found
