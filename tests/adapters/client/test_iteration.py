"""The right to read a receiver, and the turns of the event loop between two messages."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from stablecast.client import iteration as module
from stablecast.client.batch import Batch
from stablecast.client.callbacks import CallbackDelivery
from stablecast.client.errors import RegistrationFailed
from stablecast.client.inbox import Inbox
from stablecast.client.iteration import BatchIterator, InboxReader, MessageIterator
from stablecast.client.message import Message
from stablecast.core.errors import MisuseError
from tests.adapters.client.test_inbox import Told, batch_of
from tests.support.machine import replace
from tests.support.network import Network
from tests.support.traffic import send, source_of, take


def reader_of(*batches: Batch, patience: float = 3600.0) -> tuple[InboxReader, MessageIterator]:
    inbox: Inbox[Batch] = Inbox(lambda: None)
    for batch in batches:
        inbox.put(batch)
    reader = InboxReader(inbox, patience, "receiver 'orders'")
    return reader, reader.claim()


async def turns_of(numbers: AsyncIterator[Any], count: int) -> int:
    """The turns that the event loop makes while `count` messages are read without a wait."""
    handles: list[asyncio.Handle] = []
    loop = asyncio.get_running_loop()

    def turn() -> None:
        handles.append(loop.call_soon(turn))

    turn()
    for _ in range(count):
        await anext(numbers)
    handles[-1].cancel()
    return len(handles) - 1


@pytest.mark.parametrize(("seconds", "messages", "turns"), [(0.0, 1000, 20), (3600.0, 1, 20), (3600.0, 5, 4)])
async def test_the_event_loop_makes_a_turn_by_time_and_by_count(
    monkeypatch: pytest.MonkeyPatch, seconds: float, messages: int, turns: int
) -> None:
    monkeypatch.setattr(module, "TURN_SECONDS", seconds)
    monkeypatch.setattr(module, "TURN_MESSAGES", messages)
    _, reading = reader_of(batch_of(10), batch_of(10, first=10))
    assert await turns_of(reading, 20) >= turns


async def test_it_makes_none_while_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TURN_SECONDS", 3600.0)
    _, reading = reader_of(*[batch_of(10, first=10 * place) for place in range(10)])
    assert await turns_of(reading, 100) == 1


async def test_an_application_that_kept_the_loop_is_acknowledged_before_the_next_message() -> None:
    told = Told()
    _, reading = reader_of(batch_of(3, told=told), patience=-1.0)
    for _ in range(3):
        await anext(reading)
    assert told.acknowledged == []  # the loop had a turn before each of them
    reader, reading = reader_of(batch_of(3, told=told), batch_of(1, first=3, told=told), patience=-1.0)
    for _ in range(4):
        await anext(reading)
        reading.left = reader.left = 0
    assert told.acknowledged == [(-1, -1)] * 3


async def test_a_failure_comes_after_what_was_delivered() -> None:
    reader, reading = reader_of(batch_of(1))
    cause = ValueError("why")
    reader.fail(RegistrationFailed("first"), cause)
    reader.fail(RegistrationFailed("second"), ValueError())
    assert (await anext(reading)).sequence_number == 0
    for _ in range(2):
        with pytest.raises(RegistrationFailed, match="first") as raised:
            await anext(reading)
        assert raised.value.__cause__ is cause
    reader.close()
    with pytest.raises(StopAsyncIteration):
        await anext(reading)


async def test_a_loop_of_another_task_is_refused_while_the_first_goes_on() -> None:
    told = Told()
    reader, reading = reader_of(batch_of(5, told=told))
    await anext(reading)

    async def other() -> None:
        reader.claim()

    with pytest.raises(MisuseError, match="another task reads receiver 'orders'"):
        await asyncio.create_task(other())
    assert told.consumptions == []
    again = reader.claim()  # in one task a loop may be inside another one
    assert (await anext(again)).sequence_number == 0
    del reading, again
    await asyncio.create_task(other())


@pytest.mark.parametrize(("is_loop", "follows"), [(False, 1), (True, 0)])
async def test_a_loop_follows_a_message_that_was_asked_for_or_one_whose_loop_was_left(
    is_loop: bool, follows: int
) -> None:
    """`anext` shows nothing of what its caller did, so its message counts as consumed."""
    told = Told()
    reader, first = reader_of(batch_of(3, told=told))
    first.is_loop = is_loop
    assert (await anext(first)).sequence_number == 0
    assert (await anext(aiter(reader.claim()))).sequence_number == follows
    assert told.consumptions == [(0, 0)][:follows]


async def test_a_task_that_is_done_reads_no_more() -> None:
    reader, _ = reader_of(batch_of(5))
    kept: list[MessageIterator] = []

    async def other() -> None:
        kept.append(reader.claim())
        await anext(kept[0])

    reader._iterator = None
    await asyncio.create_task(other())
    assert (await anext(reader.claim())).sequence_number == 0


async def test_batches_go_on_where_messages_ended() -> None:
    told = Told()
    _, reading = reader_of(batch_of(5, told=told))
    for _ in range(2):
        await anext(reading)
    batch = await reading.batch(2)
    assert batch is not None
    assert (batch.first, len(batch)) == (2, 2)
    assert (await anext(reading)).sequence_number == 4
    assert told.consumptions == [(0, 1), (2, 3)]


async def test_another_event_loop_and_another_thread_are_refused(net: Network) -> None:
    _, source = await source_of(net, "a")
    receiver = (await net.context(session_id=1)).receiver("orders")
    await send(source, 2)
    message = await anext(receiver)
    refused: list[str] = []

    async def read() -> None:
        async for _ in receiver:
            break

    def elsewhere() -> None:
        acts: list[Callable[[], None]] = [lambda: asyncio.run(read()), message.consumed, message.ack]
        for act in acts:
            try:
                act()
            except MisuseError as error:
                refused.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    await asyncio.to_thread(thread.join)
    assert refused[0].startswith("receiver 'orders' belongs to another event loop")
    assert refused[1] == refused[2]
    assert "call_soon_threadsafe" in refused[1]
    assert await take(receiver, 1) == [1]


async def test_a_loop_that_is_cancelled_in_the_middle_of_a_message(net: Network) -> None:
    """It comes again to the next loop, and to the next run if there is no other loop."""
    _, source = await source_of(net, "a")
    context = await net.context(session_id=1)
    receiver = context.receiver("orders")
    await send(source, 5)
    seen: list[int] = []

    async def work() -> None:
        async for message in receiver:
            seen.append(message.sequence_number)
            if len(seen) % 3 == 0:
                await asyncio.Event().wait()

    for count in (3, 6):
        task = asyncio.create_task(work())
        while len(seen) < count:  # noqa: ASYNC110  # a white-box condition
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.wait([task])
    assert seen == [0, 1, 2, 2, 3, 4]
    await context.close()
    assert await take((await net.context(session_id=1)).receiver("orders"), 1) == [4]


async def test_calls_of_a_turn_are_bounded_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that takes long is the last of its turn; each message comes once and in order."""
    clock = [0.0]
    replace(monkeypatch, "clock", monotonic=lambda: clock[0])
    told, seen = Told(), list[int]()
    inbox: Inbox[Batch] = Inbox(lambda: None)

    def on_message(message: Message) -> None:
        seen.append(message.sequence_number)
        clock[0] += 1.0

    handover = CallbackDelivery(on_message, "receiver", inbox, 0.1)
    for first in (0, 3):
        handover.deliver(batch_of(3, first=first, told=told))
    counts = [len(seen)]
    while len(seen) < 6:
        await asyncio.sleep(0)
        counts.append(len(seen))
    assert counts == list(range(1, 7))
    assert seen == list(range(6))
    assert [first for first, _ in told.consumptions] == seen
    assert told.acknowledged == [(-1, -1)] * 6


