"""A running store behind its monitor: operations, and the terminal."""

import asyncio
import io
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TypeVar

import pytest

from stablecast.ops.monitor import Monitor, MonitorSettings, Permission
from stablecast.ops.operations.monitor_client import TIMEOUT_SECONDS, MonitorClient, drained, remaining, token_of
from stablecast.ops.operations.target import TOKEN_VARIABLE, OperationError, Remote
from stablecast.store import observatory
from tests.adapters.ops.monitor.staged_store import Staged, busy

ResultT = TypeVar("ResultT")
TOKEN = "open-sesame"


@pytest.fixture(autouse=True)
def _always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observatory, "FRESH_NS", 0)
    monkeypatch.setattr("stablecast.ops.monitor.board.SWEEP_SECONDS", 0)


@asynccontextmanager
async def monitored(staged: Staged) -> AsyncIterator[MonitorClient]:
    monitor = Monitor(MonitorSettings(permission=Permission.READ_WRITE, token=TOKEN), [staged.watched()])
    monitor.start()
    try:
        yield MonitorClient(Remote(f"http://{monitor.address}", 0), TOKEN)
    finally:
        await monitor.stop()


async def asked(question: Callable[[], ResultT]) -> ResultT:
    return await asyncio.to_thread(question)


@contextmanager
def stranger(body: bytes, onward: str = "") -> Iterator[MonitorClient]:
    """Somebody else who listens there, and perhaps sends the client `onward`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302 if onward else 200)
            if onward:
                self.send_header("Location", onward)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield MonitorClient(Remote(f"http://127.0.0.1:{server.server_port}", 0))
        server.shutdown()


async def test_a_store_and_its_sources_are_told() -> None:
    async with monitored(busy()) as client:
        assert (await asked(client.store))["name"] == "orders"
        sources = await asked(lambda: list(client.all_sources()))
        assert [one["topic"] for one in sources] == ["orders/new", "quotes <b>&", "silence"]


async def test_all_sources_are_told_however_many() -> None:
    staged = Staged()
    for number in range(201):
        staged.source(5000 + number)
    async with monitored(staged) as client:
        assert len(await asked(lambda: list(client.all_sources()))) == 201


async def test_a_store_is_drained_when_receivers_have_everything() -> None:
    staged = busy()
    told: list[dict[int, int]] = []

    def wait() -> None:
        staged.acknowledge(1001, 2001, 1001 << 32 | 17, 499)
        for receiver in (2002, 2003):
            staged.acknowledge(1002, receiver, 1002 << 32 | 17, 3999)

    async with monitored(staged) as client:
        await asked(lambda: drained(client, wait, told.append))
        assert staged.draining
        assert told[0] == {1001: 19, 1002: 4000}
        assert await asked(lambda: remaining(client)) == {}
        assert "accepted again" in await asked(lambda: client.change("drain", on=0))


async def test_files_are_scrubbed_and_exported_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    async with monitored(Staged(directory=str(tmp_path))) as client:
        assert (await asked(client.scrub))["clean"]
        file = io.BytesIO()
        await asked(lambda: client.export({}, file))
        assert file.getvalue().startswith(b"\x28\xb5\x2f\xfd")


async def test_scrub_and_export_wait_as_long_as_the_host_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both may read a whole disk before their first byte; all else is answered at once."""
    (tmp_path / "lock").touch()
    waits: list[tuple[float | None, bool]] = []
    respond = HTTPConnection.getresponse

    def noted(connection: HTTPConnection) -> HTTPResponse:
        probed = bool(connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
        waits.append((connection.sock.gettimeout(), probed))
        return respond(connection)

    monkeypatch.setattr(HTTPConnection, "getresponse", noted)
    async with monitored(Staged(directory=str(tmp_path))) as client:
        await asked(client.scrub)
        await asked(lambda: client.export({}, io.BytesIO()))
        await asked(client.store)
    assert waits == [(None, True), (None, True), (TIMEOUT_SECONDS, False)]


async def test_what_the_monitor_refuses_is_said() -> None:
    async with monitored(busy()) as client:
        with pytest.raises(OperationError, match="answered 404: no client is registered as 5"):
            await asked(lambda: client.change("evict", reg_id=5))
        with pytest.raises(OperationError, match="answered 401: the token is missing or wrong"):
            await asked(MonitorClient(client.remote).store)


def test_a_monitor_that_is_not_there_is_said() -> None:
    with pytest.raises(
        OperationError, match=r"does not answer: Connection refused; name where a store's web-monitor listens$"
    ):
        MonitorClient(Remote("http://127.0.0.1:1", 0)).store()


@pytest.mark.parametrize("body", [b"<html>", b"[1]"])
def test_another_service_is_no_monitor(body: bytes) -> None:
    with stranger(body) as client, pytest.raises(OperationError, match="not that of a store"):
        client.store()


def test_a_list_that_ends_early_ends() -> None:
    with stranger(json.dumps({"found": 9, "sources": []}).encode()) as client:
        assert list(client.all_sources()) == []


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert token_of(None) == ""
    monkeypatch.setenv(TOKEN_VARIABLE, "from-environment")
    assert token_of(None) == "from-environment"
    assert token_of(tmp_path / "token") == "from-file"


async def test_the_token_goes_to_no_other_host() -> None:
    """A host that answers for one monitor must not learn the token of all."""
    elsewhere = stranger(b'{"stores": "of another host"}')
    with elsewhere as other, stranger(b"", f"{other.remote.base}/") as client, pytest.raises(OperationError) as refused:
        await asked(client.daemon)
    assert "answered 302" in str(refused.value)
