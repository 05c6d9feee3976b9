"""Ways to hold the client wrong. Each one is done here, and spec/misuse.md is made of this list.

STABLECAST_REWRITE=1 writes the page anew.
"""

import asyncio
import gc
import os
import re
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from stablecast import sync
from stablecast.client import (
    AddressError,
    Closed,
    Context,
    Message,
    MessageTooLarge,
    MisuseError,
    NotRegistered,
    OptionError,
    Receiver,
    Redelivery,
    RegistrationFailed,
    Source,
)
from stablecast.client.loop_ownership import OPEN
from stablecast.client.source import MAX_CUT
from stablecast.runtime.machine.system_process import SystemProcess
from tests.support.misuse import Misuse, Misuses
from tests.support.network import LOCAL, Network, until, unused_port
from tests.support.tree import ROOT

PAGE = ROOT / "spec" / "misuse.md"
TABLE = re.compile(r"(<!-- misuse -->\n).*?(<!-- end -->)", re.DOTALL)
FEWEST = 30
ELSEWHERE = (
    "belongs to the event loop that made it: call it there (loop.call_soon_threadsafe), use stablecast.sync from "
    "threads, and make another context in another loop or process"
)

MISUSES = Misuses()
refused, right = MISUSES.refused, MISUSES.right


async def source_of(net: Network, **arguments: Any) -> Source:
    return await (await net.context(session_id=7)).source("orders", stores=[await net.store()], **arguments)


async def pair(net: Network, count: int, **arguments: Any) -> tuple[Source, Receiver]:
    """Return a source that has sent stable messages 0, 1, ..., and a receiver of them."""
    source = await source_of(net)
    if count:
        await source.send_many([b"%d" % number for number in range(count)])
        await source.wait_stable_through(count - 1)
    return source, (await net.context(session_id=9)).receiver("orders", **arguments)


def context_of(one: Source | Receiver) -> Context:
    """Return the context of a source or receiver."""
    contexts = [context for context in OPEN if isinstance(context, Context)]
    return next(context for context in contexts if one in (*context._sources.values(), *context._receivers.values()))


def in_a_loop(call: Callable[[], Coroutine[Any, Any, object]]) -> Callable[[], object]:
    return lambda: asyncio.run(call())


# ------------------------------------------------------------------------------------------------ threads, loops, forks


@refused("`send` in another thread, with a loop of its own", f"source 'orders' {ELSEWHERE}", MisuseError)
async def _(net: Network) -> None:
    source = await source_of(net)
    await asyncio.to_thread(in_a_loop(lambda: source.send(b"x")))


@refused("`try_send` in another thread", f"source 'orders' {ELSEWHERE}", MisuseError)
async def _(net: Network) -> None:
    source = await source_of(net)
    await asyncio.to_thread(source.try_send, b"x")


@refused("a context that is used in a second `asyncio.run`", f"the context {ELSEWHERE}", MisuseError)
async def _(net: Network) -> None:
    context = await net.context()
    await asyncio.to_thread(in_a_loop(lambda: context.source("orders")))


@refused("`context.receiver` in another thread", f"the context {ELSEWHERE}", MisuseError)
async def _(net: Network) -> None:
    await asyncio.to_thread((await net.context()).receiver, "orders")


@refused(
    "a message that is acknowledged in another thread",
    "a message of 'orders' was consumed or acknowledged in another thread or process: use loop.call_soon_threadsafe",
    MisuseError,
)
async def _(net: Network) -> None:
    _, receiver = await pair(net, 1)
    await asyncio.to_thread((await anext(receiver)).ack)


@refused(
    "a receiver that is read in another loop",
    "receiver 'orders' belongs to another event loop: read it there, and hand messages over from it",
    MisuseError,
)
async def _(net: Network) -> None:
    _, receiver = await pair(net, 1)
    await asyncio.to_thread(in_a_loop(receiver.__anext__))


@refused(
    "two tasks that read one receiver",
    "another task reads receiver 'orders': read a receiver in one task only, and hand messages over",
    MisuseError,
)
async def _(net: Network) -> None:
    _, receiver = await pair(net, 0)
    reading = asyncio.create_task(receiver.__anext__())
    await asyncio.sleep(0)
    try:
        await anext(receiver)
    finally:
        reading.cancel()
        await asyncio.wait([reading])


@right("`os.fork` while a context is open", "Each call in the child raises; the parent goes on.")
async def _(net: Network) -> None:
    SystemProcess()  # The hook for forks is that of the system.
    context = await net.context()
    source = await context.source("orders")
    with warnings.catch_warnings(action="ignore"):  # Newer versions of Python warn of threads.
        child = os.fork()
    if not child:
        await _end_child(context, source)
    assert await asyncio.to_thread(os.waitpid, child, 0) == (child, 0)
    await source.send(b"x")


async def _end_child(context: Context, source: Source) -> None:
    refusals = 0
    for call in (lambda: source.try_send(b"x"), lambda: context.receiver("trades")):
        try:
            call()
        except (MisuseError, Closed):
            refusals += 1
    os._exit(2 - refusals)


@refused(
    "a call of `stablecast.sync` that blocks, in a callback",
    "a callback must not block: give the work to another thread, or use stablecast.client with asyncio",
    MisuseError,
)
async def _(net: Network) -> None:
    await net.context()
    await asyncio.to_thread(_block_in_a_callback, net.relays[0].address)


def _block_in_a_callback(relay: str) -> None:
    found: list[Exception] = []

    def on_message(_: Message) -> None:
        try:
            source.send(b"y")
        except MisuseError as error:
            found.append(error)
        ready.set()

    with sync.Context(resolver=[relay]) as context:
        source = context.source("orders")
        ready = _ThreadEvent()
        context.receiver("orders", on_message=on_message)
        while not ready.wait(0.02):
            source.send(b"x")
    raise found[0]


