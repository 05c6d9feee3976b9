"""Acknowledging as people know it: automatic, `async with message`, by hand, `nack` with redelivery, dead letters."""

import asyncio
from pathlib import Path
from typing import Any
from unittest import mock

import attrs
import pytest

from stablecast.client import Closed, Context, MisuseError, NotProcessed, Receiver, Redelivery, Source, inbox
from stablecast.client import message as messages
from stablecast.client.batch import Batch
from stablecast.client.inbox import Inbox
from stablecast.client.redelivery import Redeliverer, why_unsettled
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import AckMode, Ordering, ReceiverConfig
from tests.adapters.client.test_inbox import batch_of
from tests.support.network import Network, drop, until

SOON = Redelivery(delay=0.01)


async def orders(net: Network, count: int, **arguments: Any) -> tuple[Source, Context, Receiver]:
    """Return a source that has sent stable messages 0, 1, ..., and a receiver of them with its context."""
    store = await net.store()
    source = await (await net.context(session_id=7)).source("orders", stores=[store])
    await source.send_many([b"%d" % number for number in range(count)])
    await source.wait_stable_through(count - 1)
    context = await net.context(session_id=9)
    return source, context, context.receiver("orders", **arguments)


async def after_a_crash(net: Network, context: Context, count: int) -> list[int]:
    """Crash the receiver's context; return the first numbers that its next run gets."""
    await asyncio.sleep(0.3)  # All that may be acknowledged is acknowledged by now.
    await drop(context)
    receiver = (await net.context(session_id=9)).receiver("orders")
    return [(await anext(receiver)).number for _ in range(count)]


async def test_a_block_acknowledges_when_it_ends(net: Network) -> None:
    _, context, receiver = await orders(net, 3)
    for number in range(2):
        async with await anext(receiver) as message:
            assert (message.number, message.attempt) == (number, 1)
    assert await after_a_crash(net, context, 1) == [2]


