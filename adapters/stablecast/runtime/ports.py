"""TCP sockets: listening at a given port or the first free one of a documented range, and probes of silent peers."""

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

from stablecast.core.errors import StablecastError
from stablecast.runtime import machine
from stablecast.text import refusal
from stablecast.text.scarcity import is_scarce

SOURCE_PORTS = (14371, 14390)
"""Ports of LBT-TCP sources (transport_tcp_port_low, _high)."""

REQUEST_PORTS = (14391, 14395)
"""Request ports of contexts (request_tcp_port_low, _high)."""

BACKLOG = 1024
"""Connections that wait to be accepted: after a restart of a store all its clients come at once."""


LAST = 16
"""Descriptors that stay for what a process opens itself: the next segment of a journal, connections to its peers."""

RESERVE = LAST + 48
"""Descriptors that stay for joiners, stores and services. A new stream gets none of them."""

IDLE_SECONDS = 10
"""Silence before the kernel sends its first probe to the peer."""

INTERVAL_SECONDS = 5
"""Time between two probes of the kernel."""

PROBES = 3
"""Unanswered probes after which the kernel breaks the connection."""

UNSENT_BYTES = 256 * 1024
"""Bytes of a connection that the kernel has not sent, beyond which it takes no more."""


class PortError(StablecastError):
    """A port or group that cannot be used; the message names it and the remedy."""


class ScarcityError(PortError):
    """The process, or its host, has no descriptor or no memory left. That may pass."""


class Server(Protocol):
    """What accepts connections at a listening socket."""

    @property
    def sockets(self) -> tuple[machine.Socket, ...]:
        """The listening sockets."""

    async def start_serving(self) -> None:
        """Begin to accept."""

    def close(self) -> None:
        """Stop accepting."""

    async def wait_closed(self) -> None:
        """Wait until the sockets are closed."""


def refused(host: str, port: int, error: OSError, option: str = "interface") -> PortError:
    """Return the error about a socket that the system refused; `option` is the setting that can help."""
    match error.errno:
        case errno.EADDRINUSE:
            remedy = f"stop the program that holds it or choose another {option}"
            return PortError(f"port {port} on {host} is in use: {remedy}")
        case errno.EADDRNOTAVAIL:
            return PortError(f"{host} is not an address of this machine: choose another {option}")
        case errno.EACCES:
            return PortError(f"this user may not use port {port} on {host}: choose a port above 1023")
        case errno.EMFILE:
            return ScarcityError("this process has no descriptor left: raise its limit of open files (ulimit -n)")
        case _:
            kind = ScarcityError if is_scarce(error) else PortError
            return kind(f"cannot use port {port} on {host}: {refusal(error)}")


def check_reserve() -> None:
    """Check that this process can have another stream, and its joiners too. Raises PortError."""
    free = machine.process.free_descriptors()
    if free <= RESERVE:
        raise ScarcityError(
            f"this process has {free} descriptors left, and {RESERVE} stay for joiners and stores: "
            "raise its limit of open files (ulimit -n)"
        )


def crowding_host(hosts: Iterable[str], newcomer: str) -> str | None:
    """Return the host that has most of the places that are all taken, if it is not the newcomer's; else None.

    One host could keep all others out by connections that it never ends.
    """
    places = Counter(hosts)
    host, count = next(iter(places.most_common(1)), (newcomer, 0))
    return host if host != newcomer and 2 * count > places.total() else None


def has_room() -> bool:
    """Return whether this process may keep a connection that it accepted; if not, a line says so now and then."""
    if machine.process.free_descriptors() >= LAST:
        return True
    shortage = OSError(errno.EMFILE, f"{LAST} descriptors stay for its own files and connections")
    asyncio.get_running_loop().call_exception_handler(
        {"message": "a connection was not accepted", "exception": shortage}
    )
    return False


def listen(host: str, port: int, option: str) -> machine.Socket:
    """Return a listening socket at `host:port`; 0 lets the system choose. Raises PortError, which names `option`."""
    listening = _socket(host, port)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise refused(host, port, error, option) from None
    return listening


def listen_in_range(host: str, ports: tuple[int, int]) -> machine.Socket:
    """Return a listening socket at the first free port of a range, else at one of the system's choice.

    Raises PortError.
    """
    listening = _socket(host, ports[0])
    for port in range(ports[0], ports[1] + 1):
        try:
            listening.bind((host, port))
            listening.listen(BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                listening.close()
                raise refused(host, port, error) from None
            if listening.getsockname()[1]:  # Bound, but another process was quicker to listen.
                listening.close()
                listening = _socket(host, port)
        else:
            return listening
    listening.close()
    return listen(host, 0, "interface")


def listen_within(host: str, ports: tuple[int, int]) -> machine.Socket:
    """Return a listening socket at the first free port of a range, and at no other. Raises PortError."""
    for port in range(ports[0], ports[1] + 1):
        try:
            return listen(host, port, "interface")
        except PortError:
            continue
    raise PortError(f"no port from {ports[0]} to {ports[1]} is free on {host}: widen the range or stop a program")


async def close(server: Server) -> None:
    """Stop accepting connections; keep the connections of `server`, and those accepted just now.

    asyncio accepts in one turn of the loop and makes the connection in the next. If the server is closed in between,
    making it fails and the accepted socket stays open: the peer waits for a process that has left.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening)  # uvloop does both in one turn, and has no reader here.
    try:
        await asyncio.sleep(0)
    finally:
        server.close()


def _socket(host: str, port: int) -> machine.Socket:
    try:
        listening = machine.network.stream(socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise refused(host, port, error) from None
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setblocking(False)
    return listening


def prepare(transport: asyncio.BaseTransport) -> None:
    """Probe a silent peer, and bound what the system keeps for one that does not read.

    Without probes a connection to a host that is gone stays half open for ever. Without the bound the system keeps
    megabytes for each connection, and a few hundred that read nothing slow down all of the host.
    """
    prepare_socket(transport.get_extra_info("socket"))


def prepare_socket(connected: Any) -> None:
    """Do the same for a connected socket that has no transport."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES),
        (socket.TCP_KEEPIDLE, IDLE_SECONDS),
        (socket.TCP_KEEPINTVL, INTERVAL_SECONDS),
        (socket.TCP_KEEPCNT, PROBES),
    ):
        connected.setsockopt(socket.IPPROTO_TCP, option, value)
