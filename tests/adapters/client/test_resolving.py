"""Contexts that find each other over services, over relays, or over both."""

import logging

import pytest

from stablecast.client import Context
from stablecast.core.errors import MisuseError
from stablecast.net.address import AddressError
from stablecast.srs import SrsConfig, SrsDaemon
from tests.support.network import LOCAL, Network, until, unused_port
from tests.support.traffic import send, take


async def service(net: Network) -> SrsDaemon:
    daemon = await SrsDaemon.start(SrsConfig(interface=LOCAL, port=0), lambda *_: None)
    net.stack.push_async_callback(daemon.close)
    return daemon


async def test_a_service_alone_is_enough(net: Network, caplog: pytest.LogCaptureFixture) -> None:
    """T-405: no datagram is sent."""
    caplog.set_level(logging.INFO, "stablecast")
    where = [(await service(net)).address]
    sending = await net.stack.enter_async_context(Context(resolver_service=where, session_id=1))
    receiving = await net.stack.enter_async_context(Context(resolver_service=where, session_id=2))
    assert sending.ports()["lbmr"] == []
    receiver = receiving.receiver("orders")
    source = await sending.source("orders", stores=[await net.store()])
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5))
    assert f"service {where[0]} keeps us informed" in caplog.messages


async def test_a_source_that_service_and_relay_find_is_joined_once(net: Network) -> None:
    where = [(await service(net)).address]
    sending = await net.context(resolver_service=where, session_id=1)
    receiver = (await net.context(resolver_service=where, session_id=2)).receiver("orders")
    source = await sending.source("orders", stores=[await net.store()])
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5))
    assert len(receiver._sessions) == 1
    assert sending.ports()["lbmr"] != []


async def test_a_source_that_went_and_came_back_is_found_again(net: Network) -> None:
    where = [(await service(net)).address]
    receiving = await net.stack.enter_async_context(Context(resolver_service=where, session_id=2))
    receiver = receiving.receiver("orders")
    store = await net.store()
    for life in range(2):
        async with Context(resolver_service=where, session_id=1) as sending:
            await send(await sending.source("orders", stores=[store]), 3)
            assert await take(receiver, 3) == [3 * life, 3 * life + 1, 3 * life + 2]
        await until(lambda: not receiver._sessions)


async def test_a_service_that_is_not_there_is_told_of(net: Network, caplog: pytest.LogCaptureFixture) -> None:
    where = f"{LOCAL}:{unused_port()}"
    daemon = await service(net)
    async with Context(resolver_service=[where, daemon.address]):
        await until(lambda: daemon.statistics()["clients"])
        await daemon.close()
        await until(lambda: any(daemon.address in message for message in caplog.messages))
    assert f"service {daemon.address} does not keep us informed: " in caplog.text


async def test_an_address_that_is_none(net: Network) -> None:
    with pytest.raises(AddressError, match="write host:port"):
        Context(resolver_service=["nowhere"])
    async with Context() as context:
        with pytest.raises(MisuseError, match="nothing says where sources are"):
            context.receiver("orders")
