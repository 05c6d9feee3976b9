"""Receivers against real sources and stores: order, batches, cancellation, bounds, hostile streams."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stablecast.client import Batch, Context, Message
from stablecast.client import inbox as inbox_module
from stablecast.core.errors import MisuseError, StablecastError
from stablecast.core.protocol.events import (
    Confirmed,
    RegistrationComplete,
)
from stablecast.core.protocol.inputs import Reset
from stablecast.core.subscription import subscription
from stablecast.core.subscription.inputs import Place
from stablecast.core.subscription.subscription import Followed
from stablecast.evidence.trace import TraceError
from stablecast.runtime.stream import StreamJoiner
from stablecast.transports import codec
from stablecast.transports.resolution.records import SourceRecord
from tests.adapters.runtime.peers import data, hello, listener
from tests.core import samples
from tests.support.network import Events, Network, until
from tests.support.traffic import info, send, source_of, take


async def test_messages_arrive_in_order_and_once(net: Network) -> None:
    _, source = await source_of(net, "a", "b", "c")
    receiver = (await net.context()).receiver("orders")
    await send(source, 10)
    assert await take(receiver, 10) == list(range(10))
    await send(source, 10)
    assert await take(receiver, 10) == list(range(10, 20))


async def test_one_context_may_have_both_ends(net: Network) -> None:
    context, source = await source_of(net, "a")
    receiver = context.receiver("orders")
    await send(source, 3)
    assert await take(receiver, 3) == [0, 1, 2]


async def test_a_late_receiver_gets_everything(net: Network) -> None:
    _, source = await source_of(net, "a")
    await send(source, 500)
    receiver = (await net.context()).receiver("orders")
    messages = [await anext(receiver) for _ in range(500)]
    assert [message.sequence_number for message in messages] == list(range(500))
    assert messages[0].recovered
    assert messages[0].incarnation == source.config.incarnation
    assert repr(messages[0]).startswith(f"<Message '{messages[0].topic}' 0 of {messages[0].source}, 1 bytes")


async def test_two_receivers_each_get_everything(net: Network) -> None:
    _, source = await source_of(net, "a")
    receivers = [(await net.context(session_id=session)).receiver("orders") for session in (1, 2)]
    await send(source, 100)
    for receiver in receivers:
        assert await take(receiver, 100) == list(range(100))


async def test_two_topics_in_one_context(net: Network) -> None:
    context, orders = await source_of(net, "a")
    trades = await context.source("trades", stores=[net.stores["a"].address])
    receiving = await net.context()
    receivers = [receiving.receiver("orders"), receiving.receiver("trades")]
    await send(orders, 5)
    await send(trades, 3)
    assert [await take(receivers[0], 5), await take(receivers[1], 3)] == [[0, 1, 2, 3, 4], [0, 1, 2]]


async def test_batches_are_consumed_when_the_next_is_asked_for(net: Network) -> None:
    _, source = await source_of(net, "a")
    events = Events()
    context = await net.context(session_id=1)
    async with context.receiver("orders", on_event=events) as receiver:
        await events.first(RegistrationComplete)
        batches = receiver.batches()
        await send(source, 3)
        first, rest = await anext(batches), await anext(batches)
        assert (len(first), first.sequence_number, first.recovered) == (1, 0, False)
        assert (len(rest), rest.sequence_number, rest.recovered) == (2, 1, False)
        assert first.payloads() + rest.payloads() == [b"0", b"1", b"2"]
        await send(source, 2)
        second = await anext(batches)
        assert second.sequence_number == 3
        second.consumed(1)
        await batches.aclose()
    again = context.receiver("orders")
    assert await take(again, 1) == [4]


async def test_confirmed_delivery(net: Network) -> None:
    events = Events()
    _, source = await source_of(
        net,
        "a",
        on_event=events,
        options={"ume_confirmed_delivery_notification": 1, "ume_retention_unique_confirmations": 1},
    )
    receiver = (await net.context()).receiver("orders", options={"ume_use_ack_batching": 0})
    await send(source, 5)
    await take(receiver, 5)
    while not events.of(Confirmed) or events.of(Confirmed)[-1].last < 4:
        await events.first(Confirmed, len(events.of(Confirmed)) + 1)
    confirmed = events.of(Confirmed)
    assert confirmed[0].first == 0
    assert {event.receiver_reg_id for event in confirmed} == {confirmed[0].receiver_reg_id}


# Cancellation, bounds, hostile streams.


async def test_a_cancelled_wait_loses_nothing(net: Network) -> None:
    _, source = await source_of(net, "a")
    receiver = (await net.context(session_id=1)).receiver("orders")
    for number in range(10):
        waiting = asyncio.create_task(anext(receiver))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await send(source, 1)
        assert await take(receiver, 1) == [number]


async def test_a_wait_cancelled_when_the_message_is_there(net: Network) -> None:
    """Whichever comes first: the message is returned now or by the next call, never lost."""
    _, source = await source_of(net, "a")
    receiver = (await net.context(session_id=1)).receiver("orders")
    arrived = asyncio.Event()
    deliver = receiver.deliver

    def noted(batch: Batch) -> None:
        deliver(batch)
        arrived.set()

    receiver.deliver = noted
    seen: list[int] = []
    for _ in range(10):
        waiting: asyncio.Task[Message] = asyncio.create_task(anext(receiver))
        arrived.clear()
        await send(source, 1)
        await arrived.wait()
        waiting.cancel()
        await asyncio.wait([waiting])
        if not waiting.cancelled():
            seen.append(waiting.result().sequence_number)
    while len(seen) < 10:
        seen.append((await anext(receiver)).sequence_number)
    assert seen == list(range(10))


async def test_one_task_reads_a_receiver(net: Network) -> None:
    receiver = (await net.context()).receiver("orders")
    waiting: asyncio.Task[Message] = asyncio.create_task(anext(receiver))
    await asyncio.sleep(0)
    with pytest.raises(MisuseError, match="read a receiver in one task only"):
        await anext(receiver)
    await receiver.close()
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_a_full_inbox_stops_reading(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """And half an empty one goes on; nothing is lost."""
    monkeypatch.setattr(inbox_module, "MAX_QUEUED_BYTES", 100_000)
    _, source = await source_of(net, "a", options={"ume_flight_size": 100_000})
    events = Events()
    receiver = (await net.context(session_id=1)).receiver("orders", on_event=events)
    await events.first(RegistrationComplete)
    filler = bytes(5000)
    for _ in range(200):
        await source.send(b"%d" % source.next_number + b" " + filler)
        source.flush()
    await source.wait_stable_through(199)
    await until(lambda: receiver._paused)
    numbers = [int((await anext(receiver)).payload.split(b" ")[0]) for _ in range(200)]
    assert numbers == list(range(200))
    assert not receiver._paused


async def test_a_stream_has_one_source_of_a_topic() -> None:
    """A hostile stream gets one session, whatever it announces."""
    life = codec.join(5, 7)
    greeting = hello(5) + info(life) + info(codec.join(5, 8)) + info(codec.join(6, 7)) + info(life, "trades")
    async with listener(greeting) as source, Context() as receiving:
        receiver = receiving.receiver("orders", source=source.address)
        await until(lambda: receiving.oddities["foreign-source-on-stream"] >= 2)
        assert set(receiver._sessions) == {life}


async def test_nonsense_on_a_stream_is_counted() -> None:
    life = codec.join(5, 7)
    async with listener(hello(5) + codec.greeting(5) + info(life)) as source, Context() as receiving:
        receiver = receiving.receiver("orders", source=source.address)
        await until(lambda: receiver._sessions)
        assert receiving.oddities == {"malformed-on-stream": 1}


async def test_a_stream_that_is_found_while_the_inbox_is_full_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read on until there is room."""
    monkeypatch.setattr(inbox_module, "MAX_QUEUED_BYTES", 1)
    streams = [hello(session) + info(codec.join(session, 7)) for session in (5, 6)]
    async with listener(streams[0]) as one, listener(streams[1]) as two, Context() as receiving:
        receiver = receiving.receiver("orders", source=one.address)
        await until(lambda: receiver._sessions)
        (await one.connection()).transport.write(data(0))
        await until(lambda: receiver._paused)
        receiver.found(two.address, 6, "")
        await two.connection()
        joiner = receiver._joiners[two.address]
        assert isinstance(joiner, StreamJoiner)
        assert joiner._paused
        assert (await anext(receiver)).payload == b"x"
        await until(lambda: len(receiver._sessions) == 2)


