"""Cases of FastStream's own tests of brokers, adapted: middlewares, parsers, decoders, codecs, routers, AsyncAPI."""

import json
from typing import Any

import pytest
from faststream import BaseMiddleware, Context, ExceptionMiddleware, FastStream
from faststream.exceptions import SetupError, SkipMessage
from faststream.specification import AsyncAPI
from pydantic import BaseModel

from stablecast.faststream import (
    StablecastBroker,
    StablecastMessage,
    StablecastPublisher,
    StablecastRoute,
    StablecastRouter,
    TestStablecastBroker,
)
from tests.adapters.faststream.calls import Calls


def noting(name: str, order: list[str]) -> type[BaseMiddleware[Any]]:
    class Noting(BaseMiddleware[Any]):
        async def __aenter__(self) -> Any:
            order.append(f"enter {name}")

        async def __aexit__(self, *_: object) -> None:
            order.append(f"exit {name}")

        async def consume_scope(self, call_next: Any, msg: Any) -> Any:
            order.append(f"consume {name}")
            return await call_next(msg)

        async def publish_scope(self, call_next: Any, cmd: Any) -> Any:
            order.append(f"publish {name}")
            return await call_next(cmd)

    return Noting


async def test_middlewares_of_broker_and_routers_nest() -> None:
    order: list[str] = []
    calls = Calls()
    broker = StablecastBroker(middlewares=[noting("outer", order)])
    router = StablecastRouter(middlewares=[noting("middle", order)])
    inner = StablecastRouter(middlewares=[noting("inner", order)])
    publisher = inner.publisher("orders")

    @inner.subscriber("orders")
    async def handler(body: str) -> None:
        await calls.note(body)

    @inner.subscriber("after")
    async def after(body: str) -> None:
        await calls.note(body)

    router.include_router(inner)
    broker.include_router(router)
    async with TestStablecastBroker(broker) as tested:
        await publisher.publish("x")
        await handler.wait_call(60)
    names = ["outer", "middle", "inner"]
    assert order == [
        *(f"publish {name}" for name in names),
        *(f"enter {name}" for name in names),
        *(f"consume {name}" for name in names),
        *(f"exit {name}" for name in reversed(names)),
    ]
    assert not tested.running


async def test_exceptions_become_messages() -> None:
    calls, middleware = Calls(), ExceptionMiddleware()

    class ParentError(Exception):
        pass

    class ChildError(ParentError):
        pass

    @middleware.add_handler(ParentError, publish=True)
    async def parent(error: ParentError) -> str:
        return "parent"

    @middleware.add_handler(ChildError, publish=True)
    async def child(error: ChildError) -> str:
        return "child"

    @middleware.add_handler(ZeroDivisionError, publish=True)
    async def skip(error: ZeroDivisionError) -> str:
        raise SkipMessage

    broker = StablecastBroker(middlewares=(middleware,))

    @broker.subscriber("orders")
    @broker.publisher("bookings")
    async def handler(body: str) -> str:
        raise {"parent": ParentError, "child": ChildError}.get(body, ZeroDivisionError)

    @broker.subscriber("bookings")
    async def booked(body: str) -> None:
        await calls.note(body)

    async with TestStablecastBroker(broker) as tested:
        for body in ("child", "zero", "parent"):
            await tested.publish(body, "orders")
        assert await calls.reach(2) == ["child", "parent"]


@pytest.mark.parametrize("where", ["broker", "router", "subscriber", "handler"])
async def test_parsers_and_decoders_of_each_level(where: str) -> None:
    calls, seen = Calls(), list[Any]()

    async def parser(message: Any, original: Any) -> Any:
        parsed = await original(message)
        seen.append(parsed.body)
        return parsed

    async def decoder(message: Any, original: Any) -> Any:
        return f"decoded {await original(message)}"

    own: dict[str, Any] = {"parser": parser, "decoder": decoder}
    broker = StablecastBroker(**own if where == "broker" else {})
    router = StablecastRouter(**own if where == "router" else {})
    subscriber = router.subscriber("orders", **own if where == "subscriber" else {})
    subscriber(calls.note, **own if where == "handler" else {})
    broker.include_router(router)
    async with TestStablecastBroker(broker) as tested:
        await tested.publish("hello", "orders")
        assert await calls.reach() == ["decoded hello"]
    assert seen == [b"hello"]


