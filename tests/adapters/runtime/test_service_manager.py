"""`service_manager` against a real datagram socket, and the shipped store under it."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from stablecast.runtime.service_manager import STATUS_LENGTH, ServiceManager
from tests.support.program import running

PATIENCE_SECONDS = 60


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The directory of a store."""
    made = tmp_path / "data"
    made.mkdir()
    return made


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket of a service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiving:
        receiving.bind(str(tmp_path / "notify"))
        receiving.settimeout(PATIENCE_SECONDS)
        yield receiving


def told(manager: socket.socket) -> list[str]:
    return manager.recv(4096).decode().splitlines()


def test_states_are_datagrams(manager: socket.socket) -> None:
    service = ServiceManager(manager.getsockname(), 0)
    service.waiting("waits\nlong", 2.5)
    assert told(manager) == ["STATUS=waits long", "EXTEND_TIMEOUT_USEC=12500000"]
    service.ready("x" * 1000)
    assert told(manager) == ["READY=1", "STATUS=" + "x" * STATUS_LENGTH]
    service.stopping()
    assert told(manager) == ["STOPPING=1", "STATUS=stops"]


def test_a_place_without_a_file(tmp_path: Path) -> None:
    place = f"@{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiving:
        receiving.bind("\0" + place[1:])
        receiving.settimeout(PATIENCE_SECONDS)
        ServiceManager(place, 0).stopping()
        assert told(receiving)[0] == "STOPPING=1"


def test_a_manager_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    ServiceManager(str(tmp_path / "nowhere"), 0).ready("serves")


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


def test_a_store_that_does_not_grant_is_not_ready(
    data: Path, manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.getsockname())
    with running("store", data, "--listen", "127.0.0.1:0", "--json") as store:
        status, extended = told(manager)
        assert status.startswith("STATUS=grants no registration for ")
        assert int(extended.removeprefix("EXTEND_TIMEOUT_USEC=")) > 10_000_000
        store.interrupt(signal.SIGTERM)
        assert told(manager) == ["STOPPING=1", "STATUS=stops"]
        assert store.end()[0] == 0
