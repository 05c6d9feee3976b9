"""Measure the CPU time of one message in each form: raw, with properties, typed, traced.

    python -m tools.bench.message_costs [--messages 20000] [--rounds 5]

Source and receiver are in one process and one event loop, over TCP on loopback, without stores. All forms take turns in
one run; each figure is the least of its rounds, so that a busy machine disturbs less. Compare the ratios.
"""

import argparse
import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import attrs
import msgspec
import pydantic
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler, TraceIdRatioBased

from stablecast.client import Context, Message, Receiver, Source
from stablecast.typed import PayloadFormat, Topic, TypedReceiver

AT_A_TIME: Final = 500
"""Messages of one turn: the source sends them, then the receiver reads them."""


class OrderStruct(msgspec.Struct):
    item: str
    count: int
    price: float


@dataclass
class OrderDataclass:
    item: str
    count: int
    price: float


@attrs.define
class OrderAttrs:
    item: str
    count: int
    price: float


class OrderModel(pydantic.BaseModel):
    item: str
    count: int
    price: float


FACTS: Final[dict[str, Any]] = {"item": "apples", "count": 3, "price": 1.25}
PAYLOAD: Final = msgspec.json.encode(FACTS)

Costs = tuple[int, int]
"""CPU time of sending and of receiving all messages, in ns."""

Form = Callable[[int], Awaitable[Costs]]
"""Sends and receives this many messages."""


@asynccontextmanager
async def pair(provider: TracerProvider | None) -> AsyncIterator[tuple[Context, Context]]:
    """Open a context for a source and one for its receiver."""
    more: dict[str, Any] = {} if provider is None else {"tracer_provider": provider}  # Older clients have none.
    async with Context(**more) as sends, Context(**more) as receives:
        sends.prompt = receives.prompt = False
        yield sends, receives


async def in_turns(
    count: int, send: Callable[[], Awaitable[object]], received: Callable[[int], Awaitable[None]]
) -> Costs:
    """Send and receive messages in turns; return the CPU time of both."""
    sending = receiving = 0
    for _ in range(0, count, AT_A_TIME):
        began = time.process_time_ns()
        for _ in range(AT_A_TIME):
            await send()
        between = time.process_time_ns()
        await received(AT_A_TIME)
        sending, receiving = sending + between - began, receiving + time.process_time_ns() - between
    return sending, receiving


def iterated(receiver: Receiver | TypedReceiver[Any]) -> Callable[[int], Awaitable[None]]:
    """Read messages one after the other."""
    iterator: Any = aiter(receiver)

    async def received(count: int) -> None:
        for _ in range(count):
            await anext(iterator)

    return received


def raw(properties: dict[str, Any] | None = None, sampler: Sampler | None = None, process: bool = False) -> Form:
    """Send bytes; `sampler` makes spans, and `process` those of processing."""

    async def run(count: int) -> Costs:
        provider = None if sampler is None else TracerProvider(sampler=sampler)
        async with pair(provider) as (sends, receives):
            source = await sends.source("orders")
            receiver = receives.receiver("orders", source=source.place)
            await _joined(source, receiver)

            async def processed(number: int) -> None:
                for _ in range(number):
                    async with await anext(receiver):
                        pass

            return await in_turns(
                count, lambda: source.send(PAYLOAD, properties), processed if process else iterated(receiver)
            )

    return run


def called(properties: dict[str, Any] | None = None, sampler: Sampler | None = None) -> Form:
    """Send by `try_send`, and receive by a callback."""

    async def run(count: int) -> Costs:
        provider = None if sampler is None else TracerProvider(sampler=sampler)
        async with pair(provider) as (sends, receives):
            source = await sends.source("orders")
            got, enough, wanted = 0, asyncio.Event(), 1

            def on_message(_: Message) -> None:
                nonlocal got
                got += 1
                if got >= wanted:
                    enough.set()

            receives.receiver("orders", source=source.place, on_message=on_message)
            while not got:
                source.try_send(b"ready")
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            sending = receiving = 0
            for _ in range(0, count, AT_A_TIME):
                got, wanted = 0, AT_A_TIME
                enough.clear()
                began = time.process_time_ns()
                for _ in range(AT_A_TIME):
                    source.try_send(PAYLOAD, properties)
                between = time.process_time_ns()
                await enough.wait()
                sending, receiving = sending + between - began, receiving + time.process_time_ns() - between
            return sending, receiving

    return run


def typed(kind: Any, payload: PayloadFormat = PayloadFormat.JSON) -> Form:
    """Send objects of a type."""

    async def run(count: int) -> Costs:
        async with pair(None) as (sends, receives):
            topic, value = Topic("orders", kind, payload), kind(**FACTS)
            source = await topic.source(sends)
            receiver = topic.receiver(receives, source=source.source.place)
            await _joined(source.source, receiver.receiver)
            return await in_turns(count, lambda: source.send(value), iterated(receiver))

    return run


async def _joined(source: Source, receiver: Receiver) -> None:
    """Send until the receiver has joined, and read what came."""
    reading = asyncio.ensure_future(anext(receiver))
    while not reading.done():
        source.try_send(b"ready")
        await asyncio.sleep(0.01)
    last = source.next_number - 1
    while reading.result().number < last:
        reading = asyncio.ensure_future(anext(receiver))
        await reading


FORMS: Final[dict[str, Form]] = {
    "`try_send`, `on_message`": called(),
    "`send`, `async for`": raw(),
    "`send`, `async with message`": raw(process=True),
    "with one property": raw({"schema": "Order"}),
    "typed: msgspec, JSON": typed(OrderStruct),
    "typed: msgspec, MessagePack": typed(OrderStruct, PayloadFormat.MSGPACK),
    "typed: dataclass, JSON": typed(OrderDataclass),
    "typed: attrs, JSON": typed(OrderAttrs),
    "typed: pydantic, JSON": typed(OrderModel),
    "typed: pydantic, MessagePack": typed(OrderModel, PayloadFormat.MSGPACK),
    "traced, nothing sampled": raw(sampler=ALWAYS_OFF),
    "traced, 1 % sampled": raw(sampler=TraceIdRatioBased(0.01)),
    "traced, all sampled": raw(sampler=ALWAYS_ON),
    "traced, all sampled, `async with message`": raw(sampler=ALWAYS_ON, process=True),
    "traced, all sampled, `on_message`": called(sampler=ALWAYS_ON),
}


def measure(messages: int, rounds: int, forms: dict[str, Form]) -> dict[str, tuple[float, float]]:
    """Return the least CPU time of sending and of receiving one message of each form, in µs."""
    least: dict[str, list[Costs]] = {name: [] for name in forms}
    for _ in range(rounds):
        for name, form in forms.items():
            gc.collect()
            least[name].append(asyncio.run(_run(form, messages)))
    return {
        name: (min(sent for sent, _ in found) / messages / 1e3, min(got for _, got in found) / messages / 1e3)
        for name, found in least.items()
    }


async def _run(form: Form, messages: int) -> Costs:
    return await form(messages)


def main() -> None:
    """Print the table of spec/performance.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=int, default=len(FORMS), help="the number of forms, from the first one on")
    given = parser.parse_args()
    forms = dict(list(FORMS.items())[: given.only])
    found = measure(given.messages // AT_A_TIME * AT_A_TIME, given.rounds, forms)
    print("| form of a message | send, µs | receive, µs |\n|---|---:|---:|")
    for name, (send, receive) in found.items():
        print(f"| {name} | {send:.2f} | {receive:.2f} |")


if __name__ == "__main__":
    main()
