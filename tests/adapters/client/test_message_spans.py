"""Spans of OpenTelemetry: the sender's context travels with a message, and each step has a span of its own."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider, SpanContext, SpanKind, StatusCode

from stablecast.client import Message, NotRegistered, Redelivery, Source
from stablecast.client.instrumented_message import InstrumentedMessage
from stablecast.client.message_spans import MAX_LINKS, spans_of
from stablecast.sync import Context as BlockingContext
from stablecast.transports.wire.properties import Value
from tests.support.network import LOCAL, Network, until, unused_port
from tests.support.traffic import source_of


class Recorded:
    """A tracer provider, and the spans that it recorded."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    recorded = Recorded()
    yield recorded
    recorded.provider.shutdown()


async def traced_source(net: Network, recorded: Recorded, **more: Any) -> Source:
    context = await net.context(session_id=7, tracer_provider=recorded.provider)
    return await context.source("orders", stores=[await net.store()], **more)


def context_of(span: ReadableSpan) -> SpanContext:
    found = span.get_span_context()
    assert found is not None
    return found


async def test_a_message_is_followed_from_its_sender_to_the_end_of_its_processing(
    net: Network, recorded: Recorded
) -> None:
    source = await traced_source(net, recorded)
    receiver = (await net.context(tracer_provider=recorded.provider)).receiver("orders", session_id=9)
    with recorded.tracer.start_as_current_span("web request") as request:
        sent = await source.send(b"apples", {"k": 1})
        await sent.stable()
    message = await anext(receiver)
    async with message:
        inner = trace.get_current_span().get_span_context()
        assert message.properties["k"] == 1
    assert not trace.get_current_span().get_span_context().is_valid
    send, stable, receive, process = (
        recorded.one(f"{what} orders") for what in ("send", "stable", "receive", "process")
    )
    assert [span.kind for span in (send, stable, receive, process)] == [
        SpanKind.PRODUCER,
        SpanKind.CLIENT,
        SpanKind.CLIENT,
        SpanKind.CONSUMER,
    ]
    created = context_of(send)
    assert send.parent is not None
    assert send.parent.span_id == request.get_span_context().span_id
    for span in (stable, process):
        assert span.parent is not None
        assert (span.parent.trace_id, span.parent.span_id) == (created.trace_id, created.span_id)
    assert inner == process.get_span_context()
    assert receive.parent is None
    for span in (receive, process):
        assert [link.context.span_id for link in span.links] == [created.span_id]
    for span, operation in ((send, "send"), (receive, "receive"), (process, "process")):
        assert dict(span.attributes or {}) == {
            "messaging.system": "stablecast",
            "messaging.operation.name": operation,
            "messaging.operation.type": operation,
            "messaging.destination.name": "orders",
            "messaging.message.id": message.key,
        }
    assert "messaging.operation.type" not in (stable.attributes or {})
    assert all(
        span.start_time and span.end_time and span.start_time <= span.end_time for span in (send, stable, process)
    )


async def test_processing_belongs_to_the_span_that_is_current(net: Network, recorded: Recorded) -> None:
    """The conventions ask for it; the link still leads to the sender."""
    source = await traced_source(net, recorded)
    receiver = (await net.context(tracer_provider=recorded.provider)).receiver("orders")
    await source.send(b"apples")
    with recorded.tracer.start_as_current_span("job") as job:
        async with await anext(receiver):
            pass
        assert trace.get_current_span() is job
    process = recorded.one("process orders")
    assert process.parent is not None
    assert process.parent.span_id == job.get_span_context().span_id
    assert [link.context.span_id for link in process.links] == [context_of(recorded.one("send orders")).span_id]


@pytest.mark.parametrize("call", ["try_send", "try_send_as", "send_many", "id"])
async def test_each_way_to_send_has_one_span_for_a_message(net: Network, recorded: Recorded, call: str) -> None:
    source = await traced_source(net, recorded)
    receiver = (await net.context()).receiver("orders")
    match call:
        case "try_send":
            source.try_send(b"one")
        case "try_send_as":
            source.try_send_as(b"one", tag="x")
        case "send_many":
            await source.send_many([b"one"])
        case _:
            for _ in range(2):
                await source.send(b"one", id="order-1")
    message = await anext(receiver)
    span = recorded.one("send orders")
    carried = str(message.properties["traceparent"]).split("-")
    assert carried[1:3] == [f"{context_of(span).trace_id:032x}", f"{context_of(span).span_id:016x}"]
    assert not isinstance(message, InstrumentedMessage)  # Its context has no provider.


async def test_a_context_that_the_application_gave_stays(net: Network, recorded: Recorded) -> None:
    source = await traced_source(net, recorded)
    receiver = (await net.context()).receiver("orders")
    given = f"00-{7:032x}-{8:016x}-01"
    await source.send(b"one", {"traceparent": given})
    assert (await anext(receiver)).properties["traceparent"] == given
    span = recorded.one("send orders")
    assert span.kind is SpanKind.CLIENT
    assert [link.context.trace_id for link in span.links] == [7]


