"""Receivers of topics whose source has ended: the stores that hold the messages are enough."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from stablecast.client import Context, Message, WildcardReceiver, last, stored_sources
from stablecast.core.errors import MisuseError
from tests.support.network import Network
from tests.support.traffic import send, source_of, take


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the stores at once."""
    monkeypatch.setattr(stored_sources, "LIVE_SECONDS", 0.0)


def addresses(net: Network) -> list[str]:
    return [store.address for store in net.stores.values()]


async def ended(net: Network, count: int) -> list[str]:
    """Store messages of a source that ends; return the stores."""
    owner, source = await source_of(net, "a", "b", "c")
    await send(source, count)
    await owner.close()
    return addresses(net)


async def test_a_receiver_gets_what_stores_hold_without_source_and_resolver(net: Network) -> None:
    stores = await ended(net, 100)
    async with Context(session_id=1) as context:
        assert await take(context.receiver("orders", stores=stores), 60) == list(range(60))
    async with Context(session_id=1) as context:  # The stores remember how far it was.
        [number, *_] = await take(context.receiver("orders", stores=stores), 40)
        assert 59 <= number <= 60
    async with Context(session_id=2) as context:
        assert await take(context.receiver("orders", stores=stores, start=last(5)), 5) == list(range(95, 100))


async def test_the_next_life_of_the_source_goes_on(net: Network) -> None:
    stores = await ended(net, 50)
    context = await net.context(session_id=1)
    receiver = context.receiver("orders", stores=stores)
    assert await take(receiver, 50) == list(range(50))
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 10)
    assert await take(receiver, 10) == list(range(50, 60))


async def test_a_store_that_is_away_is_not_missed(net: Network) -> None:
    stores = await ended(net, 50)
    await net.stop("b")
    async with Context(session_id=1) as context:
        assert await take(context.receiver("orders", stores=stores), 50) == list(range(50))


async def test_a_source_that_runs_is_received_as_ever(net: Network) -> None:
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 10)
    context = await net.context(session_id=1)
    receiver = context.receiver("orders", stores=addresses(net))
    assert await take(receiver, 10) == list(range(10))
    await send(source, 10)
    assert await take(receiver, 10) == list(range(10, 20))


@pytest.mark.parametrize("given", [{}, {"stores": []}])
async def test_a_receiver_needs_some_way_to_its_messages(given: Any) -> None:
    async with Context() as context:
        with pytest.raises(MisuseError, match="or stores="):
            context.receiver("orders", **given)


async def test_a_pattern_gets_all_matching_topics_of_the_stores(net: Network) -> None:
    stores = await ended(net, 100)
    async with Context(session_id=5) as owner:
        for topic in ("orders.eu", "bills"):
            source = await owner.source(topic, stores=stores)
            await source.send_many([b"%d" % number for number in range(20)])
            await source.wait_stable_through(19)
    async with Context(session_id=1) as context:
        bills = context.receiver("bills", stores=stores)
        pattern = context.receiver(pattern="orders|bills", stores=stores, start=last(5))
        found = [message async for message in first_of(pattern, 10)]
        assert {message.topic for message in found} == {"orders", "orders.eu"}
        assert sorted(message.number for message in found) == [*range(15, 20), *range(95, 100)]
        assert await take(bills, 20) == list(range(20)), "a topic with a receiver of its own is not the pattern's"
        await pattern.close()


async def first_of(messages: WildcardReceiver, count: int) -> AsyncIterator[Message]:
    async for message in messages:
        yield message
        count -= 1
        if not count:
            return


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "no way to find sources"),
        ({"stores": ["127.0.0.1:1"], "start": "soon"}, "cannot begin at 'soon'"),
        ({"stores": ["127.0.0.1:1"], "start": 7, "start_at": lambda *_: 0}, "give one of them"),
        ({"stores": "127.0.0.1:1"}, "stores"),
    ],
)
async def test_a_pattern_refuses_what_makes_no_sense(given: Any, text: str) -> None:
    async with Context() as context:
        with pytest.raises(MisuseError, match=text):
            context.receiver(pattern="orders", **given)
