"""Stores that are named by their host."""

import asyncio
import logging

import pytest

from stablecast.client.named_stores import StoreHosts
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.events import StoreMoved
from stablecast.runtime import address
from tests.support.machine import replace
from tests.support.network import LOCAL, Events, Network, until


async def test_a_source_finds_a_store_by_its_host_and_follows_it(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host has another address after its store was lost, and the source registers there.

    To the new store its journal is an older copy, so it grants nothing until every registration may have ended.
    """
    first = await net.store("a")
    _, port = address.parse(first)
    places = {"here.example": LOCAL}
    replace(monkeypatch, "network", resolve=lambda host: places[host])
    events = Events()
    context = await net.context()
    source = await context.source("orders", stores=[f"here.example:{port}"], on_event=events)
    await source.send(b"one")
    places["here.example"] = "127.0.0.2"
    second = await net.store("b", listen=f"127.0.0.2:{port}", source_activity_ns=SECOND, receiver_activity_ns=SECOND)
    await net.stop("a")
    assert await events.first(StoreMoved) == StoreMoved(f"here.example:{port}", first, second)
    await source.registered()


async def test_a_host_without_an_address_is_reported(
    net: Network, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unknown(_: str) -> str:
        raise OSError(-2, "Name or service not known")

    replace(monkeypatch, "network", resolve=unknown)
    context = await net.context()
    with caplog.at_level(logging.WARNING):
        source = await context.source("orders", stores=["gone.example:14567"], wait=False)
        await until(lambda: "a store is not found: 'gone.example:14567' has no address" in caplog.text)
    assert not source._machine.can_send


async def test_a_host_is_looked_up_again_when_its_store_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = iter(["10.0.0.1", "10.0.0.1", "10.0.0.2"])
    replace(monkeypatch, "network", resolve=lambda _: next(addresses))
    monkeypatch.setattr("stablecast.client.named_stores.RETRY_SECONDS", 0.0)
    found: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    hosts = StoreHosts(lambda place, where: found.put_nowait((place, where)))
    hosts.ask("a.example:1")
    hosts.ask("a.example:1")
    assert await found.get() == ("a.example:1", "10.0.0.1:1")
    while found.empty():
        hosts.lost("10.0.0.1:1")
        hosts.lost("10.0.0.9:1")
        await asyncio.sleep(0)
    assert await found.get() == ("a.example:1", "10.0.0.2:1")
    await hosts.close()


async def test_each_time_that_a_host_is_not_found_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also when it has the same address again in between."""
    answers = ["", "", LOCAL, "", "", LOCAL, "", LOCAL]

    def resolve(_: str) -> str:
        if found := answers.pop(0) if answers else LOCAL:
            return found
        raise OSError(-2, "Name or service not known")

    replace(monkeypatch, "network", resolve=resolve)
    monkeypatch.setattr("stablecast.client.named_stores.RETRY_SECONDS", 0.0)
    hosts = StoreHosts(lambda *_: None)
    hosts.ask("a.example:1")
    while answers:
        hosts.lost(f"{LOCAL}:1")
        await asyncio.sleep(0)
    await hosts.close()
    assert len(caplog.records) == 3
