"""Connections that notice when the other host is gone: without keepalive a half-open one stays silent for ever."""

import asyncio
import socket
from typing import Any

IDLE_SECONDS = 10
"""Silence after which the kernel asks whether the peer is there."""

INTERVAL_SECONDS = 5
"""Between two questions."""

QUESTIONS = 3
"""Unanswered questions after which the connection is broken."""


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Ask the kernel to watch a TCP connection."""
    connected: Any = transport.get_extra_info("socket")
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, IDLE_SECONDS),
        (socket.TCP_KEEPINTVL, INTERVAL_SECONDS),
        (socket.TCP_KEEPCNT, QUESTIONS),
    ):
        connected.setsockopt(socket.IPPROTO_TCP, option, value)
