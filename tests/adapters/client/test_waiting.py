"""`send` waits for stores and for room, and says what it waited for."""

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from unittest import mock

import pytest

from stablecast.client import Closed, Context, MisuseError, NoRoom, NotRegistered, NotStableYet, Source, source
from stablecast.core.protocol.events import QuorumLost
from tests.support.network import LOCAL, Events, Network, unused_port


async def test_a_message_that_is_sent_before_the_registration_waits_for_it(net: Network) -> None:
    where = f"{LOCAL}:{unused_port()}"
    receiver = (await net.context(session_id=9)).receiver("orders")
    early = await (await net.context(session_id=7)).source("orders", stores=[where], wait=False)
    many = asyncio.create_task(early.send_many(iter([b"x"] * 3)))
    for _ in range(3):
        await asyncio.sleep(0)
    one = asyncio.create_task(early.send(b"x", {"k": 1}, tag=object()))
    await net.store(listen=where)
    assert await many == 2
    await (await one).stable()
    assert [(await anext(receiver)).number for _ in range(4)] == [0, 1, 2, 3]


async def test_a_message_waits_while_the_stores_are_gone(net: Network) -> None:
    events = Events()
    store = await net.store()
    sender = await (await net.context()).source("orders", stores=[store], on_event=events)
    await (await sender.send(b"one")).stable()
    await net.stop()
    await events.first(QuorumLost)
    two = asyncio.create_task(sender.send(b"two"))
    with pytest.raises(NotRegistered) as raised:
        await sender.send(b"three", timeout=0.01)
    assert f"store 0 [{store}]" in str(raised.value)
    assert "start the stores" in str(raised.value)
    await net.store(listen=store)
    await (await two).stable()
    assert sender.next_number == 2


