"""TCP keepalive: without it a connection to a host that is gone stays half open and silent for ever."""

import asyncio
import socket
from typing import Any

IDLE_SECONDS = 10
"""Silence before the kernel sends its first probe to the peer."""

INTERVAL_SECONDS = 5
"""Time between two probes of the kernel."""

PROBES = 3
"""Unanswered probes after which the kernel breaks the connection."""


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Enable keepalive probes on a TCP connection."""
    connected: Any = transport.get_extra_info("socket")
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, IDLE_SECONDS),
        (socket.TCP_KEEPINTVL, INTERVAL_SECONDS),
        (socket.TCP_KEEPCNT, PROBES),
    ):
        connected.setsockopt(socket.IPPROTO_TCP, option, value)
