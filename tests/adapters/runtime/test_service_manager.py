"""`service_manager` against a real datagram socket, and the shipped store under it."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from stablecast.runtime.service_manager import STATUS_LENGTH, ServiceManager
from tests.support.program import running


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiving:
        receiving.bind(str(tmp_path / "notify"))
        yield receiving


def told(manager: socket.socket) -> list[str]:
    return manager.recv(4096).decode().splitlines()


async def test_states_are_datagrams(manager: socket.socket) -> None:
    async with ServiceManager(manager.getsockname(), 0).serving("two\nlines" + "x" * 1000):
        for _ in range(5):  # Without a watchdog no sign of life follows.
            await asyncio.sleep(0)
        assert told(manager) == ["READY=1", "STATUS=two lines" + "x" * (STATUS_LENGTH - 9)]
    assert told(manager) == ["STOPPING=1", "STATUS=stops"]


async def test_a_daemon_that_hangs_gives_no_sign_of_life(manager: socket.socket) -> None:
    hangs, asked = asyncio.Event(), asyncio.Event()

    async def alive() -> None:
        asked.set()
        await hangs.wait()

    async with ServiceManager(manager.getsockname(), 1_000_000).serving("serves", alive):
        await asked.wait()
        assert told(manager)[0] == "READY=1"
        hangs.set()
        await asyncio.sleep(0)
        assert told(manager) == ["WATCHDOG=1"]


async def test_a_place_without_a_file(tmp_path: Path) -> None:
    place = f"@{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiving:
        receiving.bind("\0" + place[1:])
        async with ServiceManager(place, 0).serving("serves"):
            await asyncio.sleep(0)
        assert told(receiving) == ["READY=1", "STATUS=serves"]


async def test_a_manager_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    async with ServiceManager(str(tmp_path / "nowhere"), 0).serving("serves"):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("environment", "watchdog_ns"),
    [
        ({}, 0),
        ({"WATCHDOG_USEC": "3000000"}, 3_000_000_000),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 3_000_000_000),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, 0),
        ({"WATCHDOG_USEC": "soon"}, 0),
    ],
)
def test_the_environment_names_it(
    environment: dict[str, str], watchdog_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"NOTIFY_SOCKET": "/run/notify", **environment}.items():
        monkeypatch.setenv(name, value)
    assert ServiceManager.of_environment() == ServiceManager("/run/notify", watchdog_ns)


def test_a_store_reports_its_life(data: Path, manager: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.getsockname())
    monkeypatch.setenv("WATCHDOG_USEC", "30000")
    with running("store", data, "--listen", "127.0.0.1:0", "--new", "--json") as store:
        assert told(manager) == ["READY=1", "STATUS=1 store ready to accept registrations"]
        assert [told(manager), told(manager)] == [["WATCHDOG=1"], ["WATCHDOG=1"]]
        store.interrupt(signal.SIGTERM)
        while (last := told(manager)) == ["WATCHDOG=1"]:
            pass
        assert last == ["STOPPING=1", "STATUS=stops"]
        assert store.end()[0] == 0


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["lbmrd", "--listen", "127.0.0.1:0"], "STATUS=serves at 127.0.0.1:"),
        (["srs", "--interface", "127.0.0.1", "--port", "0"], "STATUS=serves at 127.0.0.1:"),
    ],
)
def test_resolution_reports_its_life(
    command: list[str], status: str, manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.getsockname())
    with running(*command) as program:
        ready, shown = told(manager)
        assert (ready, shown.startswith(status)) == ("READY=1", True)
        program.interrupt(signal.SIGTERM)
        assert told(manager) == ["STOPPING=1", "STATUS=stops"]
        assert program.end()[0] == 0


def test_a_store_that_does_not_grant_is_not_ready(
    data: Path, manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.getsockname())
    with running("store", data, "--listen", "127.0.0.1:0", "--json") as store:
        status, extended = told(manager)
        assert status.startswith("STATUS=serves in ")
        assert int(extended.removeprefix("EXTEND_TIMEOUT_USEC=")) > 10_000_000
        store.interrupt(signal.SIGTERM)
        assert told(manager) == ["STOPPING=1", "STATUS=stops"]
        assert store.end()[0] == 0
