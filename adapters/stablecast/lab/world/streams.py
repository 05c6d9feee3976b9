"""Stream sockets of a world: TCP without its packets."""

import errno
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from stablecast.core.machine.units import SECOND
from stablecast.lab.world.network import ANY, Address, refusal
from stablecast.lab.world.sockets import SimulatedSocket, SocketOwner
from stablecast.lab.world.stream_end import StreamEnd

FIRST_SYN_NS = 1 * SECOND
"""Time after which a connection request without an answer is repeated; it doubles each time."""

LAST_SYN_NS = 64 * SECOND
"""The longest such time; then the attempt fails."""

_DONT_WAIT, _PEEK = int(socket.MSG_DONTWAIT), int(socket.MSG_PEEK)  # A flag of `socket` computes ten times as long.
_REUSE = (socket.SOL_SOCKET, socket.SO_REUSEADDR)
_LINGER = (socket.SOL_SOCKET, socket.SO_LINGER)


class TcpSocket(SimulatedSocket):
    def __init__(self, process: SocketOwner, kind: socket.SocketKind = socket.SOCK_STREAM, proto: int = 0) -> None:
        super().__init__(process, kind, proto)
        self.listening = False
        self.end: StreamEnd | None = None
        self.connecting = False
        self.backlog = 0
        self.accepted: deque[StreamEnd] = deque()

    # ------------------------------------------------------------------------------------------------- as in the system

    def listen(self, backlog: int = 128) -> None:
        """Accept connections at the bound address. Raises OSError if another socket does."""
        self.alive()
        if not self.local[1]:
            self.bind(self.local)
        if self.end is not None or self.connecting:
            raise refusal(errno.EINVAL)
        for other in self.network.streams_at(self.host.address, self.local[1]):
            if other is not self and other.listening and _overlap(self.local[0], other.local[0]):
                raise refusal(errno.EADDRINUSE)
        self.listening, self.backlog = True, max(1, backlog)

    def accept(self) -> "tuple[TcpSocket, Address]":
        self.alive()
        if not self.listening:
            raise refusal(errno.EINVAL)
        self.await_ready()
        self.alive()
        sock = TcpSocket(self.process)
        sock.options.update(self.options)
        end = self.accepted.popleft()
        end.sock, end.options = sock, sock.options
        sock.end, sock.local, sock.remote = end, end.local, end.remote
        return sock, end.remote

    def connect(self, address: Address) -> None:
        """Connect. Raises OSError, also BlockingIOError while a non-blocking attempt is under way."""
        self.alive()
        if self.end is not None or self.listening:
            raise refusal(errno.EISCONN)
        if self.connecting:
            raise refusal(errno.EALREADY)
        if not self.error:
            self._dial((self.process.resolve(address[0]), address[1]))
            if self._timeout == 0.0:
                raise BlockingIOError(errno.EINPROGRESS, "Operation now in progress")
            self.await_ready(write=True)
            self.alive()
        self._raise_error()

    def connect_ex(self, address: Address) -> int:
        try:
            self.connect(address)
        except OSError as error:
            return error.errno or 0
        return 0

    def send(self, data: Any, flags: int = 0) -> int:
        """Send bytes; return how many were taken. Raises OSError."""
        octets = data if type(data) is bytes else bytes(data)
        while True:
            taken = self._connected().send(octets)
            if taken or not octets:
                return taken
            self.await_ready(write=True)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send all bytes, and wait for room meanwhile."""
        octets = bytes(data)
        while octets:
            octets = octets[self.send(octets, flags) :]

    def sendmsg(self, buffers: Any, *_: Any) -> int:
        """Send several buffers; return how many bytes were taken."""
        return self.send(b"".join(buffers))

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return bytes that have arrived; b"" at the end. Raises OSError."""
        end = self.end
        if end is not None and end.inbox and not flags and not self.closed:
            return end.read(size)
        end = self._connected()
        if flags and flags & _DONT_WAIT and not self.readable:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        self.await_ready()
        self.alive()
        return end.read(size, peek=bool(flags and flags & _PEEK))

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        data = self.recv(nbytes or len(buffer), flags)
        memoryview(buffer)[: len(data)] = data
        return len(data)

    def shutdown(self, how: int) -> None:
        """End the sending side. Raises OSError."""
        end = self._connected()
        if end.dead or (end.finished and end.over):
            raise refusal(errno.ENOTCONN)
        if how != socket.SHUT_RD:
            end.finish()

    def getsockopt(self, level: int, option: int, length: int = 0) -> Any:
        """Return an option; SO_ERROR is the error of the connection, too."""
        if (level, option) == (socket.SOL_SOCKET, socket.SO_ERROR) and self.end is not None:
            self.alive()
            return self.end.take_error()
        return super().getsockopt(level, option, length)

    # ------------------------------------------------------------------------------------------------- for the world

    @property
    def readable(self) -> bool:
        if self.listening:
            return bool(self.accepted)
        end = self.end
        if self.closed or self.error or end is None:
            return self.closed or bool(self.error)
        return bool(end.inbox or end.over or end.dead)

    @property
    def writable(self) -> bool:
        """Return whether a write is accepted at once, or a connection attempt is over."""
        if self.connecting:
            return False
        return self.closed or bool(self.error) or (self.end is not None and self.end.writable)

    def claim(self, host: str, port: int) -> None:
        """Enter the socket at its address. Raises OSError if another listens there, or does not share it."""
        others = self.network.streams_at(self.host.address, port)
        for other in cast("list[TcpSocket]", others):
            shared = self.options.get(_REUSE) and other.options.get(_REUSE) and not other.listening
            if not shared and _overlap(other.local[0], host):
                raise refusal(errno.EADDRINUSE)
        others.append(self)

    def release(self) -> None:
        """Leave the address; end the connection, by a reset if bytes were not read."""
        sockets = self.network.streams_at(self.host.address, self.local[1])
        if self in sockets:
            sockets.remove(self)
        for end in self.accepted:
            end.sock = None
            end.reset()
        self.accepted.clear()
        if self.end is not None:
            if _resets(self.options.get(_LINGER)):
                self.end.sock = None
                self.end.reset()
            else:
                self.end.close()

    def lose_power(self) -> None:
        """Forget all connections; their peers are not told."""
        for end in (*self.accepted, *([] if self.end is None else [self.end])):
            end.lose_host()
        self.accepted.clear()

    def _raise_error(self) -> None:
        if self.error:
            number, self.error = self.error, 0
            raise refusal(number)

    def _connected(self) -> StreamEnd:
        end = self.end
        if end is None or self.closed:
            self.alive()
            self._raise_error()
            raise refusal(errno.EAGAIN if self.connecting else errno.ENOTCONN)
        return end

    def _dial(self, to: Address) -> None:
        if not self.local[1]:
            host = self.source_for(to[0])
            self.local = (host, self.network.free_port(self.host.address, streams=True))
            self.network.streams_at(self.host.address, self.local[1]).append(self)
        self.local = (self.source_for(to[0]), self.local[1])
        self.remote, self.connecting = to, True
        self._ask(to, FIRST_SYN_NS)

    def _ask(self, to: Address, patience: int) -> None:
        """Send the connection request, and again if no answer comes."""
        if self.closed or not self.connecting:
            return
        here, network = self.host.address, self.network
        there = network.route(here, to[0])
        if network.host(there) is None:
            self._refuse(errno.EHOSTUNREACH)
        elif network.connected(here, there):
            wait = network.path(here, there).time(self.kernel)
            self.kernel.after(wait, lambda: self._asked(there, to, patience))
        elif patience > LAST_SYN_NS:
            self._refuse(errno.ETIMEDOUT)
        else:
            self.kernel.after(patience, lambda: self._ask(to, 2 * patience))

    def _asked(self, there: str, to: Address, patience: int) -> None:
        """Answer at the peer's host."""
        if self.closed:
            return
        listener = cast("TcpSocket | None", self.network.listener(there, to))
        answer: Callable[[], None]
        back = self.network.path(there, self.host.address).time(self.kernel)
        if listener is None:
            answer = lambda: self._refuse(errno.ECONNREFUSED)  # noqa: E731 - one of two answers
        elif len(listener.accepted) > listener.backlog:
            again = self._give_up if patience > LAST_SYN_NS else lambda: self._ask(to, 2 * patience)
            self.kernel.after(patience, again)
            return
        else:
            mine = StreamEnd(self, self.local, to)
            theirs = StreamEnd(listener, to, self.local)
            mine.join(theirs)
            listener.accepted.append(theirs)
            listener.changed()
            answer = lambda: self._made(mine)  # noqa: E731
        self.kernel.after(back, answer)

    def _made(self, end: StreamEnd) -> None:
        if self.closed:
            end.sock = None
            end.reset()
            return
        self.connecting, self.end = False, end
        self.changed()

    def _give_up(self) -> None:
        self._refuse(errno.ETIMEDOUT)

    def _refuse(self, number: int) -> None:
        if not self.closed:
            self.connecting, self.error = False, number
            self.changed()


def _overlap(one: str, other: str) -> bool:
    return one == other or ANY in (one, other)


def _resets(linger: Any) -> bool:
    """Return whether an SO_LINGER option asks for a reset at the close."""
    return isinstance(linger, bytes) and len(linger) == struct.calcsize("ii") and struct.unpack("ii", linger) == (1, 0)
