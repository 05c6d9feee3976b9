"""One end of a TCP connection of a world. Its bytes arrive in order at the other end, later, while the path passes.

The end outlives its socket until its last bytes have arrived, as in a kernel. An end that sends nothing and has no
keepalive never learns that its peer is gone, as in TCP.

Bytes that arrived stay in flight until their acknowledgement passes back. If it does not pass for `REPEAT_NS`, the end
sends nothing new, as TCP after its first timeout: it only repeats the oldest bytes, and those have arrived already.
"""

import errno
import socket
from collections import deque
from typing import Any, Protocol

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.lab.world.kernel import Kernel
from stablecast.lab.world.network import LONGEST_REPEAT_NS, REPEAT_NS, Address, NetworkHost, SimulatedNetwork, refusal

WINDOWS = (16 << 10, 128 << 10, 512 << 10)
"""Bytes that one end may have sent and the other has not read; the seed chooses for each connection."""

RESET_NS = 5 * SECOND
"""Time within which an end with bytes to repeat learns that its peer is gone, once the host of the peer is back."""

REPEATING_NS = 924 * SECOND
"""Time for which an end repeats bytes that nobody acknowledges, unless TCP_USER_TIMEOUT is set; as in Linux."""

KEEPALIVE = ((socket.TCP_KEEPIDLE, 7_200), (socket.TCP_KEEPINTVL, 75), (socket.TCP_KEEPCNT, 9))
"""Options of the keepalive with their usual values: s until the first probe, s between probes, probes."""

SPLIT_BITS = 3
"""One in 2**3 writes arrives in two pieces, so a reader that expects whole messages is found out."""

_FIN = b""
"""The end of a stream, among its bytes."""


class EndSocket(Protocol):
    kernel: Kernel
    network: SimulatedNetwork
    options: dict[tuple[int, int], Any]

    @property
    def host(self) -> NetworkHost: ...

    def changed(self) -> None:
        """Wake those who wait for the socket."""


