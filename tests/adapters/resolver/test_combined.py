"""Resolution over UDP and over services side by side."""

import asyncio
from contextlib import AsyncExitStack

from stablecast.resolver import RelayDaemon, Resolver
from stablecast.resolver.combined import Combined
from stablecast.resolver.srs import SrsResolver
from stablecast.transports.resolution.records import SourceRecord
from tests.adapters.srs.services import LOCAL, QUICK, RECORD, place


async def both(stack: AsyncExitStack, relay: str, service: str) -> tuple[Combined, "asyncio.Queue[tuple[str, int]]"]:
    """A context that uses both."""
    found: asyncio.Queue[tuple[str, int]] = asyncio.Queue()

    def on_found(topic: str, record: SourceRecord) -> None:
        found.put_nowait((topic, record.index))

    combined = Combined(on_found)
    combined.add(
        [
            await Resolver.start(LOCAL, [relay], combined.found, instance=b"instance"),
            await SrsResolver.start(
                LOCAL, [service], combined.found, on_gone=combined.gone, instance=b"instance", config=QUICK
            ),
        ]
    )
    stack.push_async_callback(combined.close)
    return combined, found


def add(combined: Combined, topic: str, index: int) -> None:
    combined.add_source(topic, RECORD.address, 7, index, RECORD.request_address, persistent=True)


async def test_a_source_that_both_find_is_reported_once() -> None:
    """T-401; again when it is asked for again, or was gone."""
    async with place() as here, AsyncExitStack() as stack:
        relay = await RelayDaemon.start(LOCAL, 0)
        stack.push_async_callback(relay.close)
        service = await here.service()
        source, _ = await both(stack, relay.address, service.address)
        receiver, found = await both(stack, relay.address, service.address)
        receiver.add_receiver("orders")
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


def test_repeats_mean_nothing_until_the_source_was_gone() -> None:
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
