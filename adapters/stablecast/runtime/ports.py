"""Listening sockets: a given port, or the first free one of the documented range; and how to listen no longer."""

import asyncio
import errno
import socket

from stablecast.core.errors import StablecastError

SOURCE_PORTS = (14371, 14390)
"""Ports of LBT-TCP sources (transport_tcp_port_low, _high)."""

REQUEST_PORTS = (14391, 14395)
"""Request ports of contexts (request_tcp_port_low, _high)."""

BACKLOG = 1024
"""Connections that wait to be accepted: after a restart of a store all its clients come at once."""


class PortError(StablecastError):
    """A port that cannot be listened at; the message names it and the remedy."""


def listen(host: str, port: int, option: str) -> socket.socket:
    """A listening socket at `host:port`; 0 lets the system choose. Raises PortError."""
    listening = _socket(host, port)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise PortError(_sentence(host, port, option, error)) from None
    return listening


def listen_in_range(host: str, ports: tuple[int, int]) -> socket.socket:
    """A listening socket at the first free port of a range, else at one of the system's choice. Raises PortError."""
    listening = _socket(host, ports[0])
    for port in range(ports[0], ports[1] + 1):
        try:
            listening.bind((host, port))
            listening.listen(BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                listening.close()
                raise PortError(_sentence(host, port, "interface", error)) from None
            if listening.getsockname()[1]:  # Bound, but somebody else was quicker to listen.
                listening.close()
                listening = _socket(host, port)
        else:
            return listening
    listening.close()
    return listen(host, 0, "interface")


def listen_within(host: str, ports: tuple[int, int]) -> socket.socket:
    """A listening socket at the first free port of a range, and at no other. Raises PortError."""
    for port in range(ports[0], ports[1] + 1):
        try:
            return listen(host, port, "interface")
        except PortError:
            continue
    raise PortError(f"no port from {ports[0]} to {ports[1]} is free on {host}: widen the range or stop a program")


async def close(server: asyncio.Server) -> None:
    """Accept no more; the connections of `server` stay, those accepted just now are made in the next turn of the loop.

    asyncio accepts in one turn and makes the connection in the next. If the server is closed in between, making it
    fails, and a socket that nobody knows stays open: the peer hears nothing from a process that has left.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening)  # uvloop does both in one turn, and has no reader here.
    try:
        await asyncio.sleep(0)
    finally:
        server.close()


def _socket(host: str, port: int) -> socket.socket:
    try:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise PortError(_sentence(host, port, "interface", error)) from None
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setblocking(False)
    return listening


def _sentence(host: str, port: int, option: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use: stop the program that holds it or choose another {option}"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine: choose another {option}"
    if error.errno == errno.EMFILE:
        return (
            f"cannot listen on {host}: this process has no descriptor left, raise its limit of open files (ulimit -n)"
        )
    return f"cannot listen at {host}:{port}: {error.strerror}"
