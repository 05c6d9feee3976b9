"""The service's daemon: its address, and clients that it cuts off without harm to others."""

import asyncio
import errno
import json
from collections.abc import AsyncIterator
from contextlib import suppress

import attrs
import pytest

from stablecast.resolver.srs import SrsConfig, SrsDaemon, daemon
from stablecast.runtime.ports import PortError
from stablecast.transports.resolution.srs.events import ConnectionClosed
from stablecast.transports.wire import rsocket, srs
from stablecast.transports.wire.rsocket import Frame, FrameKind
from tests.adapters.resolver.srs.services import LOCAL, Place, place, raw
from tests.support.machine import replace
from tests.support.network import connected, hung_up_on, knocking, until


@pytest.fixture
async def here() -> AsyncIterator[Place]:
    async with place() as started:
        yield started


GREETING = rsocket.encode(rsocket.setup_frame(rsocket.RsocketSetup(5000, 15_000))) + rsocket.encode(
    Frame(
        FrameKind.REQUEST_RESPONSE,
        1,
        payload=srs.encode(srs.RegistrationRequest(address=LOCAL, port=1, session_id=1, host_id=1)),
    )
)


async def test_a_malformed_client_is_cut_off_alone(here: Place) -> None:
    """A client that speaks no SRS, or sends a giant frame, ends its own connection only."""
    service = await here.service()
    left, right = await here.context(service.address), await here.context(service.address, instance=b"neighbor")
    loop = asyncio.get_running_loop()
    for nonsense in (b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff", GREETING + GREETING):
        client = await raw(service.address)
        with client:
            await loop.sock_sendall(client, nonsense)
            try:
                while await loop.sock_recv(client, 100):
                    pass  # The answer to what was well said before.
            except ConnectionResetError:
                pass  # Cut off while something was unread.
    assert service.statistics()["malformed"] == 3
    assert sum("is cut off" in line for line in here.log) == 3
    left.announce()
    right.resolver.add_receiver("orders")
    assert (await right.found.get())[0] == "orders"


async def test_a_flooding_client_is_cut_off_alone(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound: records in a second."""
    service = await here.service()
    service._machine.config = attrs.evolve(service._machine.config, max_burst=1_000, max_rate=100)
    left, right = await here.context(service.address), await here.context(service.address, instance=b"neighbor")
    loop = asyncio.get_running_loop()
    interest = srs.encode(srs.ReceiverInfo(name="x", instance=b"floodflo"))
    flood = rsocket.encode(Frame(FrameKind.REQUEST_FNF, 3, payload=interest * 100))
    with await raw(service.address) as client, suppress(ConnectionResetError, BrokenPipeError):
        await loop.sock_sendall(client, GREETING)
        while True:
            await loop.sock_sendall(client, flood)
    assert any("is cut off: it floods" in line for line in here.log)
    left.announce()
    right.resolver.add_receiver("orders")
    assert (await right.found.get())[0] == "orders"


@pytest.mark.rows("T-421")
async def test_statistics_are_logged_as_json_when_they_change(here: Place) -> None:
    service = await here.service(publishing_interval=10)
    party = await here.context(service.address)
    await party.services.get()

    def told() -> list[dict[str, int]]:
        lines = [line for line in here.log if line.startswith("statistics ")]
        return [json.loads(line.removeprefix("statistics ")) for line in lines]

    earlier = len(told())
    await until(lambda: len(told()) > earlier + 2)
    assert told()[0].keys() == service.statistics().keys(), "the first time all"
    known: dict[str, int] = {}
    for changed in told():
        assert not changed.items() & known.items()
        known |= changed
    assert known["clients"] == 1


@pytest.mark.no_cover
async def test_a_client_that_does_not_read_is_cut_off(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound: the queue to a slow client; it is logged, and the others are served."""
    monkeypatch.setattr(daemon, "MAX_QUEUED_BYTES", 20_000)
    service = await here.service()
    loop = asyncio.get_running_loop()
    with await raw(service.address) as slow:
        interest = srs.encode(srs.PatternInfo(name=".", instance=b"slowslow"))
        request = Frame(FrameKind.REQUEST_STREAM, 5, number=rsocket.FOREVER, payload=srs.encode(srs.StreamRequest()))
        asks = rsocket.encode(Frame(FrameKind.REQUEST_FNF, 3, payload=interest)) + rsocket.encode(request)
        await loop.sock_sendall(slow, GREETING + asks)
        party = await here.context(service.address)
        index = 0
        while not service.slow:
            for _ in range(200):
                index += 1
                party.announce("topic/" + "x" * 200, index)
            await asyncio.sleep(0)
    assert any("does not read" in line for line in here.log)
    await until(lambda: service.statistics()["connections"] == 1)
    party.resolver.add_receiver("orders")
    party.announce("orders", index + 1)
    assert (await party.found.get())[0] == "orders"


@pytest.mark.rows("T-406")
async def test_silence_ends_a_connection(here: Place) -> None:
    """Without keepalives a client counts as gone."""
    service = await here.service()
    setup = rsocket.encode(rsocket.setup_frame(rsocket.RsocketSetup(100, 100)))
    with await raw(service.address) as client:
        await asyncio.get_running_loop().sock_sendall(client, setup)
        await until(lambda: service.statistics()["silent"] == 1)


async def test_a_client_that_left_is_counted_no_more(here: Place) -> None:
    service = await here.service()
    with await raw(service.address):
        await until(lambda: service.statistics()["connections"] == 1)
    await until(lambda: service.statistics()["connections"] == 0)
    assert service.statistics()["silent"] == 0


async def test_a_port_in_use_is_reported_with_the_remedy(here: Place) -> None:
    service = await here.service()
    port = int(service.address.rpartition(":")[2])
    with pytest.raises(
        PortError,
        match=f"port {port} on 127.0.0.1 is in use: stop the program that holds it or choose another port or interface",
    ):
        await here.service(port)
    with pytest.raises(PortError, match=r"192\.0\.2\.1 is not an address of this machine: choose another"):
        await SrsDaemon.start(SrsConfig("192.0.2.1", 0), here.log.append)


async def test_a_service_that_cannot_listen_has_a_reason(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    replace(monkeypatch, "network", stream=exhausted)
    with pytest.raises(PortError, match=r"no descriptor left: raise its limit of open files"):
        await here.service()


@pytest.mark.parametrize("turns", range(5))
async def test_a_client_accepted_while_the_service_closes_is_disconnected(turns: int, here: Place) -> None:
    service = await here.service()
    client = knocking(int(service.address.rpartition(":")[2]))
    for _ in range(turns):
        await asyncio.sleep(0)
    await service.close()
    assert await hung_up_on(client)


async def test_a_closed_service_does_nothing(here: Place) -> None:
    service = await here.service()
    party = await here.context(service.address)
    await party.services.get()
    await service.close()
    await service.close()
    assert (await party.services.get())[1] is False
    service.feed(ConnectionClosed(1))
    service._write(99, b"nobody")
    service._abort(99)
    idle = SrsDaemon(SrsConfig(), here.log.append)
    await idle.close()


async def test_a_connection_that_says_nothing_is_ended(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port scanner takes no place for ever; a client that registered stays."""
    monkeypatch.setattr(daemon, "FIRST_BYTES_SECONDS", 0.05)
    service = await here.service()
    host, port = service.address.split(":")
    silent, one = await asyncio.open_connection(host, int(port))
    _, two = await asyncio.open_connection(host, int(port))
    two.write(GREETING)
    assert await silent.read() == b""
    assert service.statistics()
    assert len(service._peers) == 1
    one.close()
    two.close()


async def test_one_host_cannot_keep_the_others_out(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "MAX_CLIENTS", 2)
    service = await here.service()
    port = int(service.address.split(":")[1])
    crowd = [await connected(port, "127.0.0.3") for _ in range(2)]
    for one in crowd:
        await asyncio.get_running_loop().sock_sendall(one, GREETING)
    other = await connected(port)
    assert await hung_up_on(crowd[1])
    for one in (*crowd, other):
        one.close()


async def test_connections_that_say_nothing_have_a_bound_of_their_own(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "MAX_UNHEARD", 1)
    service = await here.service()
    host, port = service.address.split(":")
    silent, one = await asyncio.open_connection(host, int(port))
    _, two = await asyncio.open_connection(host, int(port))
    assert await silent.read() == b""
    assert len(service._unheard) == 1
    one.close()
    two.close()
