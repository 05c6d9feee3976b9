"""Ways to send, receive and acknowledge wrongly."""

import asyncio
import gc
from typing import Any

import pytest

from stablecast.client import (
    Closed,
    Context,
    Message,
    MessageTooLarge,
    MisuseError,
    NotRegistered,
    Redelivery,
)
from stablecast.client.loop_sender import MAX_CUT
from tests.adapters.client.misuses import context_of, pair, refused, right, source_of
from tests.support.network import LOCAL, Network, until, unused_port

# -------------------------------------------------------------------------------------------------------------- sending


@refused("a text as payload", "a payload must be bytes-like, not str: encode it, or use stablecast.typed", TypeError)
async def _(net: Network) -> None:
    await (await source_of(net)).send("text")  # type: ignore[arg-type]


@refused(
    "`None` as payload", "a payload must be bytes-like, not NoneType: encode it, or use stablecast.typed", TypeError
)
async def _(net: Network) -> None:
    await (await source_of(net)).send(None)  # type: ignore[arg-type]


@refused("`send_many` of one payload", "send_many needs several payloads, not one bytes: use send", TypeError)
async def _(net: Network) -> None:
    await (await source_of(net)).send_many(b"text")  # type: ignore[arg-type]


@refused("properties that are a list", "the properties of a message must be a mapping, not list", TypeError)
async def _(net: Network) -> None:
    await (await source_of(net)).send(b"x", ["k"])  # type: ignore[arg-type]


@refused("a key that is no text", "the key of a property must be a str, not int: 1", TypeError)
async def _(net: Network) -> None:
    await (await source_of(net)).send(b"x", {1: "x"})  # type: ignore[dict-item]


@refused("a value of a wrong type", "the property 'k' must be a bool, int, float, str or bytes, not list", TypeError)
async def _(net: Network) -> None:
    await (await source_of(net)).send(b"x", {"k": []})  # type: ignore[dict-item]


@right("huge properties", "They are cut into pieces with the payload, and arrive whole.")
async def _(net: Network) -> None:
    source, receiver = await pair(net, 0)
    properties = {f"key {number}": "x" * 1000 for number in range(300)}
    await source.send(b"x", properties)
    assert (await anext(receiver)).properties == properties


@refused(
    "a message that is too large",
    f"a message of {MAX_CUT + 1} bytes is larger than the limit of {MAX_CUT} bytes",
    MessageTooLarge,
)
async def _(net: Network) -> None:
    await (await source_of(net)).send(bytes(MAX_CUT + 1))


@right("a buffer that changes after `send`", "The message has the bytes of the call.")
async def _(net: Network) -> None:
    source, receiver = await pair(net, 0)
    buffer = bytearray(b"one")
    source.try_send(buffer)
    buffer[:] = b"two"
    assert (await anext(receiver)).payload == b"one"


@refused(
    "`send` while all stores are away, with a timeout",
    "source 'orders' is not registered with enough stores after 0.01 s: …start the stores…",
    NotRegistered,
)
async def _(net: Network) -> None:
    where = f"{LOCAL}:{unused_port()}"
    source = await (await net.context()).source("orders", stores=[where], wait=False)
    await source.send(b"x", timeout=0.01)


@refused(
    "`stable()` of a source without stores",
    "source 'ticks' has no stores: nothing that it sends becomes stable",
    Closed,
)
async def _(net: Network) -> None:
    await (await (await (await net.context()).source("ticks")).send(b"x")).stable()


@right("a forgotten `await`", "Python warns: `RuntimeWarning`, coroutine 'Source.send' was never awaited.")
async def _(net: Network) -> None:
    source = await source_of(net)
    with pytest.warns(RuntimeWarning, match=r"coroutine 'Source\.send' was never awaited"):
        del [source.send(b"x")][0]
    assert source.next_number == 0


@right("a `send` that is cancelled", "The message was not sent.")
async def _(net: Network) -> None:
    source = await source_of(net, options={"ume_flight_size": 1})
    await net.stop()
    source.try_send(b"x")
    sending = asyncio.create_task(source.send(b"y"))
    await asyncio.sleep(0)
    sending.cancel()
    await asyncio.wait([sending])
    assert source.next_number == 1


@right("a wait for stability that is cancelled", "The message becomes stable all the same.")
async def _(net: Network) -> None:
    source = await source_of(net)
    sent = await source.send(b"x")
    waiting = asyncio.create_task(sent.stable())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await sent.stable()


