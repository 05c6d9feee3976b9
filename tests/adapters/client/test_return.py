"""Receivers and sources that leave, crash and return; stores that do: nothing is missing, little comes twice."""

from collections.abc import Callable

import attrs
import pytest

from stablecast.client import Context, Receiver
from stablecast.config.option_kinds import Value
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.events import (
    RegistrationComplete,
    StoreUnresponsive,
)
from stablecast.core.protocol.messages import Keepalive, Role
from stablecast.core.receiver import ReceiverState
from stablecast.core.subscription import subscription
from tests.support.network import Events, Network, drop, until
from tests.support.traffic import send, source_of, take


async def test_the_message_in_hand_comes_again_and_earlier_ones_do_not(net: Network) -> None:
    _, source = await source_of(net, "a")
    await send(source, 10)
    context = await net.context(session_id=1)
    async with context.receiver("orders") as receiver:
        async for message in receiver:
            if message.sequence_number == 3:
                break
    again = context.receiver("orders")
    assert await take(again, 7) == list(range(3, 10))


async def test_what_an_earlier_life_delivered_still_waits_for_the_application(net: Network) -> None:
    """The session that delivered it is over, and the one with the next life answers for it."""
    owner, source = await source_of(net, "a")
    await send(source, 5)
    receiver = (await net.context(session_id=1)).receiver("orders")
    await until(lambda: receiver.unconsumed == 5)
    await owner.close()
    _, source = await source_of(net, "a")
    await send(source, 3)
    await until(lambda: len(receiver.inbox) == 2)
    await until(lambda: all(one.incarnation == source.life for one in receiver.every_session))
    assert receiver.unconsumed == 8
    assert await take(receiver, 8) == list(range(8))
    assert receiver.unconsumed == 0


async def test_consumed_and_break(net: Network) -> None:
    _, source = await source_of(net, "a")
    await send(source, 10)
    async with Context(resolver=[net.relays[0].address], session_id=1) as context:
        async for message in context.receiver("orders"):
            if message.sequence_number == 3:
                message.consumed()
                break
    again = (await net.context(session_id=1)).receiver("orders")
    assert await take(again, 6) == list(range(4, 10))


async def test_a_receiver_that_took_nothing_gets_everything_again(net: Network) -> None:
    _, source = await source_of(net, "a")
    await send(source, 3)
    context = await net.context(session_id=1)
    async with context.receiver("orders") as receiver:
        await until(lambda: len(receiver.inbox))
    assert [message async for message in receiver] == []
    again = context.receiver("orders")
    assert await take(again, 3) == [0, 1, 2]


def mute(context: Context) -> Callable[[], None]:
    """Lose what a context says to stores and sources, until the result is called. Streams still reach it."""
    send_, context.pool.send = context.pool.send, lambda *_: None  # type: ignore[method-assign]

    def speak() -> None:
        context.pool.send = send_  # type: ignore[method-assign]

    return speak


async def registered(context: Context, receiver: Receiver) -> None:
    """Wait until a receiver delivers what comes next."""
    await until(lambda: any(session.begun for session in receiver._sessions.values()))


@pytest.mark.parametrize("begins", [None, 0])
async def test_a_pattern_that_is_made_again_goes_on_unless_it_says_where_to_begin(
    net: Network, begins: int | None
) -> None:
    """No store heard what the first one consumed last."""
    _, source = await source_of(net, "a")
    context = await net.context(session_id=1)
    first = context.receiver(pattern="^orders$")
    await send(source, 1)
    assert await take(first, 1) == [0]
    speak = mute(context)
    await send(source, 1)
    assert await take(first, 1) == [1]
    await first.close()
    speak()
    await send(source, 1)
    start_at = None if begins is None else lambda _topic, _question: begins
    second = context.receiver(pattern="^orders$", start_at=start_at)
    expected = [0, 1, 2] if begins == 0 else [2]
    assert await take(second, len(expected)) == expected


async def test_a_receiver_that_is_made_again_gets_each_message_once(net: Network) -> None:
    """No store heard what the first one consumed. The program is the same run."""
    _, source = await source_of(net, "a")
    context = await net.context(session_id=1)
    receiver = context.receiver("orders")
    await registered(context, receiver)
    speak = mute(context)
    await send(source, 10)
    assert await take(receiver, 7) == list(range(7))
    last = await anext(receiver)
    await receiver.close()
    last.consumed()  # It was in hand when the receiver was closed.
    speak()
    again = context.receiver("orders")
    assert await take(again, 2) == [8, 9]


