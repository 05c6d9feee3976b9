"""Resolution over UDP and over services together."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from stablecast.core.machine.units import MILLISECOND
from stablecast.resolver import Listeners, RelayDaemon, Resolver
from stablecast.resolver.combined_resolver import Combined, Wait
from stablecast.resolver.srs_resolver import SrsResolver
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.udp.inputs import AddReceiver, AddSource
from tests.adapters.resolver.srs.services import LOCAL, QUICK, RECORD, place
from tests.support.network import unused_port


async def both(
    stack: AsyncExitStack, relay: str, service: str, instance: bytes
) -> tuple[Combined, "asyncio.Queue[tuple[str, int]]"]:
    found: asyncio.Queue[tuple[str, int]] = asyncio.Queue()

    def on_found(topic: str, record: SourceRecord) -> None:
        found.put_nowait((topic, record.index))

    combined = Combined(on_found)
    combined.add(
        [
            await Resolver.start(LOCAL, [relay], Listeners(combined.found, combined.gone), instance=instance),
            await SrsResolver.start(
                LOCAL, [service], Listeners(combined.found, combined.gone), instance=instance, config=QUICK
            ),
        ]
    )
    stack.push_async_callback(combined.close)
    return combined, found


def add(combined: Combined, topic: str, index: int) -> None:
    combined.add_source(AddSource(topic, RECORD.address, 7, index, RECORD.request_address, persistent=True))


@pytest.mark.rows("T-401")
async def test_a_source_that_both_find_is_reported_once() -> None:
    """T-401; again when it is asked for again, or was gone."""
    async with place() as here, AsyncExitStack() as stack:
        relay = await RelayDaemon.start(LOCAL, 0)
        stack.push_async_callback(relay.close)
        service = await here.service()
        source, _ = await both(stack, relay.address, service.address, b"context0")
        receiver, found = await both(stack, relay.address, service.address, b"context1")
        receiver.add_receiver("orders")
        assert receiver.ask_name("store-A")
        add(source, "orders", 1)
        assert await found.get() == ("orders", 1)
        receiver.resolved("orders")
        receiver.unresolved("orders")
        assert await found.get() == ("orders", 1)
        source.remove_source(7, 1)
        add(source, "orders", 2)
        assert await found.get() == ("orders", 2)
        receiver.remove_receiver("orders")
        assert found.empty()


async def test_repeats_mean_nothing_until_the_source_was_gone() -> None:
    found: list[tuple[str, SourceRecord]] = []
    combined = Combined(lambda topic, record: found.append((topic, record)))
    combined.gone("orders", RECORD)
    for _ in range(2):
        combined.found("orders", RECORD)
    assert found == [("orders", RECORD)]
    combined.gone("orders", RECORD)
    combined.found("orders", RECORD)
    combined.add_receiver("orders")
    combined.found("orders", RECORD)
    assert len(found) == 3
    await combined.close()


async def test_the_end_of_a_source_is_reported() -> None:
    gone: list[tuple[str, SourceRecord]] = []
    combined = Combined(lambda *_: None, on_gone=lambda topic, record: gone.append((topic, record)))
    combined.found("orders", RECORD)
    combined.gone("orders", RECORD)
    assert gone == [("orders", RECORD)]
    await combined.close()


async def test_every_kind_gets_every_input() -> None:
    fed: list[tuple[int, object]] = []
    combined = Combined(lambda *_: None)
    kinds: list[Any] = [
        SimpleNamespace(feed=partial(lambda kind, event: fed.append((kind, event)), at)) for at in (0, 1)
    ]
    combined.add(kinds)
    combined.feed(AddReceiver("orders"))
    assert fed == [(0, AddReceiver("orders")), (1, AddReceiver("orders"))]


async def test_a_source_that_was_lost_is_reported_again() -> None:
    """The next life of a source may listen at the same place."""
    found: list[SourceRecord] = []
    combined = Combined(lambda _, record: found.append(record))
    combined.found("orders", RECORD)
    combined.lost("orders", RECORD.address, others=True)
    combined.found("orders", RECORD)
    assert found == [RECORD, RECORD]


async def test_a_source_that_was_lost_is_reported_where_else_it_is_known() -> None:
    """A receiver without another source waits until it is joined there."""
    found: list[SourceRecord] = []
    combined = Combined(lambda _, record: found.append(record))
    repeated = attrs.evolve(RECORD, address="10.0.1.1:1", session_id=8, cost=1, hops=1)
    combined.add_receiver("orders")
    combined.resolved("orders")
    combined.found("orders", RECORD)
    combined.found("orders", repeated)
    combined.lost("orders", RECORD.address, others=True)
    assert (found, combined.waiting()) == ([RECORD, repeated], [])
    combined.found("orders", RECORD)
    combined.lost("orders", repeated.address, others=False)
    assert found == [RECORD, repeated, RECORD]
    assert [wait.topic for wait in combined.waiting()] == ["orders"]
    combined.gone("orders", RECORD)
    assert found == [RECORD, repeated, RECORD]
    await combined.close()


async def test_a_receiver_without_a_source_is_reported() -> None:
    """With what every kind knows of the reason: event and gauge."""
    told: asyncio.Queue[Sequence[Wait]] = asyncio.Queue()
    port = unused_port()
    combined = Combined(lambda *_: None, told.put_nowait)
    combined._waiting.patience = 10 * MILLISECOND
    combined.add(
        [
            await Resolver.start(LOCAL, [f"{LOCAL}:{port}"], Listeners(combined.found)),
            await SrsResolver.start(LOCAL, [f"{LOCAL}:{port}"], Listeners(combined.found)),
        ]
    )
    combined.add_receiver("orders")
    combined.add_receiver("trades")
    combined.resolved("trades")
    (wait,) = await told.get()
    reason = f"no relay answers at {LOCAL}:{port}; no service is connected and current at {LOCAL}:{port}"
    assert (wait.topic, wait.reason) == ("orders", reason)
    assert wait.seconds >= 0.01
    combined.unresolved("trades")
    assert [wait.topic for wait in combined.waiting()] == ["orders", "trades"]
    combined.remove_receiver("orders")
    combined.remove_receiver("trades")
    assert combined.waiting() == []
    await combined.close()


async def test_a_receiver_that_waits_no_longer_is_not_reported() -> None:
    combined = Combined(lambda *_: None)
    combined._waiting.patience = 1
    combined.add_receiver("orders")
    combined._wake()
    combined.remove_receiver("orders")
    combined._wake()
    assert combined._alarm._timer is None
