"""Receivers of topics whose source has ended: the stores that hold the messages are enough."""

from typing import Any

import pytest

from stablecast.client import Context, last, stored_sources
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