@pytest.mark.parametrize("how", ["another", "explicit", "start_at", "deregister"])
async def test_another_receiver_of_the_topic_gets_all_messages(net: Network, how: str) -> None:
    """It has another session id, acknowledges explicitly, names its first number, or the stores forgot the first."""
    _, source = await source_of(net, "a")
    await send(source, 3)
    context = await net.context(session_id=1)
    options: dict[str, Value] = {"ume_explicit_ack_only": 1} if how == "explicit" else {}
    receiver = context.receiver("orders", options=options)
    await registered(context, receiver)
    assert await take(receiver, 3) == [0, 1, 2]
    if how == "deregister":
        await receiver.deregister()
    await receiver.close()
    if how == "another":
        again = context.receiver("orders", session_id=2)
    elif how == "start_at":
        again = context.receiver("orders", start_at=lambda _: 0)
    else:
        again = context.receiver("orders", options=options)
    assert await take(again, 3) == [0, 1, 2]


async def test_a_receiver_crashes_and_returns(net: Network) -> None:
    """Delivery is at least once: nothing is missing, what was not acknowledged comes again."""
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 100)
    context = await net.context(session_id=1)
    assert await take(context.receiver("orders"), 60) == list(range(60))
    await drop(context)
    await send(source, 50)
    again = (await net.context(session_id=1)).receiver("orders")
    first = (await anext(again)).sequence_number
    assert 0 <= first <= 60
    rest = [(await anext(again)).sequence_number for _ in range(150 - first - 1)]
    assert [first, *rest] == list(range(first, 150))


async def test_a_source_restarts_while_its_receiver_runs(net: Network) -> None:
    context, source = await source_of(net, "a", "b", "c")
    events = Events()
    receiver = (await net.context(session_id=1)).receiver("orders", on_event=events)
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5))
    for life in range(1, 4):
        await context.close()
        context, source = await source_of(net, "a", "b", "c")
        assert source.next_number == 5 * life
        await send(source, 5)
        assert await take(receiver, 5) == list(range(5 * life, 5 * life + 5))
    await events.first(RegistrationComplete, 4)


async def test_a_source_crashes_and_returns_at_another_port(net: Network) -> None:
    context, source = await source_of(net, "a")
    receiver = (await net.context(session_id=1)).receiver("orders")
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5))
    await drop(context)
    context, source = await source_of(net, "a")
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5, 10))


