"""Cases of FastStream's own tests of brokers, adapted: handlers, acknowledgement, batches, several brokers."""

import asyncio
from typing import Any

import pytest
from faststream import AckPolicy, Context, Depends, FastStream, TestApp
from faststream.context import ContextRepo
from faststream.exceptions import AckMessage, NackMessage, RejectMessage, SetupError, StopConsume
from pydantic import BaseModel

from stablecast.client import MisuseError
from stablecast.faststream import StablecastBatchMessage, StablecastBroker, StablecastMessage, TestStablecastBroker
from tests.adapters.faststream.calls import Calls


async def test_one_handler_of_two_topics_gets_each_message_once() -> None:
    broker, calls = StablecastBroker(), Calls()

    @broker.subscriber("a")
    @broker.subscriber("b")
    async def handler(body: str) -> None:
        await calls.note(body)

    async with TestStablecastBroker(broker) as tested:
        await asyncio.gather(*(tested.publish(f"{topic}{n}", topic) for topic in "ab" for n in range(2)))
        assert sorted(await calls.reach(4)) == ["a0", "a1", "b0", "b1"]


async def test_filters_choose_among_the_handlers_of_a_subscriber() -> None:
    broker, calls = StablecastBroker(), Calls()
    subscriber = broker.subscriber("orders")

    @subscriber(filter=lambda message: message.content_type == "application/json")
    async def objects(body: Any) -> None:
        await calls.note(("object", body))

    @subscriber
    async def others(body: Any) -> None:
        await calls.note(("other", body))

    async with TestStablecastBroker(broker) as tested:
        await tested.publish({"m": 1}, "orders")
        await tested.publish("hello", "orders")
        assert await calls.reach(2) == [("object", {"m": 1}), ("other", "hello")]


async def test_dependencies_and_context_reach_a_handler() -> None:
    broker, calls = StablecastBroker(serializer=None), Calls()

    class Order(BaseModel):
        x: int

    def dependency() -> str:
        return "100"

    @broker.subscriber("orders")
    async def handler(body: Order, dep: int = Depends(dependency), broker: Any = Context()) -> None:
        await calls.note((body, dep, broker))

    async with TestStablecastBroker(broker) as tested:
        await tested.publish({"x": 1}, "orders")
        assert await calls.reach() == [({"x": 1}, "100", broker)]


async def test_a_subscriber_may_begin_and_end_while_the_broker_runs() -> None:
    calls = Calls()
    async with TestStablecastBroker(StablecastBroker()) as tested:
        subscriber = tested.subscriber("orders")
        subscriber(calls.note)
        async with subscriber:
            await tested.publish("hello", "orders")
            assert await calls.reach() == ["hello"]
        again = tested.subscriber("orders")
        again(calls.note)
        await again.start()
        await tested.publish("again", "orders")
        assert await calls.reach(2) == ["hello", "again"]


async def test_a_subscriber_without_handlers_is_read_by_hand() -> None:
    subscriber = (broker := StablecastBroker()).subscriber("orders")
    async with TestStablecastBroker(broker) as tested:
        assert await subscriber.get_one(timeout=1e-24) is None
        for number in range(3):
            await tested.publish(number, "orders")
        first = await subscriber.get_one(timeout=60)
        assert first is not None
        assert await first.decode() == 0
        await first.ack()
        async for message in subscriber:
            assert isinstance(message, StablecastMessage)
            await message.ack()
            if await message.decode() == 2:
                break


async def test_messages_belong_to_the_handlers_of_a_subscriber() -> None:
    broker = StablecastBroker()
    subscriber = broker.subscriber("orders")

    @subscriber
    async def handler(body: str) -> None:
        del body

    async with TestStablecastBroker(broker):
        with pytest.raises(AssertionError, match="with handlers"):
            await subscriber.get_one(timeout=0)
        with pytest.raises(AssertionError):
            await anext(aiter(subscriber))


