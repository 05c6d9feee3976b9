"""Ids of messages: a message that an application sends twice is processed once."""

import asyncio
from unittest import mock

import pytest

from stablecast.client import Context, Message, NotRegistered, Sent, message_ids
from tests.support.network import LOCAL, Network, until, unused_port
from tests.support.traffic import source_of


async def test_a_message_with_the_same_id_is_sent_once(net: Network) -> None:
    _, source = await source_of(net, "a")
    receiver = (await net.context()).receiver("orders")
    first = await source.send(b"one", {"k": 1}, id="order-1")
    again = await source.send(b"one", {"k": 1}, id="order-1")
    other = await source.send(b"two", id="order-2", tag="x")
    assert (first.number, again.number, other.number) == (0, 0, 1)
    await again.stable()
    found = [await anext(receiver) for _ in range(2)]
    assert [(one.payload, one.id) for one in found] == [(b"one", "order-1"), (b"two", "order-2")]


def test_a_property_of_another_type_is_no_id() -> None:
    """Other senders choose what they put there."""
    batch = mock.Mock(properties=lambda _: {message_ids.ID_PROPERTY: 7})
    assert Message(b"", batch, 0).id is None


async def test_calls_at_the_same_time_send_once(net: Network) -> None:
    """The second call waits for the first one; if that is cancelled, it sends itself."""
    where = f"{LOCAL}:{unused_port()}"
    source = await (await net.context()).source("orders", stores=[where], wait=False)
    calls = [asyncio.create_task(source.send(b"one", id="order-1")) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(NotRegistered):
        await source.send(b"two", id="order-2", wait=False)
    calls[0].cancel()
    await net.store(listen=where)
    assert [(await call).number for call in calls[1:]] == [0, 0]
    assert (await source.send(b"two", id="order-2")).number == 1


async def test_one_limit_covers_another_call_and_the_own_one(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call waits for another one that is cancelled, and has only the rest of its time to send by itself."""
    source = await (await net.context()).source("orders", stores=[f"{LOCAL}:{unused_port()}"], wait=False)
    other = asyncio.create_task(source.send(b"one", id="order-1"))
    await asyncio.sleep(0)
    calls = [asyncio.create_task(source.send(b"one", id="order-1", timeout=limit)) for limit in (60.0, None)]
    await asyncio.sleep(0)
    send = mock.AsyncMock(return_value=Sent(0, source))
    monkeypatch.setattr(source, "send", send)
    other.cancel()
    assert [(await call).number for call in calls] == [0, 0]
    (own,) = send.await_args_list
    assert 0 < own.kwargs["timeout"] < 60


async def test_who_waits_for_a_call_whose_id_the_window_forgot_learns_its_end(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_ids, "MAX_IDS", 1)
    where = f"{LOCAL}:{unused_port()}"
    source = await (await net.context()).source("orders", stores=[where], wait=False)
    calls = [asyncio.create_task(source.send(b"x", id=name)) for name in ("1", "1", "2", "1", "1")]
    await asyncio.sleep(0)
    calls[0].cancel()  # It must not take the id from the fourth call, which began anew.
    await asyncio.wait(calls[:1])
    assert source._ids.find("1") is not None
    await net.store(listen=where)
    await asyncio.wait(calls[2:4])
    for _ in range(3):
        await asyncio.sleep(0)
    assert [call.done() for call in calls] == [True] * 5
    assert calls[3].result().number == calls[4].result().number == calls[1].result().number


async def test_the_window_is_bounded(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_ids, "MAX_IDS", 2)
    _, source = await source_of(net, "a")
    numbers = [(await source.send(b"x", id=name)).number for name in ("1", "2", "3", "3", "1", "2", "1")]
    assert numbers == [0, 1, 2, 2, 3, 4, 3]
    for wrong, error in ((1, TypeError), ("", ValueError), ("é" * 129, ValueError)):
        with pytest.raises(error, match="the id of a message"):
            await source.send(b"x", id=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("callback", [False, True])
async def test_a_receiver_drops_copies_of_the_next_life(net: Network, callback: bool) -> None:
    """The application crashed before it knew that its message was stable, and sends it again."""
    store = await net.store()
    found: list[Message] = []
    receiver = (await net.context(session_id=9)).receiver(
        "orders", deduplicate=True, on_message=found.append if callback else None
    )
    for life in range(2):
        async with Context(session_id=7, resolver=[net.relays[0].address]) as context:
            source = await context.source("orders", stores=[store])
            for name in ("order-1", "order-2", f"order-{3 + life}"):
                await (await source.send(name.encode(), id=name)).stable()
            await (await source.send(b"plain")).stable()
            while len(found) < 4 + 2 * life:
                await asyncio.sleep(0.001) if callback else found.append(await anext(receiver))
    expected = [b"order-1", b"order-2", b"order-3", b"plain", b"order-4", b"plain"]
    assert [message.payload for message in found] == expected
    if not callback:
        found[-1].consumed()
    # A session that has ended is forgotten once everything in it is acknowledged.
    sessions = [*receiver._sessions.values(), *receiver._finished]
    await until(lambda: not any(session.waiting for session in sessions))


async def test_a_receiver_remembers_a_bounded_number_of_ids(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_ids, "MAX_IDS", 2)
    _, source = await source_of(net, "a")
    receiver = (await net.context()).receiver("orders", deduplicate=True)
    for name in ("1", "2", "3", "1"):
        source._ids = message_ids.SentIds()
        await source.send(name.encode(), id=name)
        assert (await anext(receiver)).payload == name.encode()


async def test_a_message_that_comes_again_is_no_copy(net: Network) -> None:
    _, source = await source_of(net, "a")
    receiver = (await net.context()).receiver("orders", deduplicate=True)
    for name in ("1", "2", "1"):
        source._ids = message_ids.SentIds()
        await source.send(name.encode(), id=name)
    first = await anext(receiver)
    first.nack(0)
    found = [await anext(receiver) for _ in range(2)]
    assert sorted((one.payload, one.attempt) for one in found) == [(b"1", 2), (b"2", 1)]
