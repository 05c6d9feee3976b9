"""The relay daemon: its address, its log, and its errors."""

import asyncio
import json

import attrs
import pytest

from stablecast.resolver import RelayDaemon
from stablecast.runtime.address import AddressError
from stablecast.runtime.datagrams import bind
from stablecast.runtime.ports import PortError
from stablecast.transports.resolution.udp.relay import UNPROVEN, VARIABLE
from stablecast.transports.wire import lbmr

LOCAL = "127.0.0.1"


async def test_it_answers_keepalives_until_it_is_closed() -> None:
    daemon = await RelayDaemon.start(LOCAL, 0)
    assert daemon.address == f"{LOCAL}:{daemon.port}"
    alive = lbmr.Packet(lbmr.PacketKind.RECEIVER_ALIVE, options=lbmr.standard_options(b"instance"))
    loop = asyncio.get_running_loop()
    with bind(LOCAL, 0) as client:
        await loop.sock_sendto(client, lbmr.encode(alive), (LOCAL, daemon.port))
        answer = lbmr.decode(await loop.sock_recv(client, lbmr.MAX_DATAGRAM))
    assert isinstance(answer, lbmr.Packet)
    assert (answer.kind, answer.queries, answer.advertisements) == (lbmr.PacketKind.NORMAL, (), ())
    assert daemon.statistics()["keepalives"] == 1
    await daemon.close()
    bind(LOCAL, daemon.port).close()


@pytest.mark.rows("T-213")
async def test_the_environment_permits_contexts_of_other_makers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, UNPROVEN)
    daemon = await RelayDaemon.start(LOCAL, 0)
    loop = asyncio.get_running_loop()
    with bind(LOCAL, 0) as client:
        alive = lbmr.encode(lbmr.Packet(lbmr.PacketKind.RECEIVER_ALIVE))
        await loop.sock_sendto(client, alive, (LOCAL, daemon.port))
        assert await loop.sock_recv(client, lbmr.MAX_DATAGRAM)
        assert daemon.clients() == (f"{LOCAL}:{client.getsockname()[1]}",)
    await daemon.close()


async def test_a_port_in_use_is_reported_with_the_remedy() -> None:
    daemon = await RelayDaemon.start(LOCAL, 0)
    with pytest.raises(PortError) as told:
        await RelayDaemon.start(LOCAL, daemon.port)
    assert str(told.value) == (
        f"port {daemon.port} on 127.0.0.1 is in use: stop the program that holds it or choose another port or interface"
    )
    await daemon.close()


@pytest.mark.rows("T-213")
async def test_it_logs_new_clients_and_dropped_datagrams() -> None:
    """The client table; statistics as JSON from time to time."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    daemon = await RelayDaemon.start(LOCAL, 0, log=lines.put_nowait, report_every=0.01)
    alive = lbmr.Packet(lbmr.PacketKind.RECEIVER_ALIVE, options=lbmr.standard_options(b"instance"))
    loop = asyncio.get_running_loop()
    with bind(LOCAL, 0) as client:
        await loop.sock_sendto(client, b"nonsense", (LOCAL, daemon.port))
        for _ in range(2):
            await loop.sock_sendto(client, lbmr.encode(alive), (LOCAL, daemon.port))
            answer = lbmr.decode(await loop.sock_recv(client, lbmr.MAX_DATAGRAM))
            alive = attrs.evolve(alive, options=answer.options)
        here = f"{LOCAL}:{client.getsockname()[1]}"
        texts: list[str] = []
        while len(texts) < 2:
            if not (line := await lines.get()).startswith("statistics"):
                texts.append(line)
    assert daemon.clients() == (here,)
    assert texts == [
        f"a datagram from {here} is dropped: version 6 is not 1 or an older one (1 so far)",
        f"client {here} is known",
    ]
    while not (line := await lines.get()).startswith("statistics"):
        pass
    assert json.loads(line.removeprefix("statistics "))["malformed"] == 1
    await daemon.close()


async def test_an_interface_of_another_machine_is_reported() -> None:
    with pytest.raises(PortError, match="not an address of this machine"):
        await RelayDaemon.start("192.0.2.1", 0)
    with pytest.raises(AddressError, match="not an IPv4 address"):
        await RelayDaemon.start("eth0", 0)
