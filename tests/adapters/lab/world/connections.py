"""Connections of programs of a world: one listens, one dials."""

import socket
import time

PORT = 5_000


def listener(backlog: int = 128) -> socket.socket:
    sock = socket.socket()
    sock.bind(("0.0.0.0", PORT))
    sock.listen(backlog)
    return sock


def dial(host: str = "server") -> socket.socket:
    time.sleep(0.5)  # The server listens by then.
    sock = socket.socket()
    sock.connect((host, PORT))
    return sock


def accepted() -> socket.socket:
    with listener() as sock:
        return sock.accept()[0]


def read_all(sock: socket.socket) -> bytes:
    parts = []
    while part := sock.recv(65_536):
        parts.append(part)
    return b"".join(parts)
