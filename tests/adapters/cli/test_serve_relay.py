"""`stablecast lbmrd` as a process: ready, working, stopped by signals, refused."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stablecast.resolver.endpoint import bind
from stablecast.transports.wire import lbmr
from tests.support.tree import LAYERS, ROOT


@contextmanager
def lbmrd(*form: str, port: int = 0) -> Iterator[subprocess.Popen[str]]:
    """A relay process that does not outlive the test."""
    path = os.pathsep.join(str(ROOT / layer) for layer in LAYERS)
    process = subprocess.Popen(
        [sys.executable, "-m", "stablecast.cli.main", "lbmrd", "--listen", f"127.0.0.1:{port}", *form],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def said(process: subprocess.Popen[str]) -> Any:
    return json.loads(line(process))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ready_work_stop(number: signal.Signals) -> None:
    with lbmrd("--json") as process:
        ready = said(process)
        assert ready == {"ready": True, "port": ready["port"]}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(lbmr.encode(lbmr.Packet(lbmr.PacketKind.SOURCE_ALIVE)), ("127.0.0.1", ready["port"]))
            assert client.recv(lbmr.MAX_DATAGRAM)
        process.send_signal(number)
        stopped = said(process)
        assert process.wait() == 0
    assert stopped["stopped"] is True
    assert (stopped["keepalives"], stopped["clients"], stopped["malformed"]) == (1, 1, 0)


def test_for_people() -> None:
    with lbmrd() as process:
        assert line(process).startswith("lbmrd is ready on 127.0.0.1:")
        process.terminate()
        assert line(process).startswith("lbmrd stopped: clients 0, received 0, forwarded 0")
        assert process.wait() == 0


def test_a_port_in_use_is_one_sentence_and_status_1() -> None:
    with bind("127.0.0.1", (0,)) as taken:
        port = taken.getsockname()[1]
        with lbmrd(port=port) as process:
            out, err = process.communicate()
            assert (process.returncode, out) == (1, "")
    assert err == f"stablecast: port {port} on 127.0.0.1 is in use: stop the other lbmrd or choose another port\n"
