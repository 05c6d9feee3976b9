"""Sources that are closed and calls that are cancelled: nothing is lost, nothing is left."""

import asyncio

import pytest

from stablecast.client import (
    Closed,
)
from stablecast.client.loop_ownership import uninterrupted
from stablecast.core.protocol.events import Stable
from tests.support.network import LOCAL, Network, until, unused_port


async def test_a_cancelled_send_was_not_sent(net: Network) -> None:
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()], options={"ume_flight_size": 1})
    assert source.try_send(b"one") == 0
    blocked = asyncio.create_task(source.send(b"never"))
    await asyncio.sleep(0)
    blocked.cancel()
    await asyncio.wait([blocked])
    assert blocked.cancelled()
    sent = await source.send(b"two")
    assert sent.number == 1
    await sent.stable()


async def test_a_cancelled_wait_leaves_no_future(net: Network) -> None:
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()])
    waits = [asyncio.create_task(source.wait_stable(number)) for number in (5, 5, 6)]
    await asyncio.sleep(0)
    assert len(source._stability) == 2
    for wait in waits:
        wait.cancel()
    await asyncio.wait(waits)
    assert not len(source._stability)


async def test_a_cancelled_creation_leaves_nothing(net: Network) -> None:
    context = await net.context()
    for turns in range(6):
        creating = asyncio.create_task(context.source("orders", stores=[f"{LOCAL}:{unused_port()}"], within=None))
        for _ in range(turns):
            await asyncio.sleep(0)
        creating.cancel()
        await asyncio.wait([creating])
        assert not context._sources


async def test_closing_wakes_whoever_waits(net: Network) -> None:
    context = await net.context()
    store = await net.store()
    source = await context.source("orders", stores=[store], options={"ume_flight_size": 1})
    unregistered = await context.source("trades", stores=[f"{LOCAL}:{unused_port()}"], wait=False)
    await net.stop()
    source.try_send(b"x")
    waits = [
        asyncio.create_task(wait)
        for wait in (
            source.send(b"y"),
            source.room(),
            source.wait_stable(0),
            source.wait_stable_through(0),
            unregistered.registered(),
        )
    ]
    await asyncio.sleep(0)
    await source.close()
    await unregistered.close()
    await asyncio.wait(waits)
    assert {type(wait.exception()) for wait in waits} == {Closed}


async def test_messages_can_be_read_after_a_life_that_ended_when_it_had_registered(net: Network) -> None:
    context, store = await net.context(), await net.store()
    async with await context.source("orders", stores=[store], session_id=7) as source:
        await source.publish(b"x")
    for _ in range(3):
        await (await context.source("orders", stores=[store], session_id=7)).close()
        async with context.reader("orders", stores=[store], patience=5.0) as reader:
            assert [message.payload async for message in reader] == [b"x"]


@pytest.mark.parametrize("failed", [False, True])
async def test_a_source_takes_leave_of_the_stores_that_it_has(
    net: Network, monkeypatch: pytest.MonkeyPatch, failed: bool
) -> None:
    """One that failed may not have sent what it counts, so it announces nothing."""
    context, stores = await net.context(), [await net.store(name) for name in ("a", "b")]
    source = await context.source("orders", stores=[*stores, f"{LOCAL}:{unused_port()}"])
    await until(lambda: len(source.registered_names()) == 2)
    told: list[str] = []
    monkeypatch.setattr(source, "_send_to", lambda address, _: told.append(address))
    if failed:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        source.fail("the test", OSError())
    await source.close()
    assert told == ([] if failed else stores)


async def test_a_closed_source_does_nothing(net: Network) -> None:
    context = await net.context()
    async with await context.source("orders", stores=[await net.store()]) as source:
        sent = await source.send(b"x")
        await sent.stable()
    await source.close()
    await sent.stable()
    for refused in (source.send(b"y"), source.wait_stable(1), source.wait_stable_through(1), source.registered()):
        with pytest.raises(Closed, match="source 'orders' was closed"):
            await refused
    with pytest.raises(Closed):
        source.try_send(b"y")
    assert source.credit == 0
    source.flush()


async def test_closing_from_a_callback(net: Network) -> None:
    """Earlier messages are on the stream; no event comes afterwards."""
    closing: list[asyncio.Task[None]] = []
    told: list[object] = []

    def on_event(event: object) -> None:
        told.append(event)
        if isinstance(event, Stable) and not closing:
            source.try_send(b"two")
            closing.append(asyncio.create_task(source.close()))

    context = await net.context()
    source = await context.source("orders", stores=[await net.store()], on_event=on_event)
    await source.send(b"one")
    await until(lambda: closing)
    await closing[0]
    assert source.next_number == 2
    assert source._machine.window.next == 2


@pytest.mark.parametrize("cancelled", [False, True])
async def test_what_is_not_to_be_interrupted_raises_its_error_or_the_cancellation(cancelled: bool) -> None:
    began, go_on, ended = asyncio.Event(), asyncio.Event(), list[str]()

    async def act() -> None:
        began.set()
        await go_on.wait()
        ended.append("ended")
        raise ValueError("a close that failed")

    task = asyncio.create_task(uninterrupted(act()))
    await began.wait()
    for _ in range(2 * cancelled):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError if cancelled else ValueError):
        await task
    assert ended == ["ended"]
