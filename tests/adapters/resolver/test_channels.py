"""Outgoing connections by number, on the loopback interface."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import uvloop

from stablecast.resolver import channels
from stablecast.resolver.channels import Channels, Happening
from stablecast.transports.resolution.srs.events import BytesReceived, ConnectionClosed, ConnectionOpened
from tests.support.network import sockets, until, unused_port

LOCAL = "127.0.0.1"


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server((LOCAL, 0)) as listening:
        yield listening


@pytest.fixture
async def made() -> AsyncIterator[tuple[Channels, "asyncio.Queue[Happening]"]]:
    told: asyncio.Queue[Happening] = asyncio.Queue()
    started = Channels(LOCAL, told.put_nowait)
    yield started, told
    await started.close()


Made = tuple[Channels, "asyncio.Queue[Happening]"]


def address(server: socket.socket) -> str:
    return f"{LOCAL}:{server.getsockname()[1]}"


async def test_a_connection_from_its_beginning_to_its_end(made: Made, server: socket.socket) -> None:
    connections, told = made
    connections.connect(5, address(server))
    opened = await told.get()
    peer, where = server.accept()
    assert opened == ConnectionOpened(5, f"{where[0]}:{where[1]}")
    with peer:
        connections.write(5, b"there")
        peer.sendall(b"back")
        assert await told.get() == BytesReceived(5, b"back")
        assert peer.recv(10) == b"there"
    assert await told.get() == ConnectionClosed(5, "the peer closed the connection")
    connections.write(5, b"too late")
    connections.cut(5)


async def test_a_broken_connection_is_reported(made: Made, server: socket.socket) -> None:
    connections, told = made
    connections.connect(1, address(server))
    await told.get()
    peer, _ = server.accept()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    peer.close()
    assert await told.get() == ConnectionClosed(1, "the connection broke")


async def test_a_refusal_is_reported_with_its_reason(made: Made) -> None:
    connections, told = made
    connections.connect(1, f"{LOCAL}:{unused_port()}")
    closed = await told.get()
    assert isinstance(closed, ConnectionClosed)
    assert closed.reason


async def test_nothing_is_reported_of_a_cut_connection(made: Made, server: socket.socket) -> None:
    """While it is made, and once it is there."""
    connections, told = made
    connections.connect(1, address(server))
    connections.cut(1)
    connections.connect(2, address(server))
    assert isinstance(await told.get(), ConnectionOpened)
    connections.cut(2)
    await until(connections._empty.is_set)
    assert told.empty()


async def test_closing_leaves_nothing(made: Made, server: socket.socket) -> None:
    before = sockets()
    connections, told = made
    connections.connect(1, address(server))
    connections.connect(2, address(server))
    await told.get()
    await told.get()
    await connections.close()
    assert sockets() == before
    assert told.empty()


async def test_a_peer_that_does_not_read_is_left(
    made: Made, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "MAX_QUEUED_BYTES", 1000)
    connections, told = made
    connections.connect(1, address(server))
    await told.get()
    while told.empty():
        connections.write(1, bytes(1_000_000))
        await asyncio.sleep(0)
    assert isinstance(await told.get(), ConnectionClosed)


async def cut_while_connecting(turns: int) -> list[Happening]:
    """Return the events of a connection that is cut some turns after its attempt began; all of it must end."""
    told: list[Happening] = []
    server = await asyncio.get_running_loop().create_server(asyncio.Protocol, LOCAL, 0)
    channels = Channels(LOCAL, told.append)
    channels.connect(1, f"{LOCAL}:{server.sockets[0].getsockname()[1]}")
    for _ in range(turns):
        await asyncio.sleep(0)
    time.sleep(0.01)  # noqa: ASYNC251 - the connection is made meanwhile
    channels.cut(1)
    before = len(told)
    await channels.close()
    assert len(told) == before, "nothing is told of what was cut"
    server.close()
    return told


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("turns", range(8))
def test_a_connection_that_is_cut_while_it_is_made_ends(
    loop: Callable[[], asyncio.AbstractEventLoop], turns: int
) -> None:
    """uvloop may report that it is made, and never its end: closing waited for that."""
    with asyncio.Runner(loop_factory=loop) as runner:
        told = runner.run(cut_while_connecting(turns))
    assert all(isinstance(one, ConnectionOpened) for one in told)
