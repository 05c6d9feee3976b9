"""The request port: peers, their messages and their end."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from stablecast.runtime import ports
from stablecast.runtime import request_port as module
from stablecast.runtime.request_port import Peer, RequestPort
from stablecast.runtime.stream import Item
from tests.adapters.runtime.peers import LOCAL, data
from tests.support.machine import replace
from tests.support.network import connected, hung_up_on, knocking, until


async def port_of() -> tuple[RequestPort, int, "asyncio.Queue[Item]"]:
    heard: asyncio.Queue[Item] = asyncio.Queue()

    def take(items: list[Item], _: Peer) -> None:
        for item in items:
            heard.put_nowait(item)

    listening = ports.listen(LOCAL, 0, "port")
    port = RequestPort(listening, take)
    await port.start()
    return port, listening.getsockname()[1], heard


async def test_messages_of_peers_are_handed_over() -> None:
    port, number, heard = await port_of()
    loop = asyncio.get_running_loop()
    peers = [await connected(number), await connected(number)]
    for peer in peers:
        await loop.sock_sendall(peer, data(1))
        await heard.get()
    await port.close()
    for peer in peers:
        assert not await loop.sock_recv(peer, 1)
        peer.close()


async def test_nonsense_is_counted_and_ends_one_connection() -> None:
    port, number, heard = await port_of()
    loop = asyncio.get_running_loop()
    good, bad = await connected(number), await connected(number)
    await loop.sock_sendall(good, data(1))
    await heard.get()
    await loop.sock_sendall(bad, b"\xff" * 40)
    assert not await loop.sock_recv(bad, 1)
    await loop.sock_sendall(good, data(2))
    await heard.get()
    assert port.malformed == 1
    await port.close()
    assert port.malformed == 1
    good.close()
    bad.close()


async def test_a_peer_that_says_nothing_is_ended_and_one_that_spoke_may_be_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half a message is nothing: a scanner that trickles bytes holds no place either."""
    timers: list[Callable[[], object]] = []
    handles: list[asyncio.TimerHandle] = []
    loop = asyncio.get_running_loop()
    real = loop.call_later

    def call_later(
        seconds: float, callback: Callable[..., object], *arguments: Any, **more: Any
    ) -> asyncio.TimerHandle:
        if seconds == module.FIRST_MESSAGE_SECONDS:
            timers.append(lambda: callback(*arguments))
            handles.append(real(seconds, callback, *arguments, **more))
            return handles[-1]
        return real(seconds, callback, *arguments, **more)

    monkeypatch.setattr(loop, "call_later", call_later)
    port, number, heard = await port_of()
    quiet, half, good = await connected(number), await connected(number), await connected(number)
    await loop.sock_sendall(half, data(1)[:-1])
    await loop.sock_sendall(good, data(1))
    await heard.get()
    for timer in timers:
        timer()
    assert await hung_up_on(quiet)
    assert await hung_up_on(half)
    await loop.sock_sendall(good, data(2))
    await heard.get()
    assert (len(timers), port.silent) == (3, 2)
    await port.close()
    assert [handle.cancelled() for handle in handles] == [True] * 3, "who has left is not ended, and not counted"
    for peer in (quiet, half, good):
        peer.close()


@pytest.mark.rows("P-338")
async def test_the_end_of_a_connection_is_reported() -> None:
    """With the contexts that said over it that they live, as many as one connection may speak for."""
    left: asyncio.Queue[list[int]] = asyncio.Queue()

    def take(items: list[Item], peer: Peer) -> None:
        for context in (7, 8, 7, *range(100, 200)):
            peer.alive(context)

    listening = ports.listen(LOCAL, 0, "port")
    port = RequestPort(listening, take, lambda peer: left.put_nowait(peer.contexts))
    await port.start()
    raw = await connected(listening.getsockname()[1])
    await asyncio.get_running_loop().sock_sendall(raw, data(1))
    raw.close()
    assert await left.get() == [7, 8, *range(100, 114)]
    assert module.MAX_CONTEXTS == 16
    await port.close()


