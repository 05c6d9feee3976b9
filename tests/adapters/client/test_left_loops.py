# ruff: noqa: PT012 - the loop that an exception leaves is what is tested
"""A message in whose middle a loop was left comes again, however it was left and whatever reads next."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from stablecast.client import Batch, Receiver, Redelivery
from stablecast.client.message import Message
from stablecast.core.protocol.messages import Role
from tests.support.network import Network, drop, until
from tests.support.traffic import send, source_of

Leave = Callable[[Receiver, list[int]], Awaitable[None]]
"""Read 0, 1 and 2 of a receiver, note them, and leave in the middle of 2."""


class MineError(Exception):
    """The application's exception."""


async def by_exception(receiver: Receiver, seen: list[int]) -> None:
    with pytest.raises(MineError):
        async for message in receiver:
            seen.append(message.number)
            if message.number == 2:
                raise MineError


async def by_break(receiver: Receiver, seen: list[int]) -> None:
    async for message in receiver:
        seen.append(message.number)
        if message.number == 2:
            break


async def by_return(receiver: Receiver, seen: list[int]) -> None:
    async for message in receiver:
        seen.append(message.number)
        if message.number == 2:
            return


async def by_timeout(receiver: Receiver, seen: list[int]) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as limit:
            async for message in receiver:
                seen.append(message.number)
                if message.number == 2:
                    limit.reschedule(0)
                    await asyncio.Event().wait()


async def by_cancelled_task(receiver: Receiver, seen: list[int]) -> None:
    async def work() -> None:
        async for message in receiver:
            seen.append(message.number)
            if message.number == 2:
                inside.set()
                await asyncio.Event().wait()

    inside = asyncio.Event()
    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    await asyncio.wait([task])


async def by_a_generator_that_is_kept(receiver: Receiver, seen: list[int]) -> None:
    """A generator of the application stands at its yield, so its loop is alive when the next one begins."""

    async def numbers() -> AsyncIterator[int]:
        async for message in receiver:
            yield message.number

    KEPT.append(numbers())
    async for number in KEPT[-1]:
        seen.append(number)
        if number == 2:
            break


KEPT: list[AsyncIterator[int]] = []


async def by_an_exception_in_a_block(receiver: Receiver, seen: list[int]) -> None:
    with pytest.raises(MineError):
        async for message in receiver:
            async with message:
                seen.append(message.number)
                if message.number == 2:
                    raise MineError


async def from_an_inner_loop(receiver: Receiver, seen: list[int]) -> None:
    """The outer loop goes on after the inner one failed: it gets the message of the inner one."""
    async for outer in receiver:
        outer.consumed()
        seen.append(outer.number)
        if outer.number == 2:
            break
        with pytest.raises(MineError):
            async for inner in receiver:
                if inner.number == 1:
                    inner.consumed()
                    seen.append(inner.number)
                else:
                    raise MineError
    await receiver.close()  # Nothing of it was left.


async def from_one_object_of_messages(receiver: Receiver, seen: list[int]) -> None:
    messages = aiter(receiver)
    for _ in range(2):
        async for message in messages:
            seen.append(message.number)
            if message.number == 2:
                break
    assert seen.pop() == 2


async def from_batches(receiver: Receiver, seen: list[int]) -> None:
    with pytest.raises(MineError):
        async for batch in receiver.batches():
            await note(batch, seen)


async def from_one_object_of_batches(receiver: Receiver, seen: list[int]) -> None:
    batches = receiver.batches()
    for _ in range(2):
        with pytest.raises(MineError):
            async for batch in batches:
                await note(batch, seen)
        seen[:] = [0, 1, 2]


async def note(batch: Batch, seen: list[int]) -> None:
    """Fail in the batch that has message 2, after those before it."""
    numbers = range(batch.first, batch.first + batch.count)
    if 2 in numbers:
        batch.consumed(2 - batch.first)
        seen[:] = [0, 1, 2]
        raise MineError
    seen += numbers


WAYS = [
    by_exception,
    by_break,
    by_return,
    by_timeout,
    by_cancelled_task,
    by_a_generator_that_is_kept,
    by_an_exception_in_a_block,
    from_one_object_of_messages,
    from_batches,
    from_one_object_of_batches,
]


async def by_again(receiver: Receiver) -> None:
    """Get message 2 again, and leave it again."""
    async for message in receiver:
        assert message.number == 2
        break


async def five(net: Network, **options: Any) -> tuple[Any, Receiver]:
    """Return a receiver of five stable messages 0 to 4, and its context."""
    _, source = await source_of(net, "a")
    context = await net.context(session_id=1)
    receiver = context.receiver("orders", **options)
    await send(source, 5)
    await until(lambda: receiver.unconsumed == 5)
    return context, receiver


def acknowledged(net: Network) -> int:
    """Return the highest number that a store has as acknowledged by a receiver, -1 without one."""
    machines = (store._machine.registry.clients.records.values() for store in net.stores.values())
    clients = [record.client for records in machines for record in records]
    return max((one.acknowledged for one in clients if one.role is Role.RECEIVER and one.has_acknowledged), default=-1)


