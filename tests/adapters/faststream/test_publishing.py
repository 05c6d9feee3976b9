"""Cases of FastStream's own tests of brokers, adapted: publishers, replies, responses, commands, connections."""

import asyncio
import gc
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from faststream import BaseMiddleware, Context, Response
from faststream.exceptions import FeatureNotSupportedException, IncorrectState
from faststream.response import ensure_response
from pydantic import BaseModel

from stablecast.client import Sent
from stablecast.faststream import (
    StablecastBroker,
    StablecastMessage,
    StablecastPublishCommand,
    StablecastResponse,
    TestStablecastBroker,
)
from tests.adapters.faststream.calls import Calls
from tests.support.network import until


@dataclass
class Greeting:
    r: str


class Model(BaseModel):
    r: str


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

ROUND_TRIPS: list[tuple[Any, Any, Any]] = [
    ("hello", str, "hello"),
    (b"hello", bytes, b"hello"),
    (1, int, 1),
    (1.0, float, 1.0),
    (1, float, 1.0),
    (False, bool, False),
    ({"m": 1}, dict[str, int], {"m": 1}),
    ([1, 2, 3], list[int], [1, 2, 3]),
    (NOW, datetime, NOW),
    (json.dumps({"r": "hello!"}).encode(), Greeting, Greeting("hello!")),
    (Greeting("hello!"), Greeting, Greeting("hello!")),
    (Greeting("hello!"), dict, {"r": "hello!"}),
    ({"r": "hello!"}, Greeting, Greeting("hello!")),
    (Model(r="hello!"), Model, Model(r="hello!")),
    (Model(r="hello!"), dict, {"r": "hello!"}),
]


def handler_of(kind: Any, calls: Calls, index: int) -> Callable[..., Any]:
    """Return a handler whose argument has this type."""

    async def handler(body: Any) -> None:
        await calls.note((index, body))

    handler.__annotations__["body"] = kind
    return handler


async def test_objects_of_many_types_arrive_as_their_handlers_want_them() -> None:
    broker, calls = StablecastBroker(), Calls()
    for index, (_, kind, _) in enumerate(ROUND_TRIPS):
        broker.subscriber(f"topic{index}")(handler_of(kind, calls, index))
    async with TestStablecastBroker(broker) as tested:
        for index, (sent, _, _) in enumerate(ROUND_TRIPS):
            await tested.publish(sent, f"topic{index}")
        found = dict(await calls.reach(len(ROUND_TRIPS)))
    assert found == {index: expected for index, (_, _, expected) in enumerate(ROUND_TRIPS)}


async def test_objects_are_unwrapped_into_several_arguments() -> None:
    broker, calls = StablecastBroker(), Calls()

    @broker.subscriber("dicts")
    async def dicts(a: int, b: int) -> None:
        await calls.note((a, b))

    @broker.subscriber("lists")
    async def lists(a: int, b: int, *args: tuple[int, ...]) -> None:
        await calls.note((a, b, args))

    async with TestStablecastBroker(broker) as tested:
        await tested.publish({"a": 1, "b": 1.0}, "dicts")
        await calls.reach()
        await tested.publish([1, 2.0, 3.0, 4.0], "lists")
        assert await calls.reach(2) == [(1, 1), (1, 2, (3, 4))]


async def test_results_go_to_each_publisher_of_a_handler() -> None:
    broker, calls = StablecastBroker(), Calls()
    shared = broker.publisher("shared")

    @broker.publisher("second")
    @broker.subscriber("orders")
    @broker.publisher("first")
    @shared
    async def handler(body: str) -> str:
        return body + "!"

    @shared
    @broker.subscriber("others")
    async def other(body: str) -> str:
        return body + "?"

    for topic in ("first", "second", "shared"):

        @broker.subscriber(topic)
        async def result(body: str, message: StablecastMessage = Context()) -> None:
            await calls.note((message.raw_message.topic, body))

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("hi", "orders")
        await tested.publish("ho", "others")
        assert sorted(await calls.reach(4)) == [
            ("first", "hi!"),
            ("second", "hi!"),
            ("shared", "hi!"),
            ("shared", "ho?"),
        ]


@pytest.mark.parametrize("kind", [Response, StablecastResponse])
async def test_a_response_has_headers_and_a_correlation_id(kind: Any) -> None:
    broker, calls = StablecastBroker(), Calls()
    more = {"id": "booking-1"} if kind is StablecastResponse else {}

    @broker.subscriber("orders")
    @broker.publisher("bookings", headers={"from": "test"}, reply_to="replies")
    async def handler() -> Any:
        return kind(1, headers={"custom": "1"}, correlation_id="1", **more)

    @broker.subscriber("bookings")
    async def booked(message: StablecastMessage = Context()) -> str:
        await calls.note((message.body, message.headers, message.correlation_id, message.raw_message.id))
        return "done"

    @broker.subscriber("replies")
    async def reply(body: str) -> None:
        await calls.note(body)

    async with TestStablecastBroker(broker) as tested:
        for _ in range(2 if more else 1):  # The second one has the same id, so it is not sent.
            await tested.publish(None, "orders")
        (body, headers, correlation_id, known), done = await calls.reach(2)
    assert (body, correlation_id, known, done) == (b"1", "1", more.get("id"), "done")
    assert headers.items() >= {"custom": "1", "from": "test", "content-type": "application/json"}.items()


