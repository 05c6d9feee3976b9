"""Hot failover over real sockets: several sources send the same numbered messages, and each arrives once."""

import asyncio

import pytest

from stablecast.client import Context, Message, Receiver, Source
from stablecast.core.errors import MisuseError
from stablecast.core.machine import serial
from stablecast.core.protocol.events import HotNumbersMissed
from tests.support.network import Events, Network, drop, until


async def take(receiver: Receiver, count: int) -> list[int]:
    """Return the payloads of the next messages, which are their hot numbers."""
    found: list[int] = []
    while len(found) < count:
        message = await anext(receiver)
        assert message.hot_number == int(message.payload)
        found.append(int(message.payload))
    return found


async def begun(receiver: Receiver, count: int) -> None:
    """Wait until the receiver has a session with this number of sources that may deliver."""
    await until(lambda: sum(one._machine.window.next is not None for one in receiver._sessions.values()) == count)


async def send(source: Source, first: int, stop: int) -> None:
    for number in range(first, stop):
        await source.send(b"%d" % number, hot_number=number)
    await source.wait_stable_through(source.next_number - 1)


async def pair(net: Network) -> tuple[Context, Context, Source, Source]:
    """Two sources of one topic in contexts of their own, each with a store of its own."""
    one, other = await net.context(session_id=1), await net.context(session_id=2)
    first = await one.source("orders", stores=[await net.store("first")])
    second = await other.source("orders", stores=[await net.store("second")])
    return one, other, first, second


@pytest.mark.rows("M-004", "P-957")
async def test_each_number_comes_once(net: Network) -> None:
    """M-004, P-957: both sources send all numbers, at different times."""
    _, _, first, second = await pair(net)
    receiver = (await net.context()).receiver("orders", session_id=7, hot_failover=True)
    await begun(receiver, 2)
    await send(first, 0, 20)
    await send(second, 0, 40)
    await send(first, 20, 60)
    assert sorted(await take(receiver, 60)) == list(range(60))
    await send(second, 40, 61)
    assert await take(receiver, 1) == [60]


async def test_the_first_number_may_lie_behind_the_wrap_of_other_sources(net: Network) -> None:
    """Numbers have 32 bits. Two more sources are behind, and both bring those from before the wrap."""
    _, _, first, second = await pair(net)
    third = await (await net.context(session_id=3)).source("orders", stores=[await net.store("third")])
    receiver = (await net.context()).receiver("orders", session_id=7, hot_failover=True)
    await begun(receiver, 3)
    found: list[int] = []
    for source, numbers in (first, range(3)), (second, range(-2, 3)), (third, range(-3, 4)), (first, range(3, 5)):
        for number in numbers:
            await source.send(b"%d" % (number % 2**32), hot_number=number % 2**32)
        await source.wait_stable_through(source.next_number - 1)
        if not found:
            found += await take(receiver, 3)
    found += await take(receiver, 5)
    assert sorted(found) == [0, 1, 2, 3, 4, *range(2**32 - 3, 2**32)]


@pytest.mark.parametrize("size", [1, 200_000])
async def test_a_source_that_dies_is_replaced_without_a_gap(net: Network, size: int) -> None:
    """The other source goes on where the first stopped, also with messages that are cut into pieces."""
    one, _, first, second = await pair(net)
    receiver = (await net.context()).receiver("orders", session_id=7, hot_failover=True)
    await begun(receiver, 2)
    found: list[int | None] = []
    for number in range(10):
        if number < 6:
            await first.send(bytes(size), {"n": number}, hot_number=number)
        await second.send(bytes(size), {"n": number}, hot_number=number)
        if number == 5:
            await drop(one)
        message = await anext(receiver)
        assert len(message.payload) == size
        assert message.properties == {"n": number}
        found.append(message.hot_number)
    assert found == list(range(10))


