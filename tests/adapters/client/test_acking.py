"""Receivers whose application acknowledges itself, and receivers in arrival order."""

import pytest

from stablecast.core.errors import MisuseError
from stablecast.runtime.stream import StreamServer
from tests.support.network import Network
from tests.support.traffic import send, source_of, take


@pytest.mark.rows("P-346", "P-347", "P-348")
async def test_the_application_acknowledges_itself(net: Network) -> None:
    """Unacknowledged messages come again; a handle does when the message is gone."""
    _, source = await source_of(net, "a")
    context = await net.context(session_id=2)
    receiver = context.receiver("orders", options={"ume_explicit_ack_only": 1})
    await send(source, 6)
    messages = [await anext(receiver) for _ in range(6)]
    messages[1].ack()
    handle = messages[4].ack_handle()
    del messages
    handle.ack(3)
    with pytest.raises(MisuseError):
        handle.ack(99)
    await context.close()
    again = (await net.context(session_id=2)).receiver("orders")
    assert await take(again, 2) == [4, 5]


@pytest.mark.rows("P-431")
async def test_a_receiver_in_arrival_order(net: Network) -> None:
    """With several sources of one topic and what stores have."""
    _, source = await source_of(net, "a")
    await send(source, 5)
    receiver = (await net.context(session_id=2)).receiver("orders", options={"ordered_delivery": 0})
    assert sorted(await take(receiver, 5)) == list(range(5))
    await send(source, 2)
    assert sorted(await take(receiver, 2)) == [5, 6]


@pytest.mark.rows("P-410", "M-002")
async def test_messages_that_a_stream_lost_come_from_a_store(net: Network) -> None:
    """The stream was broken and goes on with a gap."""
    _, source = await source_of(net, "a")
    receiver = (await net.context(session_id=2)).receiver("orders")
    await send(source, 2)
    assert await take(receiver, 2) == [0, 1]
    stream = source.stream
    assert isinstance(stream, StreamServer)
    mine, _ = stream.subscribers  # the last who joined is the first
    stream.subscribers.remove(mine)
    await send(source, 3)
    stream.subscribers.insert(0, mine)
    await send(source, 1)
    assert await take(receiver, 4) == [2, 3, 4, 5]


@pytest.mark.rows("P-346", "P-431")
async def test_in_arrival_order_a_message_in_hand_is_not_acknowledged_with_a_higher_one(net: Network) -> None:
    """The higher one came earlier. Only what was consumed below it counts, or came in one batch with it."""
    _, source = await source_of(net, "a")
    context = await net.context(session_id=2)
    options = {"ume_explicit_ack_only": 1, "ordered_delivery": 0}
    receiver = context.receiver("orders", options=options)
    await send(source, 2)
    first = [await anext(receiver) for _ in range(2)]
    first[1].ack()
    stream = source.stream
    assert isinstance(stream, StreamServer)
    mine, _ = stream.subscribers  # the last who joined is the first
    stream.subscribers.remove(mine)
    await send(source, 3)
    stream.subscribers.insert(0, mine)
    await send(source, 1)
    live, lower = await anext(receiver), await anext(receiver)
    assert (live.sequence_number, lower.sequence_number) == (5, 2)
    for _ in range(2):  # The second one would acknowledge what the first one counted as consumed.
        live.ack()
    await context.close()
    again = (await net.context(session_id=2)).receiver("orders", options=options)
    assert 2 in await take(again, 3)