async def test_failures_are_marked(net: Network, recorded: Recorded) -> None:
    where = f"{LOCAL}:{unused_port()}"
    context = await net.context(tracer_provider=recorded.provider)
    source = await context.source("orders", stores=[where], wait=False)
    with pytest.raises(NotRegistered):
        await source.send(b"one", wait=False)
    with pytest.raises(NotRegistered):
        source.try_send(b"one")
    for span in recorded.named("send orders"):
        assert span.status.status_code is StatusCode.ERROR
        assert (span.attributes or {})["error.type"] == "NotRegistered"
    assert len(recorded.named("send orders")) == 2


async def test_no_span_for_a_message_without_room(net: Network, recorded: Recorded) -> None:
    source = await traced_source(net, recorded, options={"ume_flight_size": 1})
    numbers = [source.try_send(b"one"), source.try_send(b"two")]
    assert numbers == [0, None]
    assert len(recorded.named("send orders")) == 1
    await source.wait_stable(0)


async def test_a_callback_and_a_failed_block_have_process_spans(net: Network, recorded: Recorded) -> None:
    source = await traced_source(net, recorded)
    context = await net.context(tracer_provider=recorded.provider)
    found: list[SpanContext] = []
    calling = context.receiver("orders", on_message=lambda _: found.append(trace.get_current_span().get_span_context()))
    await source.send(b"one")
    await until(lambda: bool(found))
    assert found == [context_of(recorded.one("process orders"))]
    await calling.close()
    other = (await net.context(tracer_provider=recorded.provider)).receiver(
        "orders", session_id=11, redelivery=Redelivery(delay=0)
    )
    async for message in other:
        async with message:
            if message.attempt == 1:
                raise ValueError("no apples")
            break
    failed, good = recorded.named("process orders")[1:]
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "no apples")
    assert good.status.status_code is StatusCode.UNSET


async def test_a_batch_has_one_span_with_a_link_to_each_sender(net: Network, recorded: Recorded) -> None:
    source = await traced_source(net, recorded)
    receiver = (await net.context(tracer_provider=recorded.provider)).receiver("orders")
    with source.batch():
        await source.send_many([b"x"] * (MAX_LINKS + 200))
    count = 0
    async for batch in receiver.batches():
        span = recorded.named("receive orders")[-1]
        assert len(span.links) == min(batch.count, MAX_LINKS)
        assert (span.attributes or {})["messaging.batch.message_count"] == batch.count
        if (count := count + batch.count) == MAX_LINKS + 200:
            break


async def test_properties_of_peers_cannot_break_a_receiver(net: Network, recorded: Recorded) -> None:
    _, source = await source_of(net, "a")
    receiver = (await net.context(tracer_provider=recorded.provider)).receiver("orders")
    odd: list[Value] = [1, True, 0.5, b"\0", "", "00-zz", f"00-{0:032x}-{0:016x}-01", "x" * 5000]
    for value in odd:
        await source.send(b"one", {"traceparent": value, "tracestate": value, "baggage": value})
    for _ in odd:
        async with await anext(receiver):
            pass
    assert all(not span.links for span in recorded.named("process orders"))


async def test_a_program_without_a_provider_has_plain_sources_and_messages(net: Network) -> None:
    _, source = await source_of(net, "a")
    assert type(source) is Source
    receiver = (await net.context(tracer_provider=NoOpTracerProvider())).receiver("orders")
    await source.send(b"one")
    message = await anext(receiver)
    assert (type(message), message.properties) == (Message, {})
    assert spans_of(None) is None


async def test_blocking_calls_have_the_spans_of_their_thread(net: Network, recorded: Recorded) -> None:
    store = await net.store()
    await net.context()  # It starts the relay.

    def program() -> None:
        with BlockingContext(resolver=[net.relays[0].address], tracer_provider=recorded.provider) as context:
            receiver = context.receiver("orders", session_id=9)
            source = context.source("orders", stores=[store], session_id=7)
            with recorded.tracer.start_as_current_span("job"):
                source.send(b"one").stable()
            with receiver.next(), recorded.tracer.start_as_current_span("book"):
                pass
            assert not trace.get_current_span().get_span_context().is_valid

    await asyncio.to_thread(program)
    send, process, book = (recorded.one(name) for name in ("send orders", "process orders", "book"))
    assert send.parent == recorded.one("job").get_span_context()
    assert process.parent is not None
    assert process.parent.span_id == context_of(send).span_id
    assert book.parent == process.get_span_context()


PLAIN_PROGRAM = """
import asyncio, sys
sys.modules["opentelemetry"] = None  # as if the package were not installed
from stablecast.client import Context

async def main() -> None:
    async with Context(resolver=["127.0.0.1:9"]) as context:
        source = await context.source("orders")
        assert type(source).__name__ == "Source"
        context.receiver("orders")

asyncio.run(main())
assert not [name for name in sys.modules if name.startswith("opentelemetry.")]
"""


def test_a_program_needs_no_package_of_opentelemetry() -> None:
    subprocess.run([sys.executable, "-c", PLAIN_PROGRAM], check=True)