async def test_closing_twice_and_while_a_life_waits(net: Network) -> None:
    receiver = (await net.context()).receiver("orders")
    finished = receiver.subscription.finished
    finished.append(Followed(samples.info(), Place("127.0.0.1:2")))
    receiver.found("127.0.0.1:1", 5, "")
    assert receiver.subscription.plans
    finished.clear()
    await receiver.close()
    await receiver.close()
    assert [batch async for batch in receiver.batches()] == []


async def test_a_trace_that_cannot_be_written_is_told(net: Network, tmp_path: Path) -> None:
    """By the iterator: there is nobody else to tell."""
    (tmp_path / "file").write_text("")
    await source_of(net, "a")
    receiver = (await net.context(trace=tmp_path / "file")).receiver("orders")
    with pytest.raises(TraceError):
        await anext(receiver)


async def test_a_trace_that_cannot_be_written_later_ends_no_receiver(
    net: Network, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its disk may be full, or no descriptor left, when another life begins. Standard error names the cause."""
    context = await net.context(session_id=1, trace=tmp_path / "traces")
    receiver = context.receiver("orders")
    first, source = await source_of(net, "a")
    await send(source, 1)
    assert await take(receiver, 1) == [0]
    await first.close()
    (tmp_path / "file").write_text("")
    context.trace = tmp_path / "file"
    _, source = await source_of(net, "a")
    await send(source, 1)
    assert await take(receiver, 1) == [1]
    assert "no trace can be written" in capfd.readouterr().err


async def test_a_stream_that_cannot_be_opened_is_tried_again(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver reports a source once."""
    monkeypatch.setattr(subscription, "RETRY_NS", 0)
    receiver = (await net.context(session_id=1)).receiver("orders")
    opening, failures = receiver._open, [StablecastError("no descriptor is left")]

    def opened(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return opening(*arguments)

    monkeypatch.setattr(receiver, "_open", opened)
    _, source = await source_of(net, "a")
    await send(source, 1)
    assert await take(receiver, 1) == [0]
    assert not failures


async def test_the_memory_of_earlier_lives_is_bounded(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stablecast.core.subscription.consumption.MAX_LIVES", 2)
    receiver = (await net.context(session_id=1)).receiver("orders")
    for life in range(4):
        context, source = await source_of(net, "a")
        await send(source, 1)
        assert await take(receiver, 1) == [life]
        await context.close()
        await until(lambda: not receiver._sessions)
        assert len(receiver.subscription.memory.consumption.lives) <= 2
    assert len(receiver.subscription.memory.consumption.lives) == 2


@pytest.mark.rows("P-410", "P-427")
async def test_messages_missing_on_the_stream_come_from_the_store(net: Network) -> None:
    """A receiver that runs fills its gap; it is told which messages those were."""
    _, source = await source_of(net, "a")
    receiver = (await net.context(session_id=1)).receiver("orders")
    for number in range(2):  # the second one comes on the stream
        await send(source, 1)
        assert await take(receiver, 1) == [number]
    sent = source.stream
    assert sent is not None
    held, sent.write = sent.write, lambda block: None  # type: ignore[method-assign]
    source.try_send(b"2")
    source.flush()
    sent.write = held  # type: ignore[method-assign]
    source.try_send(b"3")
    missing, live = await anext(receiver), await anext(receiver)
    assert [(m.payload, m.recovered, m.otr) for m in (missing, live)] == [(b"2", True, True), (b"3", False, False)]


async def test_a_record_that_nobody_wants_any_more_is_dropped(net: Network) -> None:
    context = await net.context()
    context._on_found("orders", SourceRecord("127.0.0.1:1", 1, 2, "127.0.0.1:2", True))
    assert not context._receivers


async def test_each_session_learns_of_a_broken_connection(net: Network) -> None:
    receiver = (await net.context()).receiver("orders", source="127.0.0.1:1")
    found: list[object] = []
    session: Any = SimpleNamespace(receive=found.append)
    receiver._sessions[1] = session
    receiver._finished.append(session)
    receiver.on_broken(Reset("127.0.0.1:2"))
    receiver._sessions.clear()
    receiver._finished.clear()
    assert found == [Reset("127.0.0.1:2")] * 2