@pytest.mark.parametrize("queued", [False, True])
async def test_messages_that_come_during_a_call_wait_for_its_end(queued: bool) -> None:
    """A callback may send or read, and what arrives meanwhile comes after the messages of its batch."""
    seen: list[int] = []
    inbox: Inbox[Batch] = Inbox(lambda: None)

    def on_message(message: Message) -> None:
        if not seen:
            deliver(batch_of(2, first=3))
        seen.append(message.sequence_number)

    handover = CallbackDelivery(on_message, "receiver", inbox, 0.1)
    deliver = handover.deliver_queued if queued else handover.deliver
    deliver(batch_of(3))
    handover.deliver(batch_of(1, first=5))
    assert seen == list(range(6))


async def test_a_callback_that_failed_is_called_no_more() -> None:
    """What waits stays unacknowledged, and comes to the next run."""
    calls: list[int] = []
    inbox: Inbox[Batch] = Inbox(lambda: None)
    asyncio.get_running_loop().set_exception_handler(lambda _, __: None)

    def on_message(message: Message) -> None:
        calls.append(message.sequence_number)
        raise ValueError

    handover = CallbackDelivery(on_message, "receiver", inbox, 0.1)
    handover.deliver(batch_of(2))
    handover.deliver(batch_of(2, first=2))
    handover.deliver_queued(batch_of(2, first=4))
    await asyncio.sleep(0)
    assert (calls, len(inbox)) == ([0], 0)


async def test_short_calls_are_not_interrupted() -> None:
    seen: list[int] = []
    inbox: Inbox[Batch] = Inbox(lambda: None)
    handover = CallbackDelivery(lambda message: seen.append(message.sequence_number), "receiver", inbox, 0.1)
    handover.deliver(batch_of(50))
    assert seen == list(range(50))


async def test_runs_that_were_ended_do_not_begin_again() -> None:
    reader, _ = reader_of(batch_of(1), batch_of(1, first=1))
    batches = BatchIterator(reader)
    assert (await anext(batches)).first == 0
    for _ in range(2):
        await batches.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(batches)