async def rest(receiver: Receiver) -> list[int]:
    """Read through message 4 in a loop, and acknowledge it."""
    found = []
    async for message in receiver:
        found.append(message.number)
        if message.number == 4:
            message.consumed()
            break
    return found


@pytest.mark.parametrize("leave", WAYS)
async def test_the_next_loop_begins_with_the_message(net: Network, leave: Leave) -> None:
    _, receiver = await five(net)
    seen: list[int] = []
    await leave(receiver, seen)
    assert (seen, await rest(receiver)) == ([0, 1, 2], [2, 3, 4])
    assert receiver.unconsumed == 0


@pytest.mark.parametrize("leave", WAYS)
async def test_a_single_read_begins_with_the_message(net: Network, leave: Leave) -> None:
    _, receiver = await five(net)
    await leave(receiver, [])
    assert [(await anext(receiver)).number for _ in range(3)] == [2, 3, 4]


@pytest.mark.parametrize("leave", WAYS)
async def test_batches_begin_with_the_message(net: Network, leave: Leave) -> None:
    _, receiver = await five(net)
    await leave(receiver, [])
    found: list[int] = []
    async for batch in receiver.batches():
        found += range(batch.first, batch.first + batch.count)
        if found[-1] == 4:
            break
    assert found == [2, 3, 4]


@pytest.mark.parametrize("leave", WAYS)
async def test_the_next_run_begins_with_the_message(net: Network, leave: Leave) -> None:
    """Also if the program read on, left the message again, and crashed after an acknowledgement had arrived."""
    context, receiver = await five(net)
    await leave(receiver, [])
    await by_again(receiver)
    await until(lambda: acknowledged(net) >= 1)
    await drop(context)
    assert (await anext((await net.context(session_id=1)).receiver("orders"))).number == 2


async def test_an_outer_loop_gets_what_the_inner_one_left(net: Network) -> None:
    _, receiver = await five(net)
    seen: list[int] = []
    await from_an_inner_loop(receiver, seen)
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("settle", [Message.ack, Message.consumed])
async def test_a_message_that_the_application_settled_does_not_come_again(
    net: Network, settle: Callable[[Message], None]
) -> None:
    _, receiver = await five(net)
    async for message in receiver:
        if message.number == 2:
            settle(message)
            break
    assert (await rest(receiver)) == [3, 4]


async def test_who_asks_for_single_messages_says_that_the_one_before_is_done(net: Network) -> None:
    _, receiver = await five(net)
    assert (await anext(receiver)).number == 0
    assert await rest(receiver) == [1, 2, 3, 4]


@pytest.mark.parametrize("settle", [Message.ack, lambda message: message.ack_handle().ack()])
async def test_a_receiver_that_acknowledges_itself_gets_what_it_did_not_acknowledge(
    net: Network, settle: Callable[[Message], None]
) -> None:
    """Else it would acknowledge that message with a later one (P-346)."""
    _, receiver = await five(net, options={"ume_explicit_ack_only": "1"})
    async for message in receiver:
        if message.number == 1:
            settle(message)
            break
    async for message in receiver:
        assert message.number == 2
        break
    assert await rest(receiver) == [2, 3, 4]


ALONE, IN_BATCHES = [0, 1, 2, 2, 2, 3, 4], [0, 1, 2, 1, 2, 2, 2, 3, 4]
"""Each loop over batches begins with a batch of one message, so in the end 2 comes alone."""


@pytest.mark.parametrize(("as_batches", "handed"), [(False, ALONE), (True, IN_BATCHES)], ids=["messages", "batches"])
async def test_a_message_that_makes_each_loop_fail_stops_nobody(
    net: Network, *, as_batches: bool, handed: list[int]
) -> None:
    """It counts as delivered each time, and goes to the dead letters after the last attempt, before the later ones."""
    context, receiver = await five(net)
    await receiver.close()
    aside = await context.source("aside", stores=[net.stores["a"].address])
    policy = Redelivery(delay=60, attempts=3, dead_letters=aside)
    receiver = (await net.context(session_id=3)).receiver("orders", redelivery=policy)
    await until(lambda: receiver.unconsumed == 5)
    seen: list[int] = []
    while 4 not in seen:
        with suppress(MineError):
            async for one in receiver.batches() if as_batches else receiver:
                seen += range(one.first, one.first + one.count) if isinstance(one, Batch) else [one.number]
                if 2 in seen[-one.count if isinstance(one, Batch) else -1 :]:
                    raise MineError
                if 4 in seen:
                    break
    await until(lambda: aside.next_number == 1)
    assert seen == handed


async def test_each_delivery_counts_without_a_policy_and_reading_goes_no_further(net: Network) -> None:
    _, receiver = await five(net)
    attempts = []
    for _ in range(5):
        with suppress(MineError):
            async for message in receiver:
                if message.number == 2:
                    attempts.append(message.attempt)
                    raise MineError
    assert attempts == [1, 2, 3, 4, 5]
