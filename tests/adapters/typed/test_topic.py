"""Topics with typed payloads, against real stores."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stablecast.client import Context, PayloadError
from stablecast.typed import PayloadFormat, Topic
from tests.support.network import network


@dataclass
class Order:
    item: str
    count: int


@dataclass
class Price:
    item: str
    cents: int


@pytest.fixture
async def contexts(tmp_path: Path) -> AsyncIterator[tuple[Context, Context, str]]:
    async with network(tmp_path) as net:
        store = await net.store("store")
        yield await net.context(session_id=1), await net.context(session_id=2), store


@pytest.mark.parametrize("payload", PayloadFormat)
async def test_objects_are_sent_and_received(contexts: tuple[Context, Context, str], payload: PayloadFormat) -> None:
    sending, receiving, store = contexts
    orders = Topic("orders", Order, payload)
    async with await orders.source(sending, stores=[store]) as source:
        await (await source.send(Order("apples", 3), {"symbol": "ABC"})).stable()
        async with orders.receiver(receiving) as receiver:
            async for message in receiver:
                assert message.value == Order("apples", 3)
                assert message.message.properties == {"symbol": "ABC", "schema": "Order"}
                break


async def test_what_cannot_be_read_goes_to_the_dead_letters(contexts: tuple[Context, Context, str]) -> None:
    sending, receiving, store = contexts
    orders = Topic("orders", Order)
    raw = await sending.source("orders", stores=[store])
    aside = await receiving.source("orders.dead", stores=[store])
    await raw.send(b"no order")
    await raw.send(Topic("orders", Price).codec.encode(Price("apples", 99)), {"schema": "Price"})
    await raw.send(b'{"item": "pears", "count": 2}')  # another program, which names no schema
    async for message in orders.receiver(receiving, dead_letters=aside):
        assert message.value == Order("pears", 2)
        break
    assert aside.stable_through == 1
    async for dead in sending.receiver("orders.dead"):
        if dead.sequence_number == 0:
            assert (dead.payload, dead.properties["error"][:47]) == (  # type: ignore[index]
                b"no order",
                "message 0 of 'orders' cannot be read: it is no ",
            )
            continue
        assert dead.properties["schema"] == "Price"
        assert "it has the schema 'Price', and 'Order' is read here" in str(dead.properties["error"])
        break


async def test_without_dead_letters_the_loop_ends_and_nothing_is_lost(contexts: tuple[Context, Context, str]) -> None:
    sending, receiving, store = contexts
    raw = await sending.source("orders", stores=[store])
    await raw.send(b"no order")
    receiver = Topic("orders", Order).receiver(receiving)
    with pytest.raises(PayloadError, match="give the receiver dead_letters=source"):
        async for _ in receiver:
            pass
    await receiver.receiver.close()
    async for message in receiving.receiver("orders"):
        assert message.payload == b"no order"
        break
