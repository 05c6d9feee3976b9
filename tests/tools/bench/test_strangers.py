"""The floods of `tools.bench.strangers`: each kind reaches what it floods; one runs whole."""

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import attrs
import pytest

from tests.support.network import LOCAL
from tests.support.program import running
from tests.support.tree import ROOT
from tools.bench.floods import KINDS, Targets
from tools.bench.strangers import main

PORTS = ("store", "source", "service", "router", "monitor")


@pytest.fixture
def targets() -> Iterator[Targets]:
    """Ports at which somebody hangs up after the first bytes, and sockets for datagrams."""
    with ExitStack() as stack:
        listening = {name: stack.enter_context(socket.create_server((LOCAL, 0))) for name in PORTS}
        for one in listening.values():
            threading.Thread(target=_serve, args=(one,), daemon=True).start()
        heard = {}
        for name in ("relay", "contexts"):
            heard[name] = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            heard[name].bind((LOCAL, 0))
        yield Targets(
            {n: [_place(s)] for n, s in listening.items()}, {n: [_place(s)] for n, s in heard.items()}, "t", 7, 9
        )


def _serve(listening: socket.socket) -> None:
    with suppress(OSError):
        while True:
            made, _ = listening.accept()
            made.recv(1 << 16)
            made.close()


def _place(made: socket.socket) -> str:
    return "{}:{}".format(*made.getsockname())


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_makes_its_attempts(kind: str, targets: Targets) -> None:
    if kind == "spoofed" and os.geteuid():
        pytest.skip("only root writes other senders")
    told = json.dumps(attrs.asdict(targets))
    with running(kind, told, program=(sys.executable, "-m", "tools.bench.floods"), directory=ROOT) as stranger:
        counted: dict[str, int] = {}
        while counted.get("attempts", 0) < 5:
            stranger.write("50\n")
            counted = stranger.json_line()
        # The other side hangs up. Then one thread closes a connection, and another one may still use it (OSError).
        assert {*counted} <= {"attempts", "ConnectionResetError", "BrokenPipeError", "OSError"}


def test_a_flood_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    main(["half frames", "--seconds", "1", "--pace", "20"])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("half frames: ")
    assert [line.split(":")[0].strip() for line in lines][:4] == ["before", "paced", "unpaced", "rested"]