@pytest.mark.rows("M-004", "P-957")
async def test_what_one_source_lost_comes_from_the_stores_of_the_other(net: Network) -> None:
    """A receiver that was away gets the rest of each number from the store that has it, and none twice."""
    one, _, first, second = await pair(net)
    before = await net.context()
    receiver = before.receiver("orders", session_id=7, hot_failover=True)
    await begun(receiver, 2)
    await send(first, 0, 10)
    await send(second, 0, 5)
    assert sorted(await take(receiver, 10)) == list(range(10))
    await before.close()
    await send(second, 5, 30)
    await send(first, 10, 15)
    await net.stop("first")
    await drop(one)
    events = Events()
    returned = (await net.context()).receiver("orders", session_id=7, hot_failover=True, on_event=events)
    found = await take(returned, 20)
    assert set(range(10, 30)) <= {*found, *await take(returned, 30 - min(found) - 20)}
    assert not events.of(HotNumbersMissed)


async def test_copies_are_acknowledged_only_after_the_application_has_one(net: Network) -> None:
    """The first source and its store are gone with a message that was delivered and not consumed: the copy comes."""
    one, _, first, second = await pair(net)
    before = await net.context()
    receiver = before.receiver("orders", session_id=7, hot_failover=True)
    await begun(receiver, 2)
    await send(first, 0, 1)
    await send(second, 0, 1)
    assert await take(receiver, 1) == [0]  # in hand, and never consumed
    await asyncio.sleep(0)
    await drop(before)
    await drop(one)
    await net.stop("first")
    returned = (await net.context()).receiver("orders", session_id=7, hot_failover=True)
    assert await take(returned, 1) == [0]


async def test_numbers_that_no_source_sent_are_reported(net: Network) -> None:
    _, _, first, second = await pair(net)
    events = Events()
    receiver = (await net.context()).receiver("orders", session_id=7, hot_failover=True, on_event=events)
    await begun(receiver, 2)
    for source in (first, second):
        await send(source, 0, 3)
        await send(source, 5, 8)
    assert sorted(await take(receiver, 6)) == [0, 1, 2, 5, 6, 7]
    await first.send(b"8", hot_number=8)
    await second.send(b"9", hot_number=9)
    assert sorted(await take(receiver, 2)) == [8, 9]
    missed = await events.first(HotNumbersMissed)
    assert (missed.first % 2**32, missed.last % 2**32) == (3, 4)
    assert len(events.of(HotNumbersMissed)) == 1


async def test_a_source_that_ended_is_not_waited_for(net: Network) -> None:
    """What it had not passed, and the others have, is missed."""
    one, _, first, second = await pair(net)
    events = Events()
    receiver = (await net.context()).receiver("orders", session_id=7, hot_failover=True, on_event=events)
    await begun(receiver, 2)
    await send(first, 0, 3)
    await send(second, 2, 3)
    assert await take(receiver, 3) == [0, 1, 2]
    await send(second, 5, 6)
    assert await take(receiver, 1) == [5]
    assert events.of(HotNumbersMissed) == []
    await one.close()
    missed = await events.first(HotNumbersMissed)
    assert (serial.wire(missed.first), serial.wire(missed.last)) == (3, 4)


async def test_a_callback_gets_each_number_once(net: Network) -> None:
    """`on_message`, and messages without a number, which all come."""
    _, _, first, second = await pair(net)
    found: list[Message] = []
    receiver = (await net.context()).receiver("orders", session_id=7, hot_failover=True, on_message=found.append)
    await begun(receiver, 2)
    for source in (first, second):
        await send(source, 0, 50)
        await source.send(b"plain")
    await until(lambda: len(found) == 52)
    assert sorted(message.hot_number for message in found if message.hot_number is not None) == list(range(50))
    assert [message.payload for message in found if message.hot_number is None] == [b"plain"] * 2