# ------------------------------------------------------------------------------------------------------------ receiving


@refused(
    "two receivers of a topic in a context",
    "this context has a receiver of 'orders': use that one, or make another Context with a session id of its own",
    MisuseError,
)
async def _(net: Network) -> None:
    context = await net.context()
    context.receiver("orders")
    context.receiver("orders")


@refused(
    "a group with a session id",
    "a group has session ids of its own and is read in a loop: leave out session_id",
    MisuseError,
)
async def _(net: Network) -> None:
    (await net.context()).receiver("orders", group="billing", session_id=7)  # type: ignore[call-overload]


@refused("a group without a name", "the name of a group must be text of 1 to 64 characters, not ''", MisuseError)
async def _(net: Network) -> None:
    (await net.context()).receiver("orders", group="")


@refused("no shares", "a topic has 1 to 256 shares, not 0", MisuseError)
async def _(net: Network) -> None:
    (await net.context()).receiver("orders", group="billing", shares=0)


@refused("shares without a group", "shares divides a topic among the members of a group: name the group", MisuseError)
async def _(net: Network) -> None:
    (await net.context()).receiver("orders", shares=4)  # type: ignore[call-overload]


@refused("a group and a pattern", "a group shares one topic: give no pattern with it", MisuseError)
async def _(net: Network) -> None:
    (await net.context()).receiver(pattern="^orders", group="billing")  # type: ignore[call-overload]


@refused(
    "members with different shares",
    "a member of group 'billing' divides 'orders' into 4 shares, this one into 8: give all members the same shares=",
    MisuseError,
)
async def _(net: Network) -> None:
    await source_of(net)
    first = (await net.context()).receiver("orders", group="billing", shares=4)
    await until(lambda: first.shares)
    await anext((await net.context()).receiver("orders", group="billing", shares=8))


@right("more members than shares", "The last ones wait, and get a share when another member leaves.")
async def _(net: Network) -> None:
    await source_of(net)
    first = (await net.context()).receiver("orders", group="billing", shares=1)
    second = (await net.context()).receiver("orders", group="billing", shares=1)
    await until(lambda: first.members == second.members == 2 and first.shares + second.shares == (0,))
    holder, waiting = (first, second) if first.shares else (second, first)
    await holder.close()
    await until(lambda: waiting.shares == (0,))


@right("one group and two topics", "Each topic is divided by itself.")
async def _(net: Network) -> None:
    context, store = await net.context(), await net.store()
    for topic in ("orders", "bills"):
        await (await context.source(topic, stores=[store])).send(topic.encode())
        assert (await anext(context.receiver(topic, group="billing", shares=1))).payload == topic.encode()


@refused(
    "a group over a source without stores",
    "a source of 'ticks' has no stores: a group needs them, because they keep who has which share",
    MisuseError,
)
async def _(net: Network) -> None:
    context = await net.context()
    await context.source("ticks")
    await anext(context.receiver("ticks", group="billing"))


@refused(
    "a key that cannot be one",
    "the key of receiver 'orders' of group 'billing' failed: MisuseError: the key of a message must be bytes, str or "
    "int, not list",
    MisuseError,
)
async def _(net: Network) -> None:
    await pair(net, 1)
    await anext((await net.context()).receiver("orders", group="billing", key=lambda _: []))


@refused(
    "a receiver without a way to find sources",
    "no way to find a source: give Context(resolver=...), receiver(source=...) or stores=[...]",
    MisuseError,
)
async def _(net: Network) -> None:
    async with Context() as context:
        context.receiver("orders")


@refused(
    "a topic and a pattern", "a pattern finds topics and sources: give neither topic nor source with it", MisuseError
)
async def _(net: Network) -> None:
    (await net.context()).receiver("orders", pattern="orders")  # type: ignore[call-overload]


@refused("`for` in place of `async for`", "'Receiver' object is not iterable", TypeError)
async def _(net: Network) -> None:
    for _message in (await pair(net, 0))[1]:  # type: ignore[attr-defined]
        pass


@refused(
    "`async def on_message`",
    "on_message must be a plain function, because nobody awaits it: iterate in a task instead",
    MisuseError,
)
async def _(net: Network) -> None:
    async def on_message(_: Message) -> None:
        pass

    (await net.context()).receiver("orders", on_message=on_message)


