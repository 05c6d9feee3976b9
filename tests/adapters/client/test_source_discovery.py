"""Contexts that find each other over services, over relays, or over both."""

import asyncio
import logging

import pytest

from stablecast.client import Context, resolution, source_discovery
from stablecast.config.option_kinds import Value
from stablecast.config.profiles import profile
from stablecast.core.errors import MisuseError
from stablecast.core.protocol.events import NoSource
from stablecast.resolver import Listeners, Resolver
from stablecast.resolver.combined_resolver import Wait
from stablecast.resolver.srs import SrsConfig, SrsDaemon
from stablecast.runtime.address import AddressError
from tests.support.network import LOCAL, Events, Network, until, unused_port
from tests.support.traffic import send, take


async def service(net: Network) -> SrsDaemon:
    daemon = await SrsDaemon.start(SrsConfig(interface=LOCAL, port=0), lambda *_: None)
    net.stack.push_async_callback(daemon.close)
    return daemon


@pytest.mark.rows("T-405")
async def test_a_service_alone_is_enough(net: Network, caplog: pytest.LogCaptureFixture) -> None:
    """No datagram is sent."""
    caplog.set_level(logging.INFO, "stablecast")
    where = [(await service(net)).address]
    sending = await net.stack.enter_async_context(Context(resolver_service=where, session_id=1))
    receiving = await net.stack.enter_async_context(Context(resolver_service=where, session_id=2))
    assert sending.ports()["lbmr"] == []
    receiver = receiving.receiver("orders")
    source = await sending.source("orders", stores=[await net.store()])
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5))
    assert f"resolver service {where[0]} is connected" in caplog.messages


async def test_a_source_that_service_and_relay_find_is_joined_once(net: Network) -> None:
    where = [(await service(net)).address]
    sending = await net.context(resolver_service=where, session_id=1)
    receiver = (await net.context(resolver_service=where, session_id=2)).receiver("orders")
    source = await sending.source("orders", stores=[await net.store()])
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5))
    assert len(receiver._sessions) == 1
    assert sending.ports()["lbmr"] != []


@pytest.mark.rows("P-028", "T-304")
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
    assert f"resolver service {daemon.address} is not connected: " in caplog.text


async def test_an_address_that_is_none(net: Network) -> None:
    with pytest.raises(AddressError, match="write host:port"):
        Context(resolver_service=["nowhere"])
    async with Context() as context:
        with pytest.raises(MisuseError, match="no way to find a source"):
            context.receiver("orders")


@pytest.mark.rows("T-007", "T-022", "T-305")
async def test_contexts_meet_in_a_multicast_group(net: Network) -> None:
    """Over loopback, by a documented strategy."""
    group: dict[str, Value] = {
        "resolver_multicast_address": "239.255.77.78",
        "resolver_multicast_port": unused_port(),
        "resolver_multicast_interface": "127.0.0.1",
        "resolver_multicast_ttl": 0,
    }
    settings = resolution("query-centric", group)
    sending = await net.stack.enter_async_context(Context(resolution=settings, session_id=1))
    receiving = await net.stack.enter_async_context(Context(resolution=settings, session_id=2))
    source = await sending.source(
        "orders", stores=[await net.store()], options={"resolver_advertisement_sustain_interval": 500}
    )
    receiver = receiving.receiver("orders", options={"resolution_number_of_sources_query_threshold": 1})
    assert [wait.topic for wait in receiving.unresolved()] == ["orders"]
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5))
    assert receiving.unresolved() == []


@pytest.mark.rows("P-203", "T-010", "T-201", "T-206")
async def test_a_store_is_found_by_its_name(net: Network) -> None:
    """Nobody tells the context where it is. Services know no names (T-010)."""
    where = await net.store()
    sending = await net.context(resolver_service=[(await service(net)).address], session_id=1)
    naming = await Resolver.start(LOCAL, [net.relays[0].address], Listeners(lambda *_: None))
    net.stack.push_async_callback(naming.close)
    naming.add_name("store-A", where)
    source = await sending.source("orders", options={"ume_store_name": "store-A"})
    await send(source, 3)
    assert sending.store_names == {"store-A": where}


