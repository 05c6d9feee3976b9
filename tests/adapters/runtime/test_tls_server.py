"""A listening port with TLS: strangers who never finish a handshake keep nobody out, and take no last descriptor."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trustme

from stablecast.core.protocol.messages import Keepalive, Role
from stablecast.runtime import ports, tls, tls_server
from stablecast.runtime.request_port import RequestPort
from stablecast.runtime.tls import VARIABLE
from stablecast.runtime.tls_server import TlsServer
from stablecast.transports import codec
from tests.adapters.runtime.test_tls import certified
from tests.support.machine import replace
from tests.support.network import LOCAL, until


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certified(tmp_path_factory.mktemp("tls") / "ours", trustme.CA())


@pytest.fixture(autouse=True)
def secured(ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(ours))


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[RequestPort, int]]:
    sock = ports.listen(LOCAL, 0, "port")
    number = sock.getsockname()[1]
    port = RequestPort(sock, lambda items, peer: None)
    await port.start()
    yield port, number
    await port.close()


async def knocking(number: int, host: str) -> socket.socket:
    """Connect from a host, and say nothing."""
    made = socket.socket()
    made.setblocking(False)
    made.bind((host, 0))
    await asyncio.get_running_loop().sock_connect(made, (LOCAL, number))
    return made


async def hung_up_on(made: socket.socket) -> bool:
    try:
        return not await asyncio.get_running_loop().sock_recv(made, 1)
    except ConnectionError:
        return True
    finally:
        made.close()


async def member(number: int) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection(LOCAL, number, ssl=tls.client())
    writer.write(codec.encode(Keepalive(Role.RECEIVER, 7, 5, respond=False)))
    return writer


@asynccontextmanager
async def between(number: int, change: Callable[[bytes], bytes]) -> AsyncIterator[tuple[int, bytearray]]:
    """Stand between a member and a port: hear all, and change what the member says. Yields a port, and the bytes."""
    heard, over = bytearray(), asyncio.Event()

    async def carry(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, change: Callable[[bytes], bytes]
    ) -> None:
        with suppress(ConnectionError):
            while octets := await reader.read(1 << 16):
                heard.extend(octets)
                writer.write(change(octets))
        writer.close()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(LOCAL, number)
        await asyncio.gather(carry(reader, back, change), carry(there, writer, lambda octets: octets))
        over.set()

    async with await asyncio.start_server(meet, LOCAL, 0) as server:
        yield server.sockets[0].getsockname()[1], heard
        await over.wait()
        await asyncio.sleep(0)


async def test_who_reads_packets_reads_no_message() -> None:
    said = codec.encode(Keepalive(Role.RECEIVER, 7, 5, respond=False))
    async with listening() as (port, number), between(number, lambda octets: octets) as (middle, heard):
        writer = await member(middle)
        await until(lambda: any(peer.messages_rcved for peer in port._peers))
        assert len(heard) > len(said)
        assert said not in heard
        writer.transport.abort()
        await until(lambda: not len(port))


async def test_who_changes_packets_ends_the_connection() -> None:
    def change(octets: bytes) -> bytes:
        return octets[:-1] + bytes((octets[-1] ^ 1,)) if changing else octets

    changing = False
    async with listening() as (port, number), between(number, change) as (middle, _):
        writer = await member(middle)
        await until(lambda: any(peer.messages_rcved for peer in port._peers))
        (peer,) = port._peers
        changing = True
        writer.write(codec.encode(Keepalive(Role.RECEIVER, 7, 6, respond=False)))
        await peer.ended.wait()
        assert peer.messages_rcved == 1
        writer.transport.abort()


def unfinished(port: RequestPort) -> int:
    assert isinstance(port._server, TlsServer)
    return len(port._server._unfinished)


async def test_the_oldest_of_the_crowd_makes_room_for_a_newcomer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_server, "MAX_HANDSHAKES", 3)
    async with listening() as (port, number):
        kept = await knocking(number, "127.0.0.3")
        crowd = [await knocking(number, "127.0.0.2") for _ in range(2)]
        await until(lambda: unfinished(port) == 3)
        writer = await member(number)
        assert await hung_up_on(crowd[0])
        await until(lambda: len(port) == 1)
        assert unfinished(port) == 2
        writer.transport.abort()
        kept.close()
        crowd[1].close()


async def test_the_last_descriptors_are_not_for_handshakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger must not take what the journal needs for its next segment."""
    async with listening() as (port, number):
        first = await knocking(number, "127.0.0.2")
        await until(lambda: unfinished(port) == 1)
        replace(monkeypatch, "process", free_descriptors=lambda: ports.LAST - 1)
        second = await knocking(number, "127.0.0.2")
        assert await hung_up_on(first)
        third = await knocking(number, "127.0.0.2")
        assert await hung_up_on(second)
        assert unfinished(port) == 1
        third.close()


async def test_without_room_and_without_a_handshake_the_newcomer_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    replace(monkeypatch, "process", free_descriptors=lambda: ports.LAST - 1)
    async with listening() as (_, number):
        assert await hung_up_on(await knocking(number, LOCAL))


async def test_a_system_without_descriptors_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_server, "PAUSE_SECONDS", 0.0)
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["message"]))
    accept, scarce = socket.socket.accept, [OSError(24, "no descriptor")]

    def few(listening: socket.socket) -> tuple[socket.socket, object]:
        if scarce:
            raise scarce.pop()
        return accept(listening)

    monkeypatch.setattr(socket.socket, "accept", few)
    async with listening() as (port, number):
        writer = await member(number)
        await until(lambda: len(port) == 1)
        writer.transport.abort()
    assert told == ["a connection was not accepted"]


async def test_a_port_that_closes_gives_up_its_handshakes() -> None:
    async with listening() as (port, number):
        stranger = await knocking(number, LOCAL)
        await until(lambda: unfinished(port) == 1)
    assert await hung_up_on(stranger)


async def test_a_stranger_that_leaves_is_forgotten() -> None:
    async with listening() as (port, number):
        stranger = await knocking(number, LOCAL)
        stranger.close()
        plain = await knocking(number, LOCAL)
        await asyncio.get_running_loop().sock_sendall(plain, b"\0" * 20)
        assert await hung_up_on(plain)
        await until(lambda: unfinished(port) == 0)
