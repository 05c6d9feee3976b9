"""Contexts and services (SRS) on real sockets of the loopback interface."""

import asyncio
import socket
from collections.abc import AsyncIterator

import attrs
import pytest

from stablecast.core.errors import MisuseError
from stablecast.resolver import Listeners
from stablecast.resolver.srs_resolver import SrsResolver
from stablecast.runtime.address import AddressError
from stablecast.transports.resolution.records import SourceRecord, named
from tests.adapters.resolver.srs.services import LOCAL, RECORD, Place, place
from tests.support.network import sockets, unused_port


@pytest.fixture
async def here() -> AsyncIterator[Place]:
    async with place() as started:
        yield started


@pytest.mark.rows("T-402", "T-403", "T-412")
async def test_two_contexts_find_each_other(here: Place) -> None:
    """Through the service alone, whoever comes first."""
    service = await here.service()
    left = await here.context(service.address)
    right = await here.context(service.address, instance=b"neighbor")
    left.announce("orders")
    right.resolver.add_receiver("orders")
    right.announce("trades")
    assert not right.resolver.ask_name("store-A")
    assert right.resolver.why("nobody's") != ""
    left.resolver.add_receiver("trades")
    assert await right.found.get() == ("orders", RECORD)
    assert await left.found.get() == ("trades", named(attrs.evolve(RECORD, instance=b"neighbor", origin=b"")))
    left.resolver.remove_source(RECORD.session_id, 1)
    assert await right.gone.get() == ("orders", RECORD)
    assert service.statistics()["clients"] == 2
    assert service.statistics()["malformed"] == 0


@pytest.mark.rows("T-405")
async def test_wildcard_receivers(here: Place) -> None:
    service = await here.service()
    left, right = await here.context(service.address), await here.context(service.address, instance=b"neighbor")
    left.announce("fx.eur")
    right.resolver.add_pattern("^fx")
    assert (await right.found.get())[0] == "fx.eur"
    right.resolver.remove_pattern("^fx")
    right.resolver.add_receiver("bonds")
    left.announce("fx.usd", index=2)
    left.announce("bonds", index=3)
    assert (await right.found.get())[0] == "bonds"
    right.resolver.remove_receiver("bonds")


@pytest.mark.rows("T-407", "T-408")
async def test_a_restarted_service_learns_everything_again(here: Place) -> None:
    """Contexts try for as long as it takes."""
    service = await here.service()
    left, right = await here.context(service.address), await here.context(service.address, instance=b"neighbor")
    left.announce()
    right.resolver.add_receiver("orders")
    await right.found.get()
    assert await right.services.get() == (service.address, True, "")
    await service.close()
    address, up, _ = await right.services.get()
    assert (address, up) == (service.address, False)
    again = await here.service(int(service.address.rpartition(":")[2]))
    assert (await right.services.get())[1]
    late = await here.context(again.address, instance=b"latecome")
    late.resolver.add_receiver("orders")
    assert await late.found.get() == ("orders", RECORD)
    assert right.gone.empty()
    assert right.found.empty()


@pytest.mark.rows("T-401")
async def test_one_of_two_services_is_enough(here: Place) -> None:
    """Hot/hot, found once."""
    first, second = await here.service(), await here.service()
    left = await here.context(first.address, second.address)
    right = await here.context(f"{first.address}, {second.address}", instance=b"neighbor")
    left.announce()
    right.resolver.add_receiver("orders")
    await right.found.get()
    for _ in range(2):
        await right.services.get()
    await first.close()
    left.announce(index=2)
    assert (await right.found.get())[1].index == 2
    assert right.found.empty()
    assert right.resolver.statistics()["services"] == 1


async def test_a_lost_session_makes_known_sources_reported_again(here: Place) -> None:
    """T27."""
    service = await here.service()
    left, right = await here.context(service.address), await here.context(service.address, instance=b"neighbor")
    left.announce()
    right.resolver.add_receiver("orders")
    await right.found.get()
    right.resolver.resolved("orders")
    right.resolver.unresolved("orders")
    assert await right.found.get() == ("orders", RECORD)


@pytest.mark.rows("T-411")
async def test_a_host_name_is_looked_up_and_a_missing_service_has_a_reason(here: Place) -> None:
    service = await here.service()
    port = service.address.rpartition(":")[2]
    named = await here.context(f"localhost:{port}")
    assert await named.services.get() == (f"localhost:{port}", True, "")
    nowhere = await here.context(f"{LOCAL}:{unused_port()}")
    _, up, reason = await nowhere.services.get()
    assert not up
    assert "refused" in reason.lower() or "connect" in reason.lower()


async def test_callbacks_may_call_back(here: Place) -> None:
    """Messages that they cause are sent after those under way."""
    service = await here.service()
    left = await here.context(service.address)
    found: asyncio.Queue[str] = asyncio.Queue()

    def on_found(topic: str, _: SourceRecord) -> None:
        found.put_nowait(topic)
        if topic == "orders":
            resolver.add_receiver("trades")

    resolver = await SrsResolver.start(LOCAL, [service.address], Listeners(on_found))
    resolver.add_receiver("orders")
    left.announce("orders")
    left.announce("trades", index=2)
    assert [await found.get(), await found.get()] == ["orders", "trades"]
    left.resolver.remove_source(RECORD.session_id, 1)
    left.announce("trades", index=3)
    assert await found.get() == "trades"
    await resolver.close()


async def test_closing_leaves_nothing_and_does_nothing(here: Place) -> None:
    before = sockets()
    with socket.create_server((LOCAL, 0)) as silent:  # It accepts, and says nothing.
        party = await here.context(f"{LOCAL}:{silent.getsockname()[1]}", f"192.0.2.1:{unused_port()}")
        await asyncio.sleep(0)
        await party.resolver.close()
        await party.resolver.close()
    party.announce()
    party.resolver.add_receiver("orders")
    assert party.found.empty()
    assert sockets() == before


async def test_a_service_that_speaks_nonsense_is_left(here: Place) -> None:
    """And tried again."""
    greeted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        greeted.put_nowait(writer)

    server = await asyncio.start_server(serve, LOCAL, 0)
    party = await here.context(f"{LOCAL}:{server.sockets[0].getsockname()[1]}")
    for _ in range(2):
        (await greeted.get()).close()
    _, up, reason = await party.services.get()
    assert not up
    assert "exceeds" in reason
    await party.resolver.close()
    server.close()


async def test_misuse_reaches_the_caller(here: Place) -> None:
    party = await here.context("localhost:27000")
    with pytest.raises(MisuseError, match="topic name"):
        party.resolver.add_receiver("")
    with pytest.raises(AddressError, match="address of a service"):
        await here.context("27000")
    with pytest.raises(MisuseError, match="1 to 5 services"):
        await here.context(*(f"{LOCAL}:{port}" for port in range(1, 7)))
