"""The common part of stream and datagram sockets of a world: descriptor, address, options, and waiting."""

import errno
import socket
from typing import IO, Any, Protocol

from stablecast.lab.world.kernel import Kernel, SimulatedThread
from stablecast.lab.world.network import ANY, LOOPBACK, Address, NetworkHost, SimulatedNetwork, refusal
from stablecast.lab.world.selector import Selector

RECEIVE_BUFFER = 212_992
"""Bytes that a socket holds for reading unless SO_RCVBUF is set."""


_SIZES = (socket.SO_RCVBUF, socket.SO_SNDBUF)


class SocketOwner(Protocol):
    kernel: Kernel

    @property
    def host(self) -> NetworkHost: ...

    def open(self, sock: "SimulatedSocket") -> int:
        """Return a descriptor for a socket. Raises OSError if the process has too many."""

    def forget(self, descriptor: int) -> None: ...

    def resolve(self, name: str) -> str:
        """Return the address of a host name. Raises OSError."""


class SimulatedSocket:
    """A socket with the methods of `socket.socket` that asyncio and its users call."""

    family = socket.AF_INET

    def __init__(self, process: SocketOwner, kind: socket.SocketKind, proto: int = 0) -> None:
        """Open a socket of a process. Raises OSError without a free descriptor."""
        self.process = process
        self.host: NetworkHost = process.host
        self.network: SimulatedNetwork = process.host.network
        self.kernel = process.kernel
        self.type = kind
        self.proto = proto or (socket.IPPROTO_TCP if kind is socket.SOCK_STREAM else socket.IPPROTO_UDP)
        self.local: Address = (ANY, 0)
        self.remote: Address | None = None
        self.watcher: Selector | None = None
        self.options: dict[tuple[int, int], Any] = {(socket.SOL_SOCKET, socket.SO_RCVBUF): RECEIVE_BUFFER}
        self.closed = False
        self.error = 0
        self._timeout: float | None = None
        self._waiting: list[SimulatedThread] = []
        self._descriptor = process.open(self)
        self._io_refs = 0  # Files of `makefile` that are open; the socket closes after them.
        self._closes = False

    @property  # type: ignore[misc]  # a program may ask isinstance(sock, socket.socket)
    def __class__(self) -> type:
        """The class that a program sees."""
        return socket.socket

    # ------------------------------------------------------------------------------------------------- as in the system

    def fileno(self) -> int:
        return -1 if self.closed else self._descriptor

    def setblocking(self, flag: bool) -> None:
        self._timeout = None if flag else 0.0

    def settimeout(self, value: float | None) -> None:
        """Set the time in s that a call waits; None: for ever."""
        self._timeout = value

    def gettimeout(self) -> float | None:
        return self._timeout

    @property
    def timeout(self) -> float | None:
        return self._timeout

    def getblocking(self) -> bool:
        return self._timeout != 0.0

    def setsockopt(self, level: int, option: int, value: Any, length: int = 0) -> None:
        """Set an option; those without meaning here are kept. A size of a buffer is doubled, as in Linux."""
        self.alive()
        if level == socket.SOL_SOCKET and option in _SIZES:
            value *= 2
        self.options[level, option] = value

    def getsockopt(self, level: int, option: int, length: int = 0) -> Any:
        """Return an option; 0 for one that was never set."""
        self.alive()
        if (level, option) == (socket.SOL_SOCKET, socket.SO_ERROR):
            error, self.error = self.error, 0
            return error
        if (level, option) == (socket.SOL_SOCKET, socket.SO_TYPE):
            return int(self.type)
        value = self.options.get((level, option), 0)
        if isinstance(value, int) and length:
            return value.to_bytes(length, "little", signed=True)
        return value

    def getsockname(self) -> Address:
        self.alive()
        return self.local

    def getpeername(self) -> Address:
        """Return the address of the peer. Raises OSError."""
        self.alive()
        if self.remote is None:
            raise refusal(errno.ENOTCONN)
        return self.remote

    def bind(self, address: Address) -> None:
        """Take an address of the host; port 0 lets the host choose. Raises OSError."""
        self.alive()
        host, port = self.process.resolve(_text(address[0]) or ANY), address[1]
        if self.local[1]:
            raise refusal(errno.EINVAL)
        self.check_address(host)
        if 0 < port < 1024 and not self.host.privileged:
            raise refusal(errno.EACCES)
        port = port or self.network.free_port(self.host.address, streams=self.type is socket.SOCK_STREAM)
        self.claim(host, port)
        self.local = (host, port)

    def makefile(self, mode: str = "r", buffering: int | None = None, **how: Any) -> IO[Any]:
        file: IO[Any] = socket.socket.makefile(self, mode, buffering, **how)  # type: ignore[call-overload]
        return file

    def _decref_socketios(self) -> None:
        """Count a file of `makefile` that was closed."""
        self._io_refs -= 1
        if self._closes:
            self.close()

    def close(self) -> None:
        """Close, once the files of `makefile` are closed; a second call does nothing."""
        self._closes = True
        if not self.closed and self._io_refs <= 0:
            self.release()
            self.closed = True
            self.process.forget(self._descriptor)
            self.changed()

    def abandon(self) -> None:
        """Close, as for a process that has ended."""
        self._io_refs = 0
        self.close()

    def detach(self) -> int:
        """Refuse: a simulated descriptor without its socket means nothing."""
        raise NotImplementedError("a world cannot detach the descriptor of a socket: hand over the socket itself")

    def dup(self) -> "SimulatedSocket":
        """Refuse for the same reason as `detach`."""
        raise NotImplementedError("a world cannot duplicate a socket: hand over the socket itself")

    def __enter__(self) -> "SimulatedSocket":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} fd={self.fileno()} {self.host.name} {self.local} {self.remote or ''}>"

    # -------------------------------------------------------------------------------------------------------- for kinds

    @property
    def readable(self) -> bool:
        raise NotImplementedError

    @property
    def writable(self) -> bool:
        raise NotImplementedError

    def check_address(self, host: str) -> None:
        """Raise OSError unless the host has the address."""
        if host not in (ANY, self.host.address) and not host.startswith("127."):
            raise refusal(errno.EADDRNOTAVAIL)

    def claim(self, host: str, port: int) -> None:
        """Enter the socket at its address. Raises OSError if another holds it."""
        raise NotImplementedError

    def release(self) -> None:
        """Leave the address and end what is under way."""
        raise NotImplementedError

    def lose_power(self) -> None:
        """Forget what is under way without a word to the peers."""

    def alive(self) -> None:
        """Raise OSError if the socket is closed."""
        if self.closed:
            raise refusal(errno.EBADF)

    def changed(self) -> None:
        if self.watcher is not None:
            self.watcher.changed(self._descriptor, self)
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for thread in waiting:
                thread.wake()

    def wake_on_change(self, thread: SimulatedThread) -> None:
        """Wake a thread once, when the socket may be ready."""
        self._waiting.append(thread)

    def await_ready(self, *, write: bool = False) -> None:
        """Wait until a read or a write returns at once. Raises BlockingIOError or TimeoutError."""
        deadline = None if self._timeout is None else self.kernel.now + int(self._timeout * 1e9)
        while not (self.writable if write else self.readable):
            if self._timeout == 0.0:
                raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
            if deadline is not None and self.kernel.now >= deadline:
                raise TimeoutError("timed out")
            self.wake_on_change(self.kernel.running())
            self.kernel.block(deadline)

    def source_for(self, target: str) -> str:
        """Return the own address that a peer at `target` sees."""
        if self.local[0] != ANY:
            return self.local[0]
        return LOOPBACK if target.startswith("127.") else self.host.address


def _text(name: Any) -> str:
    """Return a host name as text; anyio passes bytes."""
    return name.decode() if isinstance(name, bytes) else str(name)
