"""Code as users write it, for type checkers: each name of the package has the type that users expect."""

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import assert_type

from faststream import AckPolicy, FastStream
from opentelemetry.sdk.trace import TracerProvider

import stablecast.sync
import stablecast.testing
from stablecast.client import (
    Batch,
    Context,
    Event,
    GroupReceiver,
    Message,
    NotStable,
    PropertyValue,
    RangeReader,
    Receiver,
    Redelivery,
    Sent,
    Source,
    WildcardReceiver,
    events,
    last,
)
from stablecast.faststream import StablecastBroker, StablecastMessage, TestStablecastBroker
from stablecast.testing import SimulatedWorld, crash
from stablecast.typed import PayloadFormat, Topic, TypedMessage, TypedReceiver, TypedSource

logger = logging.getLogger(__name__)


@dataclass
class Order:
    """An order."""

    item: str
    count: int


async def sends(context: Context, stores: list[str]) -> None:
    """Send in each way."""
    async with await context.source("orders", stores=stores, on_event=on_event, timestamps=True) as source:
        assert_type(source, Source)
        sent = await source.send(
            bytearray(b"apples"), {"count": 3, "raw": b"\0"}, timeout=5, id="order-1", tag=object()
        )
        assert_type(sent, Sent)
        assert_type(source.try_send(memoryview(b"pears")), int | None)
        assert_type(await source.send_many([b"plums", b"figs"]), int | None)
        try:
            await sent.stable()
        except NotStable as error:
            logger.warning("%s", error)


def on_event(event: Event) -> None:
    """Note an event."""
    match event:
        case events.Stable(first=first, last=final):
            assert_type(first, int)
            logger.info("stable: %d to %d", first, final)
        case _:
            logger.info("%s", event)


async def receives(context: Context, stores: list[str], aside: Source) -> None:
    """Receive in each way."""
    policy = Redelivery(delay=1, attempts=5, dead_letters=aside)
    receiver = context.receiver("orders", stores=stores, start=last(100), redelivery=policy, auto_ack=False)
    assert_type(receiver, Receiver)
    async for message in receiver:
        assert_type(message, Message)
        async with message:
            assert_type(message.payload, bytes)
            assert_type(message.properties, dict[str, PropertyValue])
            assert_type((message.key, message.number, message.sent_at), tuple[str, int, float | None])
    async for batch in context.receiver("others").batches():
        assert_type(batch, Batch)
        assert_type(batch.payloads(), list[bytes])
    assert_type(context.receiver(pattern="^orders[.]"), WildcardReceiver)
    assert_type(context.receiver("orders", group="billing"), GroupReceiver)
    reader = context.reader("orders", stores=stores, since=datetime.now().astimezone())
    assert_type(reader, RangeReader)


async def types(context: Context) -> None:
    """Send and receive objects."""
    topic = Topic("orders", Order, PayloadFormat.MSGPACK)
    assert_type(topic, Topic[Order])
    source = await topic.source(context, stores=["127.0.0.1:14567"])
    assert_type(source, TypedSource[Order])
    await source.send(Order("apples", 3))
    receiver = topic.receiver(context)
    assert_type(receiver, TypedReceiver[Order])
    async for message in receiver:
        assert_type(message, TypedMessage[Order])
        assert_type(message.value, Order)


def blocks() -> None:
    """Send and receive without asyncio."""
    with stablecast.sync.Context(resolver=["127.0.0.1:15380"]) as context:
        source = context.source("orders", stores=["127.0.0.1:14567"])
        source.send(b"apples").stable()
        receiver = context.receiver("orders", session_id=7)
        assert_type(receiver.next(timeout=1.0), stablecast.sync.Message)
        for message in receiver:
            assert_type(message.payload, bytes)


def traces() -> Context:
    """Make a context whose messages have spans."""
    return Context(tracer_provider=TracerProvider())


def application() -> StablecastBroker:
    """Make a broker with a handler."""
    broker = StablecastBroker(["127.0.0.1:15380"], stores=["127.0.0.1:14567"], session_id=7)

    @broker.subscriber("orders", ack_policy=AckPolicy.NACK_ON_ERROR, attempts=3, dead_letters="dead")
    @broker.publisher("bookings")
    async def book(order: Order, message: StablecastMessage) -> str:
        assert_type(message.raw_message, Message)
        return order.item

    FastStream(broker)
    return broker


async def test_by_hand() -> None:
    """Test a broker with stores on loopback."""
    broker = application()
    async with TestStablecastBroker(broker) as tested:
        assert_type(tested, StablecastBroker)
        assert_type(await tested.publish(Order("apples", 3), "orders"), Sent)
    async with TestStablecastBroker(broker, application()) as both:
        assert_type(both, tuple[StablecastBroker, ...])


@stablecast.testing.world(stores=3, seeds=50, faults=crash("app") | crash("store"))
async def test_each_order_is_booked_once(world: SimulatedWorld) -> None:
    """Test a broker in worlds."""
    async with TestStablecastBroker(application, world=world) as shop:
        assert_type(shop, StablecastBroker)
        await world.settled()
    assert_type(world.read("app", "book"), bytes)
