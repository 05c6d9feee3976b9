"""Messages and sources know who they are: topic, source, life, number, times, properties."""

import time

import pytest

from stablecast.client import Context, Message, Receiver
from tests.support.network import Network, until


async def test_a_message_names_its_source_in_all_of_its_lives(net: Network) -> None:
    """The name is the registration at the first store, which a session id keeps. The life is another one each time."""
    stores = [await net.store("a"), await net.store("b")]
    receiver = (await net.context(session_id=9)).receiver("orders")
    found: list[Message] = []
    for _ in range(2):
        sending = await net.context(session_id=7)
        source = await sending.source("orders", stores=stores)
        await (await source.send(b"apples", {"key": b"\0\xff", "kind": "fruit"})).stable()
        found.append((await take_messages(receiver, 1))[0])
        assert found[-1].life == source.life
        assert found[-1].source in repr(receiver)
        assert source.session_id == 7
        assert repr(source).endswith(f"next message {len(found)}, ready>")
        await sending.close()
        assert "was closed" in repr(source)
    assert [(one.topic, one.number, one.sequence_number, one.numbers) for one in found] == [
        ("orders", 0, 0, (0, 0)),
        ("orders", 1, 1, (1, 1)),
    ]
    name = found[0].source
    assert {one.source for one in found} == {name}
    assert name.split("@")[1] == stores[0]
    assert len({one.life for one in found}) == 2
    assert len({one.key for one in found}) == 2
    assert found[0].properties == {"key": b"\0\xff", "kind": "fruit"}
    assert abs(found[0].received_at - time.time()) < 60
    recovered = ", recovered" if found[0].recovered else ""  # The source may send before the receiver has joined.
    assert repr(found[0]) == f"<Message 'orders' 0 of {name}, 6 bytes{recovered}: b'apples'>"


async def test_a_message_that_comes_again_has_its_key_again(net: Network) -> None:
    store = await net.store()
    source = await (await net.context(session_id=7)).source("orders", stores=[store])
    await (await source.send(b"x" * 40)).stable()
    keys = []
    for _ in range(2):
        async with Context(session_id=9, resolver=[net.relays[0].address]) as context:
            message = (await take_messages(context.receiver("orders"), 1))[0]
            keys.append((message.key, message.payload))
            assert repr(message).endswith("...>")
    assert keys[0] == keys[1]


async def test_a_source_without_stores_is_named_by_its_place(net: Network) -> None:
    source = await (await net.context()).source("ticks")
    receiver = (await net.context()).receiver("ticks", source=source.place)
    assert repr(receiver) == "<Receiver 'ticks', no source yet>"
    await until(lambda: receiver._sessions)
    source.try_send(b"y")
    batch = await anext(receiver.batches())
    assert batch.source == f"TCP:{source.place}"
    assert repr(batch) == f"<Batch 'ticks' {batch.first}..{batch.first}, 1 messages>"
    await receiver.close()
    assert repr(receiver) == "<Receiver 'ticks', closed>"


async def test_a_message_carries_the_time_of_its_sending_if_the_source_wishes(net: Network) -> None:
    store = await net.store()
    receiver = (await net.context()).receiver("orders")
    context = await net.context()
    source = await context.source("orders", stores=[store], timestamps=True)
    before = time.time()
    await source.send(b"one")
    await source.send(b"two", {"JMSTimestamp": 1000})
    source.try_send(b"three")
    one, two, three = await take_messages(receiver, 3)
    assert one.sent_at == pytest.approx(before, abs=60)
    assert two.sent_at == 1.0
    assert three.sent_at is not None
    assert repr(context).startswith(f"<Context open at {context.request_address}, sources ['orders']")


async def take_messages(receiver: Receiver, count: int) -> list[Message]:
    return [await anext(receiver) for _ in range(count)]