async def test_who_says_nothing_makes_room_for_who_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scanner that holds all places starves nobody, not even for the time that a first message may take."""
    monkeypatch.setattr(module, "MAX_PEERS", 2)
    port, number, heard = await port_of()
    loop = asyncio.get_running_loop()
    mute = [await connected(number) for _ in range(2)]
    good = [await connected(number) for _ in range(2)]
    for peer in good:
        await loop.sock_sendall(peer, data(1))
        await heard.get()
    assert [await hung_up_on(one) for one in mute] == [True, True]
    assert port.silent == 2
    await port.close()
    for one in (*mute, *good):
        one.close()


async def test_who_comes_in_one_turn_gets_a_place_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a connection is reported in the next turn, and until then nobody else may get its place."""
    monkeypatch.setattr(module, "MAX_PEERS", 2)
    port, _, _ = await port_of()
    peers = [Mock(spec=Peer, messages_rcved=0, error="") for _ in range(4)]
    for peer in peers:
        port._made(peer)
        peer.messages_rcved = int(peer in peers[2:])
    assert [peer.abort.call_count for peer in peers] == [1, 1, 0, 0]
    assert len(port) == port.silent == 2
    for peer in peers:
        port._left(peer)
    await port.close()


async def test_one_host_cannot_keep_the_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PEERS", 3)
    port, number, heard = await port_of()
    loop = asyncio.get_running_loop()
    peers = []
    for host in ("127.0.0.2", "127.0.0.3", "127.0.0.3", LOCAL):
        peers.append(await connected(number, host))
        await loop.sock_sendall(peers[-1], data(1))
        await heard.get()
    assert await hung_up_on(peers.pop(2))
    peers.append(await connected(number, "127.0.0.2"))
    assert await hung_up_on(peers.pop()), "no host has more than half of the places now"
    await port.close()
    for one in peers:
        one.close()


async def test_the_last_descriptors_are_not_for_those_who_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scanner of ports must not take what the journal needs for its next segment."""
    port, number, _ = await port_of()
    replace(monkeypatch, "process", free_descriptors=lambda: ports.LAST - 1)
    stranger = await connected(number)
    assert not await asyncio.get_running_loop().sock_recv(stranger, 1)
    await port.close()
    stranger.close()


async def test_without_descriptors_a_newcomer_takes_the_place_of_a_silent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    port, number, heard = await port_of()
    silent = await connected(number)
    await until(lambda: len(port))
    replace(monkeypatch, "process", free_descriptors=lambda: ports.LAST - 1)
    good = await connected(number)
    assert await hung_up_on(silent)
    await asyncio.get_running_loop().sock_sendall(good, data(1))
    await heard.get()
    await port.close()
    good.close()


async def test_no_more_peers_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PEERS", 1)
    port, number, heard = await port_of()
    loop = asyncio.get_running_loop()
    first = await connected(number)
    await loop.sock_sendall(first, data(1))
    await heard.get()
    second = await connected(number)
    assert not await loop.sock_recv(second, 1)
    await port.close()
    first.close()
    second.close()


async def test_a_peer_accepted_just_before_the_end_is_disconnected() -> None:
    """A connection is made one turn of the loop after it was accepted."""
    port, _, _ = await port_of()
    await port.close()
    loop = asyncio.get_running_loop()
    with socket.create_server((LOCAL, 0)) as listening:
        client = await connected(listening.getsockname()[1])
        accepted, _ = listening.accept()
    accepted.setblocking(False)
    await loop.connect_accepted_socket(port._accept, accepted)
    assert not await loop.sock_recv(client, 1)
    client.close()
    assert not len(port)


@pytest.mark.parametrize("turns", range(5))
async def test_a_peer_accepted_while_the_port_closes_is_disconnected(turns: int) -> None:
    port, number, _ = await port_of()
    peer = knocking(number)
    for _ in range(turns):
        await asyncio.sleep(0)
    await port.close()
    assert await hung_up_on(peer)


async def test_a_port_that_moved_listens_there_alone() -> None:
    """The peers of the old place come again."""
    port, number, heard = await port_of()
    loop = asyncio.get_running_loop()
    peer = await connected(number)
    await loop.sock_sendall(peer, data(1))
    await heard.get()
    listening = ports.listen(LOCAL, 0, "port")
    await port.move(listening)
    assert await hung_up_on(peer)
    with pytest.raises(ConnectionRefusedError):
        knocking(number)
    peer = await connected(listening.getsockname()[1])
    await loop.sock_sendall(peer, data(1))
    await heard.get()
    await port.close()
    assert await hung_up_on(peer)


async def test_a_port_that_never_started_closes_its_socket() -> None:
    await RequestPort(ports.listen(LOCAL, 0, "port"), lambda _, __: None).close()