class StreamEnd:
    """One end of a connection.

    Attributes:
        local: Own address.
        remote: Address of the other end.
        here: Address of the own host.
        there: Address of the host of the other end.
        peer: The other end, None before the connection is made.
        sock: The socket, None once it is closed.
        inbox: Bytes that have arrived and were not read, `unread` of them.
        over: The end of what the other end sends has arrived.
        finished: This end sends nothing more.
        dead: This end has forgotten the connection.
        error: Number of the error that the socket raises next.
    """

    def __init__(self, sock: EndSocket, local: Address, remote: Address) -> None:
        self.sock: EndSocket | None = sock
        self.local = local
        self.remote = remote
        self.here = sock.host.address
        self.there = sock.network.route(self.here, remote[0])
        self.peer: StreamEnd | None = None
        self.inbox: deque[bytes] = deque()
        self.unread = 0
        self.over = self.finished = self.dead = False
        self.error = 0
        self.options = sock.options
        self._kernel = sock.kernel
        self._network = sock.network
        self._window = self._kernel.random.choice(WINDOWS)
        self._flying = 0
        self._unacknowledged = 0  # Bytes in flight that have arrived.
        self._was_full = False
        self._stalled: list[bytes] = []
        self._waits_since = 0  # Since then nothing is acknowledged; 0 if nothing waits for that.
        self._last_arrival = 0

    def join(self, peer: "StreamEnd") -> None:
        self.peer, peer.peer = peer, self
        self._network.ends[self] = None
        self._network.ends[peer] = None

    # --------------------------------------------------------------------------------------------------- for the socket

    @property
    def readable(self) -> bool:
        return bool(self.inbox or self.over or self.dead)

    @property
    def writable(self) -> bool:
        """Return whether a write returns at once; the end wakes its socket when that becomes true."""
        if self.dead or self.finished or self._room > 0:
            return True
        self._was_full = True
        return False

    @property
    def _room(self) -> int:
        unread = 0 if self.peer is None else self.peer.unread - self._unacknowledged
        return self._window - self._flying - max(0, unread)

    def send(self, data: bytes) -> int:
        """Send as much as there is room for; return the bytes that were taken. Raises OSError after the end."""
        if self.error:
            raise refusal(self.take_error())
        if self.dead or self.finished:
            raise refusal(errno.EPIPE)
        taken, room = data, self._room
        count = len(taken)
        if count > room and taken:
            taken = data[: max(0, room)]
            count = len(taken)
            self._was_full = True
        if taken:
            self._flying += count
            kernel = self._kernel
            cut = 0 if kernel.bits(SPLIT_BITS) else kernel.below(count)
            if cut:
                self._transmit(taken[:cut])
                taken = taken[cut:]
            self._transmit(taken)
        return count

    def read(self, size: int, *, peek: bool = False) -> bytes:
        """Return up to `size` bytes that have arrived; b"" at the end of the stream. Raises the error of the end."""
        inbox = self.inbox
        if not inbox:
            if self.error and not self.over:
                raise refusal(self.take_error())
            return b""
        whole = inbox[0] if len(inbox) == 1 else b"".join(inbox)
        data = whole[:size]
        if peek:
            return data
        inbox.clear()
        if rest := whole[size:]:
            inbox.append(rest)
        self.unread -= len(data)
        peer = self.peer
        if peer is not None and peer._was_full:
            self._notify(peer)
        return data

    def take_error(self) -> int:
        """Return the number of the error, 0 for none, and forget it."""
        number, self.error = self.error, 0
        return number

    def finish(self) -> None:
        """Send the end of the stream, after everything else."""
        if not self.finished:
            self.finished = True
            self._transmit(_FIN)

    def close(self) -> None:
        """Lose the socket: send the end of the stream, or a reset if bytes were not read."""
        self.sock = None
        if self.inbox:
            self.reset()
        else:
            self.finish()
            self._close_quietly()

    def reset(self) -> None:
        """Forget the connection, and let the other end learn it if it can be reached."""
        if self.dead:
            return
        self._forget()
        peer = self.peer
        if peer is not None and self._network.passes(self.here, self.there):
            self._kernel.after(self._delay(), lambda: peer.fail(errno.ECONNRESET))

    # -------------------------------------------------------------------------------------------------- for the network

    def fail(self, number: int) -> None:
        """End the connection with an error that the socket raises once."""
        if not self.dead:
            self._forget()
            if number == errno.ECONNRESET and self.over:  # Linux: TIME_WAIT has no socket, CLOSE_WAIT breaks the pipe.
                number = 0 if self.finished else errno.EPIPE
            self.error = number
            self._wake()

    def on_unreachable(self) -> None:
        """Begin to probe a silent peer if the socket wants that and nothing waits to be sent."""
        if self.dead or not self._option(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0):
            return
        idle, pause, probes = (self._option(socket.IPPROTO_TCP, option, usual) for option, usual in KEEPALIVE)
        since = self._kernel.now
        wait = self._kernel.random.randrange(1, idle * SECOND + 1) + pause * probes * SECOND
        self._kernel.after(wait, lambda: self._give_up_probing(since))

    def repeat(self) -> None:
        """Send again what waited for the path, and learn what has arrived."""
        stalled, self._stalled = self._stalled, []
        if self._network.passes(self.there, self.here):
            self._acknowledge(0)
        for data in stalled:
            self._transmit(data)
        self._close_quietly()
        if self.peer is not None:
            self._notify(self.peer)

    def lose_host(self) -> None:
        """Forget the connection without a word: the host has lost its power."""
        self._forget()
        self.sock = None

    def orphan(self) -> None:
        """Learn by a repeated packet or a probe, after the host of the peer is back, that the peer is gone."""
        if self._waits_since:
            within = RESET_NS
        elif self._option(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0):
            within = self._option(socket.IPPROTO_TCP, *KEEPALIVE[0]) * SECOND
        else:
            return
        self._kernel.after(self._kernel.random.randrange(1, within + 1), lambda: self.fail(errno.ECONNRESET))

    # ---------------------------------------------------------------------------------------------------------- packets

    def _transmit(self, data: bytes) -> None:
        if self.dead:
            return
        way = self._network.way(self.here, self.there)
        if self._stalled or way is None or not way.passes or (self._unacknowledged and self._has_timed_out()):
            self._stall(data)
            return
        path, kernel = way.path, self._kernel
        wait = path.time(kernel)
        repeat = REPEAT_NS
        while path.loss and kernel.random.random() < path.loss:
            wait += repeat
            repeat = min(2 * repeat, LONGEST_REPEAT_NS)
        arrival = kernel.now + wait
        if arrival <= self._last_arrival:
            arrival = self._last_arrival + 1
        self._last_arrival = arrival
        peer = self.peer
        assert peer is not None
        kernel.at(arrival, lambda: self._arrived(peer, data))

    def _stall(self, data: bytes) -> None:
        """Keep what cannot arrive now."""
        self._begin_to_wait()
        self._stalled.append(data)

    def _begin_to_wait(self) -> None:
        """Start the clock of bytes that are not acknowledged; the end fails if they wait for too long."""
        if not self._waits_since:
            self._waits_since = since = self._kernel.now
            limit = self._option(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 0) * MILLISECOND or REPEATING_NS
            self._kernel.after(limit, lambda: self._give_up_repeating(since))

    def _has_timed_out(self) -> bool:
        """Return whether bytes that arrived wait for an acknowledgement that cannot pass."""
        return (
            self._unacknowledged > 0
            and self._kernel.now - self._waits_since >= REPEAT_NS
            and not self._network.passes(self.there, self.here)
        )

    def _acknowledge(self, count: int) -> None:
        """Count bytes as delivered, with all before them: an acknowledgement passes back."""
        waited, self._unacknowledged = self._unacknowledged, 0
        self._flying -= count + waited
        if not self._stalled:
            self._waits_since = 0
        if waited and self._was_full and self._room > 0:
            self._was_full = False
            self._wake()

    def _arrived(self, peer: "StreamEnd", data: bytes) -> None:
        if peer.dead:
            self._answered_by_nobody(data)
            return
        if self._network.passes(self.there, self.here):
            self._acknowledge(len(data))
        elif data:
            self._unacknowledged += len(data)
            self._begin_to_wait()
        if not data:
            peer.over = True
            peer._close_quietly()
            peer._wake()
        elif peer.sock is None:  # The process closed its end and reads nothing more.
            peer.reset()
        else:
            peer.inbox.append(data)
            peer.unread += len(data)
            peer._wake()

    def _answered_by_nobody(self, data: bytes) -> None:
        """Receive the reset of a host that does not know the connection, unless the host has no power."""
        if self.dead:
            return
        if self._network.passes(self.there, self.here):
            wait = self._network.path(self.there, self.here).time(self._kernel)
            self._kernel.after(wait, lambda: self.fail(errno.ECONNRESET))
        else:
            self._stall(data)

    def _give_up_probing(self, since: int) -> None:
        network = self._network
        paths = (network.path(self.here, self.there), network.path(self.there, self.here))
        cut_since_then = any(path.cut and path.since <= since for path in paths)
        host = network.host(self.there)
        if not self._waits_since and (cut_since_then or host is None or not host.powered):
            self.fail(errno.ETIMEDOUT)

    def _give_up_repeating(self, since: int) -> None:
        if self._waits_since == since:
            self.fail(errno.ETIMEDOUT)

    def _notify(self, peer: "StreamEnd") -> None:
        """Let the other end learn that there is room again, if it waits for that."""
        if peer._was_full and self._network.passes(self.here, self.there):
            peer._was_full = False
            self._kernel.after(self._delay(), peer._wake)

    def _close_quietly(self) -> None:
        """Forget a connection that both ends have finished, once all bytes of this end are on their way."""
        if self.finished and self.over and self.sock is None and not self._stalled:
            self._forget()

    def _forget(self) -> None:
        self.dead = True
        self._stalled = []
        self._waits_since = 0
        self._network.ends.pop(self, None)

    def _option(self, level: int, option: int, usual: int) -> int:
        return int(self.options.get((level, option), usual))

    def _delay(self) -> int:
        return self._network.path(self.here, self.there).time(self._kernel)

    def _wake(self) -> None:
        if self.sock is not None:
            self.sock.changed()