@pytest.mark.rows("T-010")
async def test_a_name_that_nobody_here_finds_is_told(net: Network, caplog: pytest.LogCaptureFixture) -> None:
    """Services know no names of stores, and without any resolution there is nobody to ask."""
    over_service = await net.stack.enter_async_context(Context(resolver_service=[(await service(net)).address]))
    alone = await net.stack.enter_async_context(Context())
    for context in (over_service, alone):
        caplog.clear()
        await context.source("orders", options={"ume_store_name": "store-A"}, wait=False)
        assert "nothing resolves the store name 'store-A'" in caplog.text


async def test_a_receiver_reports_that_queries_found_no_source(net: Network) -> None:
    """The option resolution_no_source_notification_threshold, and a source that appears later is found."""
    events = Events()
    context = await net.context(session_id=1)
    options: dict[str, Value] = {"resolution_no_source_notification_threshold": 3}
    receiver = context.receiver("orders", options=options, on_event=events)
    context.receiver("others")
    assert await events.first(NoSource) == NoSource("orders", 3)
    source = await context.source("orders", stores=[await net.store()])
    await send(source, 1)
    assert await take(receiver, 1) == [0]
    assert len(events.of(NoSource)) == 1


async def test_a_request_for_resolution_may_be_made(net: Network) -> None:
    """The machines show the effect (T26)."""
    where = [(await service(net)).address]
    context = await net.context(resolver_service=where)
    witness: asyncio.Queue[str] = asyncio.Queue()
    hearing = await Resolver.start(
        LOCAL, [net.relays[0].address], Listeners(lambda topic, _: witness.put_nowait(topic))
    )
    net.stack.push_async_callback(hearing.close)
    silent = {"resolver_advertisement_minimum_initial_interval": 0, "resolver_send_initial_advertisement": 0}
    await context.source("orders", options={**silent, "resolver_advertisement_minimum_sustain_duration": 1})
    hearing.add_pattern("^nothing$")
    hearing.add_receiver("orders")
    assert await witness.get() == "orders"
    context.request_resolution(interval=0.01, duration=0.02)
    hearing.wake(source_discovery.EVERYTHING)
    async with Context() as alone:
        alone.request_resolution()


@pytest.mark.rows("T-008")
async def test_relays_win_over_multicast(net: Network) -> None:
    both = resolution(options={"resolver_multicast_interface": "127.0.0.1"})
    sending = await net.context(resolution=both, session_id=1)
    receiver = (await net.context(resolution=both, session_id=2)).receiver("orders")
    source = await sending.source("orders", stores=[await net.store()])
    await send(source, 3)
    assert await take(receiver, 3) == list(range(3))
    assert net.relays[0].statistics()["clients"] == 2


@pytest.mark.rows("T-212")
async def test_data_over_multicast_beside_resolution_over_unicast_is_told_of(
    net: Network, caplog: pytest.LogCaptureFixture
) -> None:
    """And nothing is told of sources over TCP."""
    context = await net.context(session_id=1)
    await context.source("orders")
    assert "unicast" not in caplog.text
    await context.source("trades", options={"transport": "lbtrm"})
    assert "topics are resolved by unicast, and the source sends over LBT-RM" in caplog.text


@pytest.mark.rows("T-011", "T-019")
async def test_udp_may_be_switched_off(net: Network) -> None:
    """Resolver_disable_udp_topic_resolution."""
    async with Context(resolver=[f"{LOCAL}:{unused_port()}"], resolution=resolution("tcp")) as context:
        assert context.unresolved() == []
        with pytest.raises(MisuseError, match="no way to find a source"):
            context.receiver("orders")


def test_receivers_that_wait_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    source_discovery._log_waits([Wait(f"topic/{number}", 10.0, "no relay answers") for number in range(7)])
    assert caplog.messages[0] == "receiver of 'topic/0' has found no source for 10 s: no relay answers"
    assert caplog.messages[-1] == "2 more receivers have found no source"
    source_discovery._log_waits([Wait("orders", 20.0, "no relay answers")])
    assert caplog.messages[-1] == "receiver of 'orders' has found no source for 20 s: no relay answers"
    source_discovery._log_remark("unicast resolver 10.0.0.1:15380 went inactive", warning=True)
    assert caplog.messages[-1].endswith("went inactive")


def test_a_context_without_resolution_advertises_nothing() -> None:
    source_discovery.announce(None, profile("safe").source, "", None)
