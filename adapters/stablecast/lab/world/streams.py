"""Stream sockets of a world: TCP without its packets.

A `StreamEnd` is one end of a connection. What it sends arrives in order at the other end, later, and as long as the path
passes. The end outlives its socket until its last bytes have arrived, as in a kernel.
"""

import errno
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from stablecast.core.machine.units import SECOND
from stablecast.lab.world.network import REPEAT_NS, Address, refusal
from stablecast.lab.world.sockets import SimulatedSocket

WINDOWS = (16 << 10, 128 << 10, 512 << 10)
"""Bytes that one end may have sent and the other has not read; the seed chooses for each connection."""

FIRST_SYN_NS = 1 * SECOND
"""Time after which a connection request without an answer is repeated; it doubles each time."""

LAST_SYN_NS = 64 * SECOND
"""The longest such time; then the attempt fails."""

RESET_NS = 5 * SECOND
"""Time within which the peer of a process that lost its power learns that it is gone, once the host is back."""

_FIN = b""
"""What stands for the end of a stream among its bytes."""


class StreamEnd:
    """One end of a connection.

    Attributes:
        local: Own address.
        remote: Address of the other end.
        peer: The other end, None before the connection is made.
        sock: The socket, None once it is closed.
    """

    def __init__(self, sock: "StreamSocket", local: Address, remote: Address) -> None:
        """Make an end without a peer."""
        self.sock: StreamSocket | None = sock
        self.local = local
        self.remote = remote
        self.peer: StreamEnd | None = None
        self.inbox: deque[bytes] = deque()
        self.unread = 0
        self.over = False  # The other end sends nothing more.
        self.error = 0
        self.dead = False  # Neither end remembers the connection.
        self._kernel = sock.kernel
        self._network = sock.network
        self._here = sock.host.address
        self.there = sock.network.route(self._here, remote[0])
        self.options = sock.options
        self._window = self._kernel.random.choice(WINDOWS)
        self._flying = 0
        self._stalled: list[bytes] = []
        self._last_arrival = 0
        self.finished = False
        self.was_full = False

    @property
    def room(self) -> int:
        """Bytes that the end may send now."""
        unread = 0 if self.peer is None else self.peer.unread
        return self._window - self._flying - unread

    def join(self, peer: "StreamEnd") -> None:
        """Connect two ends."""
        self.peer, peer.peer = peer, self
        self._network.ends[self] = None
        self._network.ends[peer] = None

    def send(self, data: bytes) -> int:
        """Send as much as there is room for; return the bytes that were taken."""
        taken = data[: max(0, self.room)]
        if taken:
            self._flying += len(taken)
            self._transmit(taken)
        if len(taken) < len(data):
            self.was_full = True
        return len(taken)

    def finish(self) -> None:
        """Send the end of the stream, after everything else."""
        if not self.finished:
            self.finished = True
            self._transmit(_FIN)

    def reset(self) -> None:
        """Forget the connection, and let the other end learn it if it can be reached."""
        if self.dead:
            return
        self._forget()
        peer = self.peer
        if peer is not None and self._network.passes(self._here, self.there):
            self._kernel.after(self._delay(), lambda: peer.fail(errno.ECONNRESET))

    def fail(self, number: int) -> None:
        """End the connection with an error that the socket reports once."""
        if not self.dead:
            self._forget()
            self.error, self.over = number, True
            self.tell()

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes that have arrived; b"" at the end of the stream."""
        if not self.inbox:
            if self.error:
                number, self.error = self.error, 0
                raise refusal(number)
            return b""
        data = self.inbox.popleft()
        if len(data) > size:
            self.inbox.appendleft(data[size:])
            data = data[:size]
        self.unread -= len(data)
        peer = self.peer
        if peer is not None and peer.was_full and self._network.passes(self._here, self.there):
            peer.was_full = False
            self._kernel.after(self._delay(), peer.tell)
        return data

    def on_unreachable(self) -> None:
        """Begin to probe a silent peer if the socket wants that and nothing waits to be sent."""
        keep = self.options.get((socket.SOL_SOCKET, socket.SO_KEEPALIVE))
        if not keep or self.dead:
            return
        idle, pause, probes = (
            self.options.get((socket.IPPROTO_TCP, option), usual)
            for option, usual in ((socket.TCP_KEEPIDLE, 7_200), (socket.TCP_KEEPINTVL, 75), (socket.TCP_KEEPCNT, 9))
        )
        since = self._kernel.now
        wait = self._kernel.random.randrange(1, idle * SECOND + 1) + pause * probes * SECOND
        self._kernel.after(wait, lambda: self._give_up(since))

    def _give_up(self, since: int) -> None:
        """Fail if no packet has passed since a time; with unsent bytes TCP would repeat them for a quarter of an hour."""
        network = self._network
        cuts = (network.path(self._here, self.there), network.path(self.there, self._here))
        cut_since_then = any(path.cut and path.since <= since for path in cuts)
        peer = network.host(self.there)
        if not self._stalled and (cut_since_then or peer is None or not peer.powered):
            self.fail(errno.ETIMEDOUT)

    def repeat(self) -> None:
        """Send again what waited for the path."""
        stalled, self._stalled = self._stalled, []
        for data in stalled:
            self._transmit(data)
        if self.finished and self.over:
            self.close_quietly()
        if self.peer is not None and self.peer.was_full:
            self.peer.was_full = False
            self._kernel.after(self._delay(), self.peer.tell)

    def lose_host(self) -> None:
        """Forget the connection without a word: the host has lost its power."""
        self._forget()
        self.sock = None

    def orphan(self) -> None:
        """Learn some time after the host of the peer is back that the peer is gone."""
        wait = self._kernel.random.randrange(1, RESET_NS)
        self._kernel.after(wait, lambda: self.fail(errno.ECONNRESET))

    def _forget(self) -> None:
        self.dead = True
        self._stalled = []
        self._network.ends.pop(self, None)

    def _delay(self) -> int:
        return self._network.path(self._here, self.there).time(self._kernel.random)

    def _transmit(self, data: bytes) -> None:
        if self.dead:
            return
        if self._stalled or not self._network.passes(self._here, self.there):
            self._stalled.append(data)
            return
        path = self._network.path(self._here, self.there)
        rng = self._kernel.random
        wait = path.time(rng)
        while path.loss and rng.random() < path.loss:
            wait += REPEAT_NS
        self._last_arrival = max(self._last_arrival + 1, self._kernel.now + wait)
        peer = self.peer
        assert peer is not None
        self._kernel.at(self._last_arrival, lambda: self._arrived(peer, data))

    def _arrived(self, peer: "StreamEnd", data: bytes) -> None:
        self._flying -= len(data)
        if peer.dead:
            if not self.dead:
                self.fail(errno.ECONNRESET)
            return
        if not data:
            peer.over = True
            if peer.finished:
                peer.close_quietly()
        elif peer.sock is None:  # The process closed its end and reads nothing more.
            peer.reset()
            return
        else:
            peer.inbox.append(data)
            peer.unread += len(data)
        peer.tell()

    def close_quietly(self) -> None:
        """Forget a connection that both ends have finished, once all bytes of this end are on their way."""
        if self.sock is None and not self._stalled:
            self._forget()

    def tell(self) -> None:
        if self.sock is not None:
            self.sock.changed()


class StreamSocket(SimulatedSocket):
    """A TCP socket: a listener, or one end of a connection."""

    def __init__(self, process: Any, kind: socket.SocketKind = socket.SOCK_STREAM, proto: int = 0) -> None:
        """Open a socket of a process."""
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
        for other in self.network.streams_at(self.host.address, self.local[1]):
            if other is not self and other.listening and self._overlaps(other):
                raise refusal(errno.EADDRINUSE)
        self.listening, self.backlog = True, max(1, backlog)

    def accept(self) -> "tuple[StreamSocket, Address]":
        """Return the next connection and the address of its peer."""
        self.alive()
        self.await_ready()
        sock = StreamSocket(self.process)
        end = self.accepted.popleft()
        end.sock, end.options = sock, sock.options
        sock.end, sock.local, sock.remote = end, end.local, end.remote
        return sock, end.remote

    def connect(self, address: Address) -> None:
        """Connect. Raises OSError, also BlockingIOError while a non-blocking attempt is under way."""
        self.alive()
        if self.end is None and not self.connecting:
            self._dial((self.process.resolve(address[0]), address[1]))
            if self._timeout == 0.0:
                raise BlockingIOError(errno.EINPROGRESS, "Operation now in progress")
        if self.connecting:
            self.await_ready(write=True)
        if self.error:
            number, self.error = self.error, 0
            raise refusal(number)

    def connect_ex(self, address: Address) -> int:
        """Connect; return the number of the error, 0 for none."""
        try:
            self.connect(address)
        except OSError as error:
            return error.errno or 0
        return 0

    def send(self, data: Any, flags: int = 0) -> int:
        """Send bytes; return how many were taken. Raises OSError."""
        octets = bytes(data)
        while True:
            end = self._connected()
            if end.dead or end.finished:
                raise refusal(end.error or errno.EPIPE)
            taken = end.send(octets)
            if taken or not octets:
                return taken
            self.await_ready(write=True)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send all bytes."""
        octets = bytes(data)
        while octets:
            octets = octets[self.send(octets, flags) :]

    def sendmsg(self, buffers: Any, *_: Any) -> int:
        """Send several buffers; return how many bytes were taken."""
        return self.send(b"".join(buffers))

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return bytes that have arrived; b"" at the end. Raises OSError."""
        end = self._connected()
        self.await_ready()
        return end.read(size)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Write bytes that have arrived to a buffer; return their number."""
        data = self.recv(nbytes or len(buffer), flags)
        memoryview(buffer)[: len(data)] = data
        return len(data)

    def shutdown(self, how: int) -> None:
        """End the sending side. Raises OSError."""
        end = self._connected()
        if how != socket.SHUT_RD:
            end.finish()

    # ------------------------------------------------------------------------------------------------- for the world

    @property
    def readable(self) -> bool:
        """Whether accept or a read returns at once."""
        if self.listening:
            return bool(self.accepted)
        end = self.end
        return self.closed or bool(self.error) or (end is not None and (bool(end.inbox) or end.over or bool(end.error)))

    @property
    def writable(self) -> bool:
        """Whether a write is accepted at once, or a connection attempt is over."""
        if self.connecting:
            return False
        end = self.end
        return self.closed or bool(self.error) or (end is not None and (end.dead or end.room > 0))

    def claim(self, host: str, port: int) -> None:
        """Enter the socket at its address. Raises OSError if another listens there, or does not share it."""
        others = self.network.streams_at(self.host.address, port)
        reuse = (socket.SOL_SOCKET, socket.SO_REUSEADDR)
        for other in others:
            shared = self.options.get(reuse) and other.options.get(reuse) and not other.listening
            if not shared and (other.local[0] == host or "0.0.0.0" in (host, other.local[0])):  # noqa: S104
                raise refusal(errno.EADDRINUSE)
        others.append(self)

    def release(self) -> None:
        """Leave the address; end the connection, by a reset if bytes were not read."""
        if self.local[1] and (self.listening or self.end is None):
            self._leave()
        for end in self.accepted:
            end.sock = None
            end.reset()
        self.accepted.clear()
        end = self.end
        if end is not None:
            if end.local[1] == self.local[1] and self in self.network.streams_at(self.host.address, self.local[1]):
                self._leave()
            end.sock = None
            if end.inbox:
                end.reset()
            else:
                end.finish()
                if end.over:
                    end.close_quietly()

    def abandon(self) -> None:
        """End the connection by a reset, as for a process that was killed while bytes waited for it."""
        if self.end is not None:
            self.end.sock = None
            self.end.reset()

    def _leave(self) -> None:
        sockets = self.network.streams_at(self.host.address, self.local[1])
        if self in sockets:
            sockets.remove(self)

    def _overlaps(self, other: "StreamSocket") -> bool:
        return other.local[0] == self.local[0] or "0.0.0.0" in (other.local[0], self.local[0])  # noqa: S104

    def _connected(self) -> StreamEnd:
        self.alive()
        if self.end is None or self.connecting:
            if self.error:
                number, self.error = self.error, 0
                raise refusal(number)
            raise refusal(errno.ENOTCONN)
        return self.end

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
            self.kernel.after(network.path(here, there).time(self.kernel.random), lambda: self._asked(there, to))
        elif patience > LAST_SYN_NS:
            self._refuse(errno.ETIMEDOUT)
        else:
            self.kernel.after(patience, lambda: self._ask(to, 2 * patience))

    def _asked(self, there: str, to: Address) -> None:
        """Answer at the peer's host."""
        if self.closed:
            return
        listener = self.network.listener(there, to)
        answer: Callable[[], None]
        back = self.network.path(there, self.host.address).time(self.kernel.random)
        if listener is None:
            answer = lambda: self._refuse(errno.ECONNREFUSED)  # noqa: E731 - one of two answers
        elif len(listener.accepted) >= listener.backlog:
            self.kernel.after(FIRST_SYN_NS, lambda: self._ask(to, FIRST_SYN_NS * 2))
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

    def _refuse(self, number: int) -> None:
        if not self.closed:
            self.connecting, self.error = False, number
            self.changed()
