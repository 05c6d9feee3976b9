"""Answers and log lines of a daemon's monitor for malformed HTTP requests."""

import socket
from pathlib import Path

from tests.support.daemons import daemon

HOST = b"Host: %s\r\n"
HOSTILE = (
    b"GARBAGE\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: -5\r\n\r\n",
    b"POST /login HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\n",
    b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    b"POST /login HTTP/1.1\r\n" + HOST + b"Content-Type: multipart/form-data\r\nContent-Length: 1\r\n\r\na",
    b"POST /api/stores/0/drain HTTP/1.1\r\n" + HOST + b"Content-Length: 9000\r\n\r\n" + b"[" * 9000,
)
ROUNDS = 100


def test_malformed_requests_log_few_lines_without_bytes_of_the_peer(tmp_path: Path) -> None:
    with daemon(tmp_path) as store:
        host, port = store.monitor.split(":")
        for request in HOSTILE * ROUNDS:
            with socket.create_connection((host, int(port))) as peer:
                peer.sendall(request % store.monitor.encode() if b"%s" in request else request)
                assert peer.recv(100).startswith((b"HTTP/1.0 4", b"HTTP/1.1 4"))
        assert store.sources() == [], "the monitor still answers"
        store.program.interrupt()
        status, _, errors = store.program.end()
        assert (status, errors) == (0, "")
        lines = [line for line in store.log.read_text().splitlines() if "monitor-request" in line]
        assert 0 < len(lines) <= len(HOSTILE)
        assert all(len(line) < 200 and "aaaa" not in line and "ZZZ" not in line for line in lines)