@refused(
    "a callback and a loop",
    "receiver 'orders' gives its messages to on_message: it cannot be iterated, too",
    MisuseError,
)
async def _(net: Network) -> None:
    await anext((await pair(net, 0, on_message=print))[1])


@right("`on_message` that raises", "The error is reported; that message and later ones stay unacknowledged.")
async def _(net: Network) -> None:
    reports: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))

    def on_message(message: Message) -> None:
        if message.number == 1:
            raise ValueError("mine")

    source, receiver = await pair(net, 0, on_message=on_message)
    await source.send_many([b"0", b"1", b"2"])
    await until(lambda: reports)
    assert "the on_message callback of receiver 'orders' failed" in reports[0]["message"]
    await context_of(receiver).close()
    again = (await net.context(session_id=9)).receiver("orders")
    assert (await anext(again)).number == 1


@right("a handler that blocks the event loop", "Consumed messages are acknowledged before the next one comes.")
async def _(net: Network) -> None:
    _, receiver = await pair(net, 3)
    await anext(receiver)
    reader = receiver._delivery.reader
    reader._turned_at, reader.until = reader._turned_at - 60, 0  # as if the handler had blocked for a minute
    second = await anext(receiver)
    session = next(iter(receiver._sessions.values()))
    assert (second.number, session._machine.window.acked) == (1, 0)


@right(
    "a loop that is left in the middle of a message, by an exception, a cancellation or `break`",
    "That message is not acknowledged. The next loop begins with it, or the next run.",
)
async def _(net: Network) -> None:
    _, receiver = await pair(net, 2)
    for _ in range(2):
        async for message in receiver:
            assert message.number == 0
            break
    await context_of(receiver).close()
    assert (await anext((await net.context(session_id=9)).receiver("orders"))).number == 0


@right("a generator of `batches()` that is abandoned", "The next loop begins with the batch in hand.")
async def _(net: Network) -> None:
    _, receiver = await pair(net, 2)
    first = await anext(receiver.batches())
    gc.collect()
    assert (first.payloads(), (await anext(receiver)).payload) == ([b"0"], b"0")


@right("a read that is cancelled or timed out", "No message is lost.")
async def _(net: Network) -> None:
    source, receiver = await pair(net, 0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(receiver), 0.01)
    await source.send(b"0")
    assert (await anext(receiver)).number == 0


@refused(
    "`nack` after the next message",
    "message 0 of 'orders' was consumed before, when the next one was asked for: use 'async with message', or make the "
    "receiver with auto_ack=False",
    MisuseError,
)
async def _(net: Network) -> None:
    _, receiver = await pair(net, 2)
    first = await anext(receiver)
    await anext(receiver)
    first.nack()


@refused("`ack` after `nack`", "message 0 of 'orders' comes again later: settle it then", MisuseError)
async def _(net: Network) -> None:
    _, receiver = await pair(net, 1)
    message = await anext(receiver)
    message.nack(60)
    message.ack()


@right("`ack` twice", "The second call does nothing.")
async def _(net: Network) -> None:
    _, receiver = await pair(net, 1, auto_ack=False)
    message = await anext(receiver)
    message.ack()
    message.ack()


@refused(
    "batches of a receiver with `auto_ack=False`",
    "receiver 'orders' has auto_ack=False: settle its messages one by one, not in batches",
    MisuseError,
)
async def _(net: Network) -> None:
    await anext((await pair(net, 0, auto_ack=False))[1].batches())


@refused(
    "`auto_ack=False` with `ume_explicit_ack_only`",
    "receiver 'orders' has ume_explicit_ack_only: use auto_ack=False instead",
    MisuseError,
)
async def _(net: Network) -> None:
    (await net.context()).receiver("orders", auto_ack=False, options={"ume_explicit_ack_only": 1})


@right("dead letters that are closed", "Reading ends with `NotProcessed`; the message stays unacknowledged.")
async def _(net: Network) -> None:
    aside = await (await net.context()).source("dead")
    await aside.close()
    _, receiver = await pair(net, 1, redelivery=Redelivery(attempts=1, dead_letters=aside))
    (await anext(receiver)).nack()
    with pytest.raises(Exception, match="cannot go to the dead letters 'dead': source 'dead' was closed"):
        await anext(receiver)


@refused(
    "`deduplicate` with hot failover", "receiver 'orders' gets each hot number once: leave out deduplicate", MisuseError
)
async def _(net: Network) -> None:
    (await net.context()).receiver("orders", hot_failover=True, deduplicate=True)