async def test_a_loop_that_is_left_and_begun_again_loses_nothing(net: Network) -> None:
    """The message in hand and those not handed over come in the next loop: batches and single messages."""
    _, _, first, second = await pair(net)
    receiver = (await net.context()).receiver("orders", session_id=7, hot_failover=True)
    await begun(receiver, 2)
    await send(first, 0, 30)
    await send(second, 0, 30)
    found: list[int] = []
    left: list[int] = []
    while len(found) < 20:
        async for message in receiver:
            found.append(int(message.payload))
            if len(found) % 3 == 0 and found[-1] not in left:
                left.append(found.pop())
                break
            if len(found) == 20:
                message.consumed()
                break
    async for batch in receiver.batches():
        found += map(int, batch.payloads())
        if len(found) >= 30:
            break
    assert found == list(range(30))


async def test_a_receiver_that_is_made_again_gets_no_later_copies(net: Network) -> None:
    """The slower source brings them after the receiver was closed and made again. One message was in hand."""
    _, _, first, second = await pair(net)
    context = await net.context()
    receiver = context.receiver("orders", session_id=7, hot_failover=True)
    await begun(receiver, 2)
    await send(first, 0, 5)
    assert await take(receiver, 4) == [0, 1, 2, 3]
    await receiver.close()
    again = context.receiver("orders", session_id=7, hot_failover=True)
    await send(second, 0, 7)
    assert sorted(await take(again, 4)) == [3, 4, 5, 6]


async def test_what_a_callback_consumed_before_it_failed_does_not_come_again(net: Network) -> None:
    """The receiver that is made again gets the message that failed and those behind it, from either source."""
    _, _, first, second = await pair(net)
    context = await net.context()
    consumed: list[int | None] = []
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: failures.append(report))

    def on_message(message: Message) -> None:
        if len(consumed) == 2:
            raise ValueError
        consumed.append(message.hot_number)

    receiver = context.receiver("orders", session_id=7, on_message=on_message, hot_failover=True)
    await begun(receiver, 2)
    await send(first, 0, 5)
    await until(lambda: failures)
    await receiver.close()
    again = context.receiver("orders", session_id=7, hot_failover=True)
    await send(second, 0, 7)
    assert sorted(await take(again, 5)) == [2, 3, 4, 5, 6]


async def test_misuse(net: Network) -> None:
    context = await net.context()
    with pytest.raises(MisuseError, match="acknowledges by itself"):
        context.receiver("orders", hot_failover=True, options={"ume_explicit_ack_only": 1, "ume_use_ack_batching": 0})
    source = await context.source("orders", stores=[await net.store()])
    for wrong in (-1, 2**32):
        with pytest.raises(ValueError, match="a hot number is from 0 to 4294967295"):
            await source.send(b"", hot_number=wrong)


async def test_what_was_not_consumed_is_not_missed_by_the_next_receiver(net: Network) -> None:
    """It was handed over as a part of a batch, and given back: no source has lost it."""
    source = await (await net.context(session_id=1)).source("orders", stores=[await net.store("first")])
    context, events = await net.context(session_id=7), Events()
    receiver = context.receiver("orders", hot_failover=True, on_event=events)
    await begun(receiver, 1)
    await send(source, 0, 10)
    assert await take(receiver, 3) == [0, 1, 2]
    await receiver.close()
    again = context.receiver("orders", hot_failover=True, on_event=events)
    await send(source, 10, 11)
    assert await take(again, 9) == list(range(2, 11))
    assert events.of(HotNumbersMissed) == []


async def test_a_source_that_only_an_earlier_receiver_met_holds_no_report_back(net: Network) -> None:
    one, _, first, second = await pair(net)
    context, events = await net.context(session_id=7), Events()
    receiver = context.receiver("orders", hot_failover=True)
    await begun(receiver, 2)
    await send(first, 0, 3)
    assert await take(receiver, 3) == [0, 1, 2]
    await receiver.close()
    await one.close()
    again = context.receiver("orders", hot_failover=True, on_event=events)
    await begun(again, 1)
    await send(second, 2, 4)
    await send(second, 5, 6)
    assert await take(again, 3) == [2, 3, 5]
    [missed] = events.of(HotNumbersMissed)
    assert (serial.wire(missed.first), serial.wire(missed.last)) == (4, 4)