async def test_a_new_life_waits_until_the_old_one_s_messages_are_consumed(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message in hand when the source restarts is delivered once."""
    monkeypatch.setattr(subscription, "DRAIN_NS", 3600 * SECOND)
    context, source = await source_of(net, "a")
    receiver = (await net.context(session_id=1)).receiver("orders")
    await send(source, 5)
    messages = [await anext(receiver) for _ in range(5)]
    await context.close()
    await until(lambda: receiver._finished)
    _, source = await source_of(net, "a")
    await send(source, 5)
    await until(lambda: receiver.subscription.plans)
    assert not receiver._joiners
    messages[-1].consumed()
    assert not receiver._finished
    assert await take(receiver, 5) == list(range(5, 10))


async def test_a_slow_application_does_not_keep_a_new_life_out(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the drain time the new session answers for what waits and what is in hand: each message comes once."""
    monkeypatch.setattr(subscription, "DRAIN_NS", 0)
    context, source = await source_of(net, "a")
    receiver = (await net.context(session_id=1)).receiver("orders")
    await send(source, 3)
    first = await anext(receiver)
    await context.close()
    await until(lambda: receiver._finished)
    _, source = await source_of(net, "a")
    await send(source, 3)
    await until(lambda: receiver._sessions)
    first.consumed()
    numbers: list[int] = []
    while not numbers or numbers[-1] < 5:
        numbers.append((await anext(receiver)).sequence_number)
    assert numbers == [1, 2, 3, 4, 5]
    assert not receiver._finished


async def test_sessions_that_are_never_consumed_are_given_up(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "MAX_FINISHED", 1)
    monkeypatch.setattr(subscription, "DRAIN_NS", 0)
    receiver = (await net.context(session_id=1)).receiver("orders")
    lives: list[int] = []
    for _ in range(3):
        context, source = await source_of(net, "a")
        await send(source, 1)
        lives.append(source.config.incarnation)
        await until(lambda: len(receiver.inbox) >= len(lives))
        await context.close()
        await until(lambda: not receiver._sessions)
    assert len(receiver._finished) == 1


async def test_messages_of_a_session_that_was_given_up_come_once(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for the application while the session is closed, and are consumed before the next one begins."""
    monkeypatch.setattr(subscription, "MAX_FINISHED", 0)
    context, source = await source_of(net, "a")
    receiver = (await net.context(session_id=1)).receiver("orders")
    await send(source, 10)
    assert await take(receiver, 5) == list(range(5))
    await drop(context)
    await until(lambda: not receiver._sessions)
    assert not receiver._finished
    assert await take(receiver, 5) == list(range(5, 10))
    _, source = await source_of(net, "a")
    await send(source, 3)
    assert await take(receiver, 3) == list(range(10, 13))


async def test_a_store_restarts(net: Network) -> None:
    events = Events()
    _, source = await source_of(net, "a")
    receiver = (await net.context(session_id=1)).receiver("orders", on_event=events)
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5))
    address = await net.stop("a")
    await events.first(StoreUnresponsive)
    await net.store("a", listen=address)
    await source.registered()
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5, 10))


async def test_one_of_three_stores_is_down(net: Network) -> None:
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 20)
    await net.stop("b")
    receiver = (await net.context(session_id=1)).receiver("orders")
    await send(source, 20)
    assert await take(receiver, 40) == list(range(40))


@pytest.mark.rows("P-028", "P-411")
async def test_a_streaming_source(net: Network) -> None:
    """From now on; late join is off."""
    events = Events()
    context = await net.context()
    source = await context.source("orders")
    receiver = (await net.context()).receiver("orders", on_event=events)
    await until(lambda: receiver._sessions)
    await source.send(b"0")
    assert await take(receiver, 1) == [0]


async def test_a_source_leaves_while_a_receiver_recovers(net: Network) -> None:
    """The stores have what is missing, and its session goes on to ask for it."""
    context, source = await source_of(net, "a", "b", "c", options={"ume_flight_size": 10_000})
    await send(source, 5000)
    receiver = (await net.context(session_id=1)).receiver("orders")
    numbers = await take(receiver, 10)
    assert next(iter(receiver._sessions.values())).recovering
    await context.close()
    numbers += await take(receiver, 4990)
    assert numbers == list(range(5000))
    assert not receiver._finished


@pytest.mark.no_cover
async def test_a_new_life_ends_the_recovery_of_the_old_one(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new session delivers all that the old one still gets."""
    monkeypatch.setattr(subscription, "DRAIN_NS", 0)
    context, source = await source_of(net, "a", options={"ume_flight_size": 10_000})
    await send(source, 3000)
    receiver = (await net.context(session_id=1)).receiver(
        "orders", options={"retransmit_request_outstanding_maximum": 1}
    )
    numbers = await take(receiver, 10)
    await context.close()
    await until(lambda: receiver._finished)
    [old] = receiver._finished
    assert old.recovering
    await source_of(net, "a")
    await until(lambda: receiver._sessions)
    assert (old.recovering, receiver._finished) == (False, [])
    while numbers[-1] < 2999:
        numbers += await take(receiver, 1)
    assert numbers == list(range(3000))


async def test_an_ended_session_is_still_told(net: Network) -> None:
    """Keepalives keep its registrations alive, so that late consumption is acknowledged."""
    context, source = await source_of(net, "a")
    receiver = (await net.context(session_id=1)).receiver("orders")
    await send(source, 2)
    await anext(receiver)
    await context.close()
    await until(lambda: receiver._finished)
    session = receiver._finished[0]
    heard: list[object] = []
    session.on_message = heard.append  # type: ignore[method-assign, assignment]
    message = Keepalive(Role.STORE, session.incarnation, 1, False, 0)
    receiver.on_control(message)
    receiver.on_control(attrs.evolve(message, incarnation=session.incarnation + 1))
    assert heard == [message]


@pytest.mark.rows("P-411", "M-003")
async def test_a_streaming_source_that_offers_late_join(net: Network) -> None:
    """Earlier messages come from its copies, and those that it sends meanwhile in its turn."""
    context = await net.context()
    source = await context.source("orders", options={"late_join": 1})
    source.try_send(b"0")
    source.try_send(b"1")
    receiver = (await net.context()).receiver("orders")
    await until(lambda: receiver._sessions)
    source.try_send(b"2")
    assert await take(receiver, 3) == [0, 1, 2]
    [session] = receiver._sessions.values()
    assert session._machine.contact.due is None
    late = (await net.context()).receiver("orders", options={"use_late_join": 0})
    await until(lambda: late._sessions)
    [session] = late._sessions.values()
    await until(lambda: session._machine.state is ReceiverState.ACTIVE)
    source.try_send(b"3")
    assert await take(late, 1) == [3]