async def test_a_message_that_is_not_acknowledged_comes_again_and_others_go_on(net: Network) -> None:
    _, context, receiver = await orders(net, 5, redelivery=SOON)
    found = []
    async for message in receiver:
        found.append((message.number, message.attempt))
        if message.number == 1 and message.attempt < 3:
            message.nack()
        if len(found) == 7:
            break
    assert sorted(found) == [(0, 1), (1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (4, 1)]
    assert [number for number, attempt in found if attempt == 1] == [0, 1, 2, 3, 4]
    await drop(context)


async def test_a_crash_delivers_a_message_again_that_was_not_acknowledged(net: Network) -> None:
    """Later messages were consumed, but no store may count the one in between as read."""
    _, context, receiver = await orders(net, 5)
    for number in range(5):
        message = await anext(receiver)
        if number == 1:
            message.nack(delay=3600)
        else:
            message.consumed()
    assert await after_a_crash(net, context, 4) == [1, 2, 3, 4]


async def test_messages_are_acknowledged_by_hand_in_any_order(net: Network) -> None:
    """Several are in work at a time. The stores learn of the first ones that are all done."""
    _, context, receiver = await orders(net, 6, auto_ack=False)
    work = [await anext(receiver) for _ in range(5)]
    for number in (4, 0, 1, 3):
        work[number].ack()
    work[4].ack()
    assert await after_a_crash(net, context, 2) == [2, 3]
    with pytest.raises(MisuseError, match=r"message 4 of 'orders' was consumed before"):
        work[4].nack()


async def test_messages_that_are_not_settled_come_again_after_closing(net: Network) -> None:
    _, context, receiver = await orders(net, 4, auto_ack=False)
    first, second = await anext(receiver), await anext(receiver)
    second.ack()
    await context.close()
    first.ack()
    again = (await net.context(session_id=9)).receiver("orders")
    assert (await anext(again)).number == 0


async def test_a_block_may_refuse_its_message(net: Network) -> None:
    """The end of the block does not acknowledge it. A delay of 0 is not that of the policy."""
    _, context, receiver = await orders(net, 1, redelivery=Redelivery(delay=3600))
    for attempt in range(2):
        async with await anext(receiver) as message:
            message.nack(3600 * attempt)
        assert (message.number, message.attempt) == (0, attempt + 2)
    assert await after_a_crash(net, context, 1) == [0]


async def test_a_failed_block_without_a_policy_raises_and_the_message_comes_again(net: Network) -> None:
    _, _, receiver = await orders(net, 2)

    async def process() -> None:
        async with await anext(receiver) as message:
            if message.number == 0:
                raise KeyError("mine")

    with pytest.raises(KeyError):
        await process()
    assert [((await anext(receiver)).number) for _ in range(2)] in ([0, 1], [1, 0])


async def test_a_cancelled_block_gives_its_message_back_without_counting(net: Network) -> None:
    _, _, receiver = await orders(net, 1, redelivery=Redelivery(delay=3600, attempts=1))

    async def process() -> None:
        async with await anext(receiver):
            entered.set()
            await asyncio.Event().wait()

    for _ in range(3):
        entered = asyncio.Event()
        working = asyncio.create_task(process())
        await entered.wait()
        working.cancel()
        await asyncio.wait([working])
    message = await anext(receiver)
    assert (message.number, message.attempt) == (0, 1)


async def test_a_message_that_fails_goes_to_the_dead_letters_in_the_end(
    net: Network, caplog: pytest.LogCaptureFixture
) -> None:
    """Six lines of an application: a bound on attempts, and dead letters."""
    store = await net.store("dead")
    aside = await (await net.context(session_id=3)).source("orders.dead", stores=[store])
    policy = Redelivery(delay=0.001, attempts=3, dead_letters=aside)
    _, context, receiver = await orders(net, 3, redelivery=policy)
    tried, seen = 0, []
    async for message in receiver:
        async with message:
            if message.number == 1:
                tried += 1
                raise ValueError(f"try {message.attempt}")
        seen.append(message.number)
        if tried == 3 and len(seen) == 5:
            break
        if tried == 3:
            break
    letter = await anext((await net.context()).receiver("orders.dead"))
    assert tried == 3
    assert letter.payload == b"1"
    assert letter.properties == {
        "error": "ValueError: try 3",
        "topic": "orders",
        "key": message.key,
        "attempts": 3,
    }
    assert caplog.text.count("was not processed in attempt") == 3
    await until(lambda: not receiver.inbox.held)
    assert not receiver._delivery.redeliverer._refused
    await receiver.close()
    source = await context.source("other", stores=[store])
    assert source.next_number == 0


async def test_a_callback_that_raises_is_tried_again(net: Network) -> None:
    done = asyncio.Event()
    calls = []

    def on_message(message: messages.Message) -> None:
        calls.append((message.number, message.attempt))
        if message.attempt == 1:
            raise ValueError("mine")
        if len(calls) == 6:
            done.set()

    _, context, _ = await orders(net, 3, on_message=on_message, redelivery=SOON)
    await done.wait()
    assert sorted(calls) == [(number, attempt) for number in range(3) for attempt in (1, 2)]
    await context.close()


async def test_a_callback_settles_by_hand(net: Network) -> None:
    held: list[messages.Message] = []
    _, context, _ = await orders(net, 3, on_message=held.append, auto_ack=False)
    await until(lambda: len(held) == 3)
    held[2].ack()
    held[0].ack()
    assert await after_a_crash(net, context, 2) == [1, 2]


async def test_reading_ends_after_the_last_attempt_without_dead_letters(net: Network) -> None:
    _, context, receiver = await orders(net, 1, redelivery=Redelivery(attempts=1))
    (await anext(receiver)).nack()
    with pytest.raises(NotProcessed, match=r"message 0 of 'orders' was not processed in 1 attempts; give Redelivery"):
        await anext(receiver)
    assert await after_a_crash(net, context, 1) == [0]


async def test_dead_letters_that_are_closed_keep_the_message(net: Network) -> None:
    aside = await (await net.context()).source("orders.dead")
    await aside.close()
    _, context, receiver = await orders(net, 1, redelivery=Redelivery(attempts=1, dead_letters=aside))
    reports: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report["exception"]))
    (await anext(receiver)).nack()
    with pytest.raises(NotProcessed, match=r"cannot go to the dead letters 'orders\.dead': source"):
        await anext(receiver)
    assert [type(error) for error in reports] == [Closed]
    assert await after_a_crash(net, context, 1) == [0]


async def test_a_message_is_consumed_when_its_dead_letter_is_stable_and_no_sooner(net: Network) -> None:
    sent, stable = asyncio.Event(), asyncio.Event()

    async def send(*_: object) -> mock.Mock:
        sent.set()
        return mock.Mock(stable=stable.wait)

    policy = Redelivery(attempts=1, dead_letters=mock.Mock(send=send))
    _, _, receiver = await orders(net, 1, auto_ack=False, redelivery=policy)
    (await anext(receiver)).nack()
    await sent.wait()
    [burial] = receiver._delivery.redeliverer._burials
    done, _ = await asyncio.wait([burial], timeout=0)
    await asyncio.sleep(0)
    assert not done
    assert not burial.done()
    assert list(receiver.inbox.unconsumed())
    stable.set()
    await burial
    assert not list(receiver.inbox.unconsumed())


async def test_a_receiver_that_is_closed_delivers_and_buries_nothing(net: Network) -> None:
    """What was not settled stays unacknowledged, and comes to its next run alone."""
    sending = asyncio.Event()

    async def send(*_: object) -> None:
        sending.set()
        await asyncio.Event().wait()

    aside = mock.Mock(send=send)
    policy = Redelivery(attempts=1, dead_letters=aside)
    _, context, receiver = await orders(net, 2, auto_ack=False, redelivery=policy)
    given, buried = await anext(receiver), await anext(receiver)
    buried.nack()
    await sending.wait()
    redeliverer = receiver._delivery.redeliverer
    [burial] = redeliverer._burials
    await receiver.close()
    redeliverer.give_back(given._batch)
    assert burial.cancelling() or burial.cancelled()
    assert receiver.inbox.next_batch() is None
    assert await after_a_crash(net, context, 2) == [0, 1]