async def test_a_codec_makes_payloads_and_objects() -> None:
    calls = Calls()

    class Reversed:
        async def decode(self, msg: Any) -> Any:
            return msg.body[::-1].decode()

        async def encode(self, msg: Any, serializer: Any = None) -> tuple[bytes, str | None]:
            return str(msg)[::-1].encode(), "text/reversed"

    broker = StablecastBroker(codec=Reversed())

    @broker.subscriber("orders")
    async def handler(body: str, message: StablecastMessage = Context()) -> None:
        await calls.note((body, message.body, message.content_type))

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("abc", "orders")
        assert await calls.reach() == [("abc", b"cba", "text/reversed")]


async def test_topics_of_routers_have_their_prefixes() -> None:
    calls = Calls()

    async def late(body: str) -> str:
        return body + "!"

    route = StablecastRoute(late, "orders", publishers=(StablecastPublisher("bookings"),))
    inner = StablecastRouter(prefix="b.", handlers=(route,))
    outer = StablecastRouter(prefix="a.", routers=[inner])
    broker = StablecastBroker(routers=[outer])
    by_hand = inner.publisher("bookings")

    @broker.subscriber("z.a.b.bookings")
    async def unused(body: str) -> None:
        await calls.note(("unused", body))

    @broker.subscriber("a.b.bookings")
    async def booked(body: str) -> None:
        await calls.note(body)

    async with TestStablecastBroker(broker) as tested:
        await tested.publish("one", "a.b.orders")
        await calls.reach()
        await by_hand.publish("two")
        await calls.reach(2)
        dynamic = inner.subscriber("dynamic")
        dynamic(calls.note)
        await dynamic.start()
        await tested.publish("three", "a.b.dynamic")
        assert await calls.reach(3) == ["one!", "two", "three"]
    other: Any = FastStream  # Not a router of this broker.
    with pytest.raises(SetupError, match="must be a StablecastRouter"):
        broker.include_router(other)


class Order(BaseModel):
    item: str


class Booking(BaseModel):
    number: int


@pytest.mark.parametrize("version", ["2.6.0", "3.0.0"])
def test_the_specification_names_topics_and_types(version: str) -> None:
    broker = StablecastBroker(["127.0.0.1:15380"], description="Orders", tags=[{"name": "shop"}])
    router = StablecastRouter(prefix="shop.")

    @router.subscriber("orders")
    @router.publisher("bookings", description="What was booked")
    async def book(order: Order) -> Booking:
        """Book an order."""
        return Booking(number=len(order.item))

    router.subscriber("hidden", include_in_schema=False)(book)
    broker.include_router(router)
    broker.subscriber("named", title="Named", description="By name")(book)
    made = json.loads(AsyncAPI(broker, schema_version=version).to_specification().to_json())
    assert made["asyncapi"] == version
    server = made["servers"]["development"]
    assert server["protocol"] == "stablecast"
    assert "127.0.0.1:15380" in (server.get("url"), server.get("host"))
    schemas = made["components"]["schemas"]
    assert schemas["Order"]["properties"]["item"]["type"] == "string"
    assert schemas["Booking"]["properties"]["number"]["type"] == "integer"
    text = json.dumps(made)
    assert "shop.orders:Book" in text
    assert "shop.bookings:Publisher" in text
    assert "Book an order." in text
    assert "hidden" not in text
    if version == "3.0.0":
        addresses = {channel["address"] for channel in made["channels"].values()}
        assert addresses == {"shop.orders", "shop.bookings", "named"}