class _ThreadEvent:
    """An event between threads."""

    def __init__(self) -> None:
        import threading  # noqa: PLC0415 - for this case alone

        self._event = threading.Event()
        self.set, self.wait = self._event.set, self._event.wait


# ---------------------------------------------------------------------------------------------- contexts and their life


@refused("a context without `async with`", "the context is not open: use it inside 'async with'", Closed)
async def _(net: Network) -> None:
    await Context().source("orders")


@refused("a context that is opened twice", "the context is open already: make another Context", MisuseError)
async def _(net: Network) -> None:
    await (await net.context()).__aenter__()


@refused(
    "`with Context()` for `async with`", "'Context' object does not support the context manager protocol…", TypeError
)
async def _(net: Network) -> None:
    with Context():  # type: ignore[attr-defined]
        pass


@right(
    "a context that is never closed",
    "Python warns: `ResourceWarning`, unclosed context at …: use it inside 'async with'.",
)
async def _(net: Network) -> None:
    def forget() -> None:
        context = Context()
        context._open, context.request_address = True, "here"
        del context
        gc.collect()

    with pytest.warns(ResourceWarning, match="unclosed context at here: use it inside 'async with'"):
        forget()


@right("closing twice, or in a callback", "The second call does nothing.")
async def _(net: Network) -> None:
    source, receiver = await pair(net, 0)
    for one in (source, receiver, source, receiver):
        await one.close()


@refused("`send` after closing", "source 'orders' was closed", Closed)
async def _(net: Network) -> None:
    source = await source_of(net)
    await source.close()
    await source.send(b"x")


# --------------------------------------------------------------------------------------------------- sources and topics


@refused(
    "two sources of a topic with one session id in a context",
    "this context has a source of 'orders' with session id 7: use that one, or give another session id or other RegIDs",
    MisuseError,
)
async def _(net: Network) -> None:
    source = await source_of(net)
    await context_of(source).source("orders", stores=[net.stores["store"].address])


@refused(
    "two sources of a topic with one session id in two contexts",
    "source 'orders' is not registered with enough stores after 0.5 s: …",
    RegistrationFailed,
)
async def _(net: Network) -> None:
    source = await source_of(net)
    store = net.stores["store"].address
    assert source.session_id == 7
    await (await net.context(session_id=7)).source("orders", stores=[store], within=0.5)


@refused("a topic that is no text", "a topic must be a str, not bytes: b'orders'", MisuseError)
async def _(net: Network) -> None:
    await (await net.context()).source(b"orders")  # type: ignore[arg-type]


@refused("an empty topic", "the topic name '' must be text of 1 to 246 bytes without NUL", MisuseError)
async def _(net: Network) -> None:
    await (await net.context()).source("")


@refused("a text for a list of addresses", "stores takes a list: write stores=['127.0.0.1:14567']", MisuseError)
async def _(net: Network) -> None:
    await (await net.context()).source("orders", stores="127.0.0.1:14567")


@refused(
    "a malformed address", "'localhost' is not an address: write ip:port, for example 127.0.0.1:14567", AddressError
)
async def _(net: Network) -> None:
    Context(resolver=["localhost"])


@refused("a session id that is no number", "a session id must be an int, not str: '7'", MisuseError)
async def _(net: Network) -> None:
    Context(session_id="7")  # type: ignore[arg-type]


@refused("a negative session id", "a session id is from 0 (none) to 18446744073709551615, not -1", MisuseError)
async def _(net: Network) -> None:
    await (await net.context()).source("orders", session_id=-1)


@refused("an option that does not exist", "there is no source option 'nope': spec/options.md lists them", OptionError)
async def _(net: Network) -> None:
    await (await net.context()).source("orders", options={"nope": 1})


@refused("an option of a wrong type", "option ume_flight_size wants a whole number, not 'many'", OptionError)
async def _(net: Network) -> None:
    await (await net.context()).source("orders", options={"ume_flight_size": "many"})


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
    "a receiver without a way to find sources",
    "no way to find a source: give Context(resolver=...) or receiver(source=...)",
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
    "a loop that is left in the middle of a message", "That message counts as unread, and comes again in the next run."
)
async def _(net: Network) -> None:
    _, receiver = await pair(net, 2)
    async for _message in receiver:
        break
    await context_of(receiver).close()
    assert (await anext((await net.context(session_id=9)).receiver("orders"))).number == 0


@right("a generator of `batches()` that is abandoned", "The next loop goes on where it stopped.")
async def _(net: Network) -> None:
    _, receiver = await pair(net, 2)
    first = await anext(receiver.batches())
    gc.collect()
    assert (first.payloads(), (await anext(receiver)).payload) == ([b"0"], b"1")


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


@pytest.mark.parametrize("misuse", MISUSES.ways, ids=lambda misuse: misuse.way)
async def test_a_way_to_hold_it_wrong(net: Network, misuse: Misuse) -> None:
    await misuse.check(net)


def test_the_page_has_these_ways() -> None:
    assert len(MISUSES.ways) >= FEWEST
    rows = "\n".join(misuse.row() for misuse in MISUSES.ways)
    table = f"\n| way | what happens |\n|---|---|\n{rows}\n\n"
    text = PAGE.read_text(encoding="utf-8")
    written = TABLE.sub(lambda found: found[1] + table + found[2], text)
    if os.environ.get("STABLECAST_REWRITE"):
        PAGE.write_text(written, encoding="utf-8")
    assert written == text or os.environ.get("STABLECAST_REWRITE")