async def test_what_sending_took_is_missing_from_the_time_for_stability(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = await (await net.context()).source("orders", stores=[f"{LOCAL}:{unused_port()}"], wait=False)
    now = [100.0]
    sent = mock.AsyncMock()

    async def send(*_: object, **__: object) -> object:
        now[0] += 45
        return sent

    monkeypatch.setattr(sender, "_loop", mock.Mock(time=lambda: now[0]))
    monkeypatch.setattr(sender, "send", send)
    for limit, left in (60.0, 15.0), (30.0, 0.0), (None, None):
        await sender.publish(b"one", timeout=limit)
        assert sent.stable.await_args == mock.call(left)
    monkeypatch.undo()


async def test_one_limit_covers_the_stores_the_room_and_the_stability(net: Network) -> None:
    events = Events()
    store = await net.store()
    options = {"ume_flight_size": 2}
    sender = await (await net.context()).source("orders", stores=[store], on_event=events, options=options)
    assert (await sender.publish(b"one", {"k": 1}, id="one")).number == 0
    await sender.wait_stable_through(0, timeout=0)
    frozen = net.stores["store"].statistics()
    assert frozen["clients"] == 1
    leaving = asyncio.create_task(net.stop())
    for wait in (lambda: sender.publish(b"two", timeout=0), lambda: sender.wait_stable_through(1, timeout=0)):
        with pytest.raises(NotStableYet, match=r"message 1 of source 'orders' was sent, .* after 0 s") as raised:
            await wait()
        assert isinstance(raised.value, TimeoutError)
    await leaving
    await events.first(QuorumLost)
    with pytest.raises(NotRegistered):
        await sender.publish(b"three", timeout=0.01)
    first = asyncio.create_task(sender.send(b"four", id="four"))
    await asyncio.sleep(0)
    with pytest.raises(NotRegistered, match="start the stores"):
        await sender.publish(b"four", timeout=0.01, id="four")  # Another call sends it, and waits as long as it likes.
    await net.store(listen=store)
    assert (await first).number == (await sender.publish(b"four", id="four")).number == 2


async def test_a_full_flight_is_named_when_the_time_is_over(net: Network) -> None:
    store = await net.store()
    sender = await (await net.context()).source("orders", stores=[store], options={"ume_flight_size": 1})
    net.stores["store"].statistics()
    await net.stop()
    sender.try_send(b"one")
    with pytest.raises(NoRoom, match=r"no room for 3 bytes within 0\.01 s, because messages 0\.\.0 are neither stable"):
        await sender.send(b"two", timeout=0.01)
    sender.hold(True)
    with pytest.raises(TimeoutError, match="because the transport accepts no more messages now"):
        await sender.send(b"two", timeout=0.01)
    waits = asyncio.create_task(sender.send(b"two"))
    await asyncio.sleep(0)
    await sender.close()
    with pytest.raises(Closed):
        await waits


async def test_a_long_wait_is_logged(
    net: Network, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(source, "WARN_SECONDS", 0.01)
    where = f"{LOCAL}:{unused_port()}"
    sender = await (await net.context()).source("orders", stores=[where], wait=False)
    with caplog.at_level(logging.WARNING, "stablecast"), pytest.raises(NotRegistered):
        await sender.send(b"one", timeout=0.1)
    assert "source 'orders' is not registered with enough stores after 0.01 s" in caplog.text
    with pytest.raises(NotRegistered):
        await sender.send(b"one", wait=False)


class Octets(bytes):
    """A subclass, which must not be kept."""


@pytest.mark.parametrize("like", [bytearray, memoryview, Octets])
async def test_payloads_are_bytes_like(net: Network, like: type[bytes]) -> None:
    """A buffer may change after the call."""
    sender = await (await net.context()).source("orders", stores=[await net.store()])
    receiver = (await net.context()).receiver("orders")
    buffer = bytearray(b"one")
    await sender.send(like(buffer))
    await sender.send(like(buffer), {"k": 1})
    await sender.send_many([like(buffer), b"two"])
    buffer[:] = b"xxx"
    found = [await anext(receiver) for _ in range(4)]
    assert [message.payload for message in found] == [b"one", b"one", b"one", b"two"]
    with pytest.raises(TypeError, match="send_many needs several payloads, not one bytes: use send"):
        await sender.send_many(b"one")  # type: ignore[arg-type]


SENTENCE = "source 'orders' belongs to the event loop that made it: call it there"


async def test_another_thread_gets_one_sentence(net: Network) -> None:
    context = await net.context()
    sender = await context.source("orders")
    reading = context.receiver("orders", source=sender.place)
    calls: list[Callable[[], object]] = [partial(sender.try_send, b"x"), sender.batch().__enter__]
    for call in calls:
        with pytest.raises(MisuseError, match=SENTENCE):
            await asyncio.to_thread(call)
    waits = (
        partial(sender.send, b"x"),
        partial(sender.send_many, [b"x"]),
        sender.room,
        sender.registered,
        partial(sender.wait_stable, 0),
        partial(sender.wait_stable_through, 0),
        sender.deregister,
        sender.close,
    )
    for wait in waits:
        with pytest.raises(MisuseError, match=SENTENCE):
            await asyncio.to_thread(run, wait)
    with pytest.raises(MisuseError, match="the context belongs to the event loop"):
        await asyncio.to_thread(context.receiver, "trades", source=sender.place)
    for close in (context.close, partial(context.source, "trades")):
        with pytest.raises(MisuseError, match="the context belongs to the event loop"):
            await asyncio.to_thread(run, close)
    for close in (reading.close, reading.deregister):
        with pytest.raises(MisuseError, match="receiver 'orders' belongs to the event loop"):
            await asyncio.to_thread(run, close)
    assert sender.try_send(b"x") == 0


def run(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    asyncio.run(call())


def test_a_second_loop_gets_one_sentence() -> None:
    async def begin() -> tuple[Context, Source]:
        context = await Context().__aenter__()
        return context, await context.source("orders")

    async def go_on() -> None:
        with pytest.raises(MisuseError, match=SENTENCE):
            await sender.send(b"x")
        with pytest.raises(MisuseError, match="the context belongs to the event loop"):
            await context.close()

    context, sender = asyncio.run(begin())
    with pytest.raises(MisuseError, match=SENTENCE):
        sender.try_send(b"x")
    asyncio.run(go_on())
    context._open = False


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_context_that_is_never_closed_warns() -> None:
    async def begin() -> None:
        await Context().__aenter__()

    def forget() -> None:
        asyncio.run(begin())
        gc.collect()

    with pytest.warns(ResourceWarning, match=r"unclosed context at 127\.0\.0\.1:\d+: use it inside 'async with'"):
        forget()