async def test_the_result_is_sent_where_the_message_asks_for_it() -> None:
    broker, calls = StablecastBroker(id_generator=lambda: "custom-id"), Calls()

    @broker.subscriber("orders")
    async def handler(body: str) -> str:
        return body + "!"

    @broker.subscriber("silent", no_reply=True)
    async def silent(body: str) -> str:
        return body

    @broker.subscriber("replies")
    async def reply(body: str, message: StablecastMessage = Context()) -> None:
        await calls.note((body, message.correlation_id))

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("one", "silent", reply_to="replies")
        await silent.wait_call(60)
        await tested.publish("two", "orders", reply_to="replies")
        assert await calls.reach() == [("two!", "custom-id")]


async def test_publishers_work_at_each_time() -> None:
    """By hand inside a handler, after the start, and before it."""
    broker, calls = StablecastBroker(), Calls()
    publisher = broker.publisher("bookings", stable=False)

    @broker.subscriber("orders")
    async def handler(body: str) -> None:
        await publisher.publish(body, headers={"h": 1})

    @broker.subscriber("bookings")
    async def booked(body: str, message: StablecastMessage = Context()) -> None:
        await calls.note((body, message.headers.get("h")))

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("one", "orders")
        await calls.reach()
        await tested.publisher("bookings").publish("two")
        await calls.reach(2)
        await publisher.publish("three", "bookings", id="3")
        assert await calls.reach(3) == [("one", 1), ("two", None), ("three", None)]
        with pytest.raises(FeatureNotSupportedException, match="reply_to"):
            await tested.request("x", "orders")
        with pytest.raises(FeatureNotSupportedException, match="reply_to"):
            await publisher.request("x")


async def test_publish_returns_when_the_message_is_stable() -> None:
    async with TestStablecastBroker(StablecastBroker()) as tested:
        sent = await tested.publish("one", "orders")
        assert sent.source.stable_through == sent.number
        more = await tested.publish_batch("two", "three", topic="orders")
        assert [one.number for one in more] == [sent.number + 1, sent.number + 2]
        assert sent.source.stable_through == more[-1].number


async def test_the_messages_of_a_batch_share_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now, limits = asyncio.get_running_loop().time, list[float]()

    async def passes(seconds: float) -> None:
        limits.append(seconds)
        began = now()
        await until(lambda: now() > began)

    async with TestStablecastBroker(StablecastBroker()) as tested:
        source = (await tested.publish("one", "orders")).source

        async def send(*_: object, timeout: float, **__: object) -> Sent:  # noqa: ASYNC109 - that of a source
            await passes(timeout)
            return Sent(0, source)

        monkeypatch.setattr(source, "send", send)
        monkeypatch.setattr(source, "wait_stable", lambda _, seconds: passes(seconds))
        await tested.publish_batch("two", "three", topic="orders", timeout=60)
    assert len(limits) == 4
    assert 60 >= limits[0] > limits[1] > limits[2] > limits[3] > 0


async def test_mocks_of_handlers_and_publishers() -> None:
    broker = StablecastBroker()
    publisher = broker.publisher("bookings")

    @publisher
    @broker.subscriber("orders")
    async def handler(body: str) -> str:
        return body + "!"

    @broker.subscriber("other")
    async def other(body: str) -> None:
        del body

    kept = broker.publisher("other")
    async with TestStablecastBroker(broker) as tested:
        assert len(tested.subscribers) == 3
        await tested.publish("hello", "orders")
        await handler.wait_call(60)
        handler.mock.assert_called_once_with("hello")
        while not publisher.mock.called:  # noqa: ASYNC110 - a mock has no event
            await asyncio.sleep(0)
        publisher.mock.assert_called_once_with("hello!")
        await kept.publish("x")
        await other.wait_call(60)
        other.mock.assert_called_once_with("x")
    gc.collect()
    assert len(broker.subscribers) == 2


async def test_connecting_and_stopping() -> None:
    broker = StablecastBroker()
    await broker.stop()
    assert not await broker.ping()
    with pytest.raises(IncorrectState, match="not connected"):
        await broker.publish("x", "orders")
    await broker.connect()
    assert await broker.ping()
    await broker.stop()
    assert not broker.running


BATCHES = [
    (None, ()),
    ((), ()),
    ("123", ("123",)),
    ("", ("",)),
    (b"", (b"",)),
    ([1, 2, 3], (1, 2, 3)),
    ([0, 1, 2], (0, 1, 2)),
]


@pytest.mark.parametrize(("body", "expected"), BATCHES)
def test_a_command_is_made_of_each_response(body: Any, expected: tuple[Any, ...]) -> None:
    command = StablecastPublishCommand.from_cmd(ensure_response(body).as_publish_command(), batch=True)
    assert command.batch_bodies == expected
    command.batch_bodies = (1, 2, 3)
    assert (command.body, command.extra_bodies, command.batch_bodies) == (1, (2, 3), (1, 2, 3))
    command.batch_bodies = ()
    assert (command.body, command.extra_bodies) == (None, ())
    single = StablecastPublishCommand.from_cmd(ensure_response(Response(body, headers={"1": 1})).as_publish_command())
    assert (single.body, single.headers) == (body, {"1": 1})
    assert StablecastPublishCommand.from_cmd(single) is single


async def test_a_middleware_may_change_what_is_published() -> None:
    calls = Calls()

    class Twice(BaseMiddleware):
        async def publish_scope(self, call_next: Any, cmd: Any) -> Any:
            cmd.body *= 2
            return await call_next(cmd)

    broker = StablecastBroker(middlewares=(Twice,))

    @broker.subscriber("orders")
    @broker.publisher("bookings")
    async def handler(body: str) -> str:
        return body

    @broker.subscriber("bookings")
    async def booked(body: str) -> None:
        await calls.note(body)

    @broker.subscriber("replies")
    async def replied(body: str) -> None:
        await calls.note("reply " + body)

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("r", "orders", reply_to="replies")
        assert sorted(await calls.reach(2)) == ["reply rrrr", "rrrr"]