async def test_what_is_given_back_comes_once_and_not_after_the_end() -> None:
    given: list[Batch] = []
    taken = Inbox[Batch](lambda: None)
    redeliverer = Redeliverer(taken, given.append, None, "", lambda *_: None, reads=False)
    taken.put(batch_of(3))
    batch = taken.next_batch()
    assert batch is not None
    first, second, third = (redeliverer.take(batch, index) for index in range(3))
    for _ in range(2):
        redeliverer.give_back(first)
    assert (given, redeliverer.holds(first)) == ([first], False)
    redeliverer.refuse(second, 0, None)
    await until(lambda: given == [first, second])
    assert redeliverer._timers == {}
    again = redeliverer.take(second, 0)
    redeliverer.refuse(again, 3600, None)
    [timer] = redeliverer._timers.values()
    redeliverer.close()
    assert timer.cancelled()
    redeliverer.give_back(third)
    assert given == [first, second]
    with pytest.raises(MisuseError, match="by no means"):
        Redeliverer(taken, given.append, None, "by no means", lambda *_: None).take(batch_of(1), 0)


async def test_a_source_that_starts_again_meets_messages_in_work(net: Network) -> None:
    """The next life's session answers for them."""
    source, context, receiver = await orders(net, 4, auto_ack=False)
    work = [await anext(receiver) for _ in range(4)]
    work[1].nack(delay=0.05)
    await source.close()
    store = net.stores["store"].address
    again = await (await net.context(session_id=7)).source("orders", stores=[store])
    await (await again.send(b"4")).stable()
    fresh = [await anext(receiver) for _ in range(2)]
    assert sorted((one.number, one.attempt) for one in fresh) == [(1, 2), (4, 1)]
    for one in (work[0], work[2], *fresh):
        one.ack()
    assert await after_a_crash(net, context, 1) == [3]


@pytest.mark.parametrize("call", ["ack", "nack", "consumed"])
async def test_a_message_is_settled_in_its_own_thread_only(net: Network, call: str) -> None:
    """Elsewhere nothing happens to it."""
    _, _, receiver = await orders(net, 1, redelivery=SOON)
    message = await anext(receiver)
    with pytest.raises(MisuseError, match="in another thread"):
        await asyncio.to_thread(getattr(message, call))
    message.nack()
    assert (await anext(receiver)).attempt == 2


async def test_ways_to_settle_wrongly(net: Network) -> None:
    _, _, receiver = await orders(net, 5, redelivery=Redelivery(delay=3600))
    first, second = await anext(receiver), await anext(receiver)
    with pytest.raises(MisuseError, match=r"message 0 .* was consumed before, when the next one was asked for"):
        first.nack()
    second.nack()
    for settle in (second.nack, second.ack):
        with pytest.raises(MisuseError, match="message 1 of 'orders' comes again later: settle it then"):
            settle()
    async with await anext(receiver) as third:
        third.ack()
        third.ack()
    async with await anext(receiver) as fourth:
        with pytest.raises(MisuseError, match="keep the message"):
            fourth.ack_handle()
    with pytest.raises(MisuseError, match="auto_ack=False: settle its messages one by one"):
        await anext((await net.context()).receiver("orders", auto_ack=False).batches())
    for options, text in (({"ume_explicit_ack_only": 1}, "ume_explicit_ack_only"), ({}, "each hot number once")):
        with pytest.raises(MisuseError, match=text):
            (await net.context()).receiver("orders", auto_ack=False, options=options, hot_failover=not options)
    for wrong in ({"delay": -1}, {"attempts": 0}):
        with pytest.raises(ValueError, match="must be >="):
            Redelivery(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "settled"),
    [
        ({}, True),
        ({"ordering": Ordering.ARRIVAL}, True),
        ({"repairs": Repair.ALL & ~Repair.PREFIX}, True),
        ({"repairs": Repair.ALL & ~Repair.PREFIX, "ordering": Ordering.ARRIVAL}, False),
        ({"repairs": Repair.ALL & ~Repair.PREFIX, "ack_mode": AckMode.IMMEDIATE}, False),
        ({"ack_mode": AckMode.EXPLICIT}, False),
    ],
)
def test_messages_are_settled_where_no_acknowledgement_passes_over_one(changes: dict[str, Any], settled: bool) -> None:
    config = attrs.evolve(ReceiverConfig("orders", 1, "me:1"), **changes)
    assert (why_unsettled(config) == "") is settled


async def test_many_messages_in_work_hold_the_stream(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "MAX_QUEUED_BYTES", 4000)
    _, _, receiver = await orders(net, 20, auto_ack=False)
    work = [await anext(receiver) for _ in range(8)]
    assert receiver.inbox.full
    for message in work:
        message.ack()
    for _ in range(12):
        (await anext(receiver)).ack()
    assert not receiver.inbox.full


def test_the_page_has_these_names() -> None:
    text = (Path(__file__).parents[3] / "spec/client.md").read_text(encoding="utf-8")
    for name in ("auto_ack=False", "Redelivery(", "nack", "async with message", "dead_letters"):
        assert name in text
