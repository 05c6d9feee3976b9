"""Ways to hold contexts and sources wrong: threads, loops, forks, life, arguments."""

import asyncio
import gc
import os
import warnings

import pytest

from stablecast import sync
from stablecast.client import (
    AddressError,
    Closed,
    Context,
    Message,
    MisuseError,
    OptionError,
    RegistrationFailed,
    Source,
)
from tests.adapters.client.misuses import ELSEWHERE, context_of, in_a_loop, pair, refused, right, source_of
from tests.support.network import Network

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


@right(
    "`os.fork` while a context is open", "Each call in the child raises, also of `stablecast.sync`; the parent goes on."
)
async def _(net: Network) -> None:
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