@pytest.mark.parametrize("policy", AckPolicy)
async def test_each_policy_settles_the_message_of_a_handler_that_raises(policy: AckPolicy) -> None:
    broker, calls = StablecastBroker(), Calls()

    @broker.subscriber("orders", ack_policy=policy, delay=0, dead_letters="dead")
    async def handler(body: str, message: StablecastMessage = Context()) -> None:
        await calls.note((body, message.raw_message.attempt))
        if policy is AckPolicy.MANUAL:
            await (message.nack() if message.raw_message.attempt == 1 else message.ack())
        if message.raw_message.attempt == 1 and body == "bad":
            raise ValueError("no apples")

    @broker.subscriber("dead")
    async def dead(body: str, message: StablecastMessage = Context()) -> None:
        await calls.note((body, message.headers["error"]))

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("bad", "orders")
        found = await calls.reach(1 if policy in {AckPolicy.ACK_FIRST, AckPolicy.ACK} else 2)
        await tested.publish("good", "orders")
        found = await calls.reach(len(found) + 1)
    known: dict[AckPolicy, list[Any]] = {
        AckPolicy.REJECT_ON_ERROR: [("bad", "ValueError: no apples")],
        AckPolicy.NACK_ON_ERROR: [("bad", 2)],
        AckPolicy.MANUAL: [("bad", 2)],
    }
    again = known.get(policy, [])
    assert found[: len(again) + 2] == [("bad", 1), *again, ("good", 1)]


@pytest.mark.parametrize("error", [AckMessage, NackMessage, RejectMessage])
async def test_exceptions_of_faststream_settle_a_message(error: type[Exception]) -> None:
    broker, calls = StablecastBroker(), Calls()

    @broker.subscriber("orders", delay=0)
    async def handler(body: str, message: StablecastMessage = Context()) -> None:
        await calls.note((body, message.raw_message.attempt))
        if body == "bad" and message.raw_message.attempt == 1:
            raise error

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("bad", "orders")
        await calls.reach(2 if error is NackMessage else 1)
        await tested.publish("good", "orders")
        again = [("bad", 2)] if error is NackMessage else []
        assert await calls.reach(2 + len(again)) == [("bad", 1), *again, ("good", 1)]


async def test_a_message_goes_to_the_dead_letters_after_its_last_attempt() -> None:
    broker, calls = StablecastBroker(), Calls()

    @broker.subscriber("orders", delay=0, attempts=3, dead_letters="dead")
    async def handler(body: str) -> None:
        await calls.note(body)
        raise ValueError(body)

    @broker.subscriber("dead")
    async def dead(body: str, message: StablecastMessage = Context()) -> None:
        await calls.note((body, message.headers["error"], message.headers["attempts"], message.headers["topic"]))

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("bad", "orders")
        assert await calls.reach(4) == ["bad", "bad", "bad", ("bad", "ValueError: bad", 3, "orders")]


@pytest.mark.parametrize("policy", [AckPolicy.ACK, AckPolicy.REJECT_ON_ERROR, AckPolicy.NACK_ON_ERROR])
async def test_a_cancelled_handler_leaves_its_message_for_the_next_run(policy: AckPolicy) -> None:
    broker, calls = StablecastBroker(graceful_timeout=0.01, session_id=9), Calls()

    @broker.subscriber("orders", ack_policy=policy)
    async def handler(body: str) -> None:
        await calls.note(body)
        if len(calls) == 1:
            await asyncio.Event().wait()

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("hello", "orders")
        await calls.reach()
        await tested.stop()
        await tested.start()
        assert await calls.reach(2) == ["hello", "hello"]


async def test_a_handler_may_stop_its_subscriber() -> None:
    broker, calls = StablecastBroker(), Calls()

    @broker.subscriber("orders")
    async def handler(body: str) -> None:
        await calls.note(body)
        raise StopConsume

    @broker.subscriber("others")
    async def others(body: str) -> None:
        await calls.note(body)

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("one", "orders")
        await calls.reach()
        await tested.publish("two", "orders")
        await tested.publish("three", "others")
        assert await calls.reach(2) == ["one", "three"]


async def test_workers_handle_messages_side_by_side() -> None:
    broker, calls, both = StablecastBroker(), Calls(), asyncio.Barrier(3)

    @broker.subscriber("orders", max_workers=3)
    async def handler(body: int) -> None:
        await both.wait()
        await calls.note(body)

    async with TestStablecastBroker(broker) as tested:
        await tested.publish_batch(*range(3), topic="orders")
        assert sorted(await calls.reach(3)) == [0, 1, 2]


@pytest.mark.parametrize("linger", [0.0, 30.0])
async def test_a_batch_is_acknowledged_as_a_whole(linger: float) -> None:
    broker, calls = StablecastBroker(), Calls()

    @broker.subscriber("orders", batch=True, max_records=3, batch_timeout=linger, delay=0)
    async def handler(bodies: list[int], message: StablecastBatchMessage = Context()) -> None:
        attempt = message.raw_message[0].attempt
        await calls.note((bodies, attempt))
        if 0 in bodies and attempt == 1:
            raise ValueError("again")

    async with TestStablecastBroker(broker) as tested:
        await tested.publish_batch(0, 1, 2, topic="orders")
        if linger:
            assert await calls.reach(2) == [([0, 1, 2], 1), ([0, 1, 2], 2)]
        else:
            await calls.reach(2)
            assert {number for bodies, _ in calls for number in bodies} <= {0, 1, 2}


async def test_a_rejected_batch_goes_to_the_dead_letters() -> None:
    broker, calls = StablecastBroker(), Calls()

    @broker.subscriber("orders", batch=True, max_records=2, batch_timeout=30, dead_letters="dead")
    async def handler(bodies: list[int]) -> None:
        raise RejectMessage

    @broker.subscriber("dead")
    async def dead(body: int) -> None:
        await calls.note(body)

    async with TestStablecastBroker(broker) as tested:
        await tested.publish_batch(1, 2, topic="orders")
        assert await calls.reach(2) == [1, 2]


async def test_a_pattern_subscribes_to_all_topics_that_match() -> None:
    broker, calls = StablecastBroker(), Calls()

    @broker.subscriber(pattern="^orders[.]")
    async def handler(body: str, message: StablecastMessage = Context()) -> None:
        await calls.note((message.raw_message.topic, body))

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("apples", "orders.fruit")
        await tested.publish("nails", "orders.iron")
        assert sorted(await calls.reach(2)) == [("orders.fruit", "apples"), ("orders.iron", "nails")]


async def test_two_brokers_of_an_application_have_their_own_context() -> None:
    calls = Calls()
    first = StablecastBroker(context=ContextRepo({"name": "first"}))
    second = StablecastBroker(context=ContextRepo({"name": "second"}))

    @first.subscriber("orders")
    @second.publisher("bookings")
    async def book(body: str, app_name: str = Context(), name: str = Context()) -> str:
        await calls.note((app_name, name))
        return body

    @first.subscriber("bookings")
    async def booked(body: str) -> None:
        await calls.note(body)

    app = FastStream(first, second, context=ContextRepo({"app_name": "app"}))
    async with TestStablecastBroker(first, second) as tested, TestApp(app):
        await tested[0].publish("hello", "orders")
        assert await calls.reach(2) == [("app", "first"), "hello"]


async def test_choices_that_exclude_each_other_are_refused() -> None:
    broker = StablecastBroker()
    for wrong in ({}, {"topic": "a", "pattern": "b"}, {"topic": "a", "batch": True, "max_workers": 2}):
        with pytest.raises(SetupError):
            broker.subscriber(**wrong)
    with pytest.raises(SetupError, match="dead_letters"):
        broker.subscriber("a", attempts=3)
    with pytest.raises(MisuseError, match="needs a world"):
        TestStablecastBroker(StablecastBroker)
    for topic in range(2):
        broker.subscriber(f"same{topic // 2}")
    with pytest.raises(MisuseError, match="has a receiver of 'same0'"):
        async with TestStablecastBroker(broker):
            pass


async def test_the_subscribers_of_a_group_share_a_topic() -> None:
    brokers, calls = [StablecastBroker(), StablecastBroker()], Calls()
    for broker in brokers:
        broker.subscriber("orders", group="billing")(calls.note)
    async with TestStablecastBroker(*brokers) as tested:
        await tested[0].publish_batch(*range(20), topic="orders")
        assert sorted(await calls.reach(20)) == list(range(20))
