"""Sources against real stores: registration, stability, what stores ask for."""

import asyncio
from typing import Any

import pytest

from stablecast.client import (
    Closed,
    Context,
    NotRegistered,
    RegistrationFailed,
)
from stablecast.config.options import Value
from stablecast.core.protocol.effects import Resend
from stablecast.core.protocol.events import (
    Event,
    Overtaken,
    QuorumLost,
    RegistrationComplete,
    RegistrationError,
    RegistrationFlag,
    RegistrationSuccess,
    Stable,
    StableFlag,
    StoreUnresponsive,
)
from stablecast.core.protocol.inputs import Sent
from stablecast.core.protocol.request_window import MAX_REQUEST_MESSAGES
from stablecast.core.source.outbox import TURN_MESSAGES
from stablecast.transports import codec
from tests.support.network import LOCAL, Events, Network, until, unused_port
from tests.support.retransmissions import encode_recovered

ENOUGH = StableFlag.STABLE


async def test_a_message_is_sent_and_becomes_stable(net: Network) -> None:
    events = Events()
    store = await net.store()
    context = await net.context()
    source = await context.source("orders", stores=[store], on_event=events)
    assert source.next_number == 0
    sent = await source.send(b"one")
    assert (sent.number, sent.sequence_number) == (0, 0)
    await sent.stable()
    assert source.stable_through == 0
    await sent.stable()
    success, complete = events.of(RegistrationSuccess)[0], events.of(RegistrationComplete)[0]
    assert (success.store, success.number, success.flags) == (store, -1, RegistrationFlag.NONE)
    assert (complete.number, complete.flags) == (0, RegistrationFlag.NONE)
    assert [event for event in events.of(Stable) if event.flags & ENOUGH][-1].last == 0


async def test_a_quorum_of_stores_will_do(net: Network) -> None:
    """One of three is down from the beginning."""
    events = Events()
    stores = [await net.store("a"), await net.store("b"), f"{LOCAL}:{unused_port()}"]
    context = await net.context()
    options: dict[str, Value] = {"ume_store_activity_timeout": 600}
    source = await context.source("orders", stores=stores, on_event=events, options=options)
    assert events.of(RegistrationComplete)[0].flags == RegistrationFlag.QUORUM
    assert events.of(StoreUnresponsive) == []
    told = await events.first(StoreUnresponsive)
    assert told.text == f"store 2 [{stores[2]}] unresponsive - no registration response."
    last = await source.send_many([b"x"] * 1000)
    assert last == 999
    await source.wait_stable_through(999)
    assert source.stable_through == 999


async def test_too_few_stores_in_time(net: Network) -> None:
    context = await net.context()
    stores = [await net.store("a"), f"{LOCAL}:{unused_port()}", f"{LOCAL}:{unused_port()}"]
    with pytest.raises(RegistrationFailed) as raised:
        await context.source("orders", stores=stores, within=0.7)
    text = str(raised.value)
    assert text.startswith("source 'orders' is not registered with enough stores after 0.7 s: store ")
    assert all(store in text for store in stores[1:])
    assert not context._sources


async def test_no_store_answers(net: Network) -> None:
    context = await net.context()
    with pytest.raises(RegistrationFailed, match=r"enough stores after 0 s: no store answered; start the stores"):
        await context.source("orders", stores=[f"{LOCAL}:{unused_port()}"], within=0)


async def test_a_refusal_is_told(net: Network) -> None:
    """T6: the RegID has a holder that is alive."""
    events = Events()
    store = await net.store()
    one, two = await net.context(), await net.context()
    holder = await one.source("orders", stores=[f"{store}:1000"])
    other = await two.source("orders", stores=[f"{store}:1000"], wait=False, on_event=events)
    refusal = await events.first(RegistrationError)
    assert (refusal.store_index, refusal.store) == (0, store)
    with pytest.raises(RegistrationFailed, match=refusal.text):
        await other.registered(0)
    with pytest.raises(NotRegistered):
        other.try_send(b"x")
    await holder.close()
    await other.registered()
    assert other.try_send(b"x") == 0


@pytest.mark.rows("P-336")
async def test_sending_stops_when_the_stores_are_gone_and_goes_on(net: Network) -> None:
    """The error has a class and text of its own; `registered` waits until sending is possible again."""
    events = Events()
    store = await net.store()
    context = await net.context()
    source = await context.source("orders", stores=[store], on_event=events)
    await (await source.send(b"one")).stable()
    await net.stop()
    await events.first(QuorumLost)
    with pytest.raises(NotRegistered, match=r"^not currently registered with enough stores$"):
        await source.send(b"two", wait=False)
    with pytest.raises(NotRegistered):
        await source.room()
    texts = [event.text for event in events.of(StoreUnresponsive)]
    assert texts == [f"store 0 [{store}] unresponsive{end}" for end in ("", " - no registration response.")]
    await net.store(listen=store)
    await source.registered()
    sent = await source.send(b"two")
    assert sent.number == 1
    await sent.stable()


async def test_a_source_that_is_registered_again_takes_nothing_for_stable(net: Network) -> None:
    """What was in flight when the quorum was lost is in flight still."""
    events, through = Events(), list[int]()
    store = await net.store()
    source = await (await net.context()).source("orders", stores=[store], on_event=events)
    await (await source.send(b"one")).stable()
    await net.stop()
    two = await source.send(b"two")
    await events.first(QuorumLost)

    def note(event: Event) -> None:
        if isinstance(event, RegistrationComplete):
            through.append(source.stable_through)

    source._on_event = note
    await net.store(listen=store)
    await two.stable()
    assert through == [0]


async def test_a_new_life_goes_on_where_the_last_one_ended(net: Network) -> None:
    store = await net.store()
    for life in range(3):
        async with Context(session_id=7) as context:
            source = await context.source("orders", stores=[store])
            assert source.next_number == 10 * life
            await source.send_many([b"x"] * 10)
            await source.wait_stable_through(10 * life + 9)


@pytest.mark.rows("P-028")
async def test_a_streaming_source_needs_no_store(net: Network) -> None:
    context = await net.context()
    source = await context.source("orders")
    await source.send(b"one")
    assert await source.send_many([b"x"] * (2 * TURN_MESSAGES)) == 2 * TURN_MESSAGES


async def test_send_many_lets_others_run(net: Network) -> None:
    turns = 0
    done = asyncio.Event()

    async def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await asyncio.sleep(0)

    context = await net.context()
    source = await context.source("orders")
    counting = asyncio.create_task(count())
    await source.send_many([b"x"] * (10 * TURN_MESSAGES))
    done.set()
    await counting
    assert turns >= 10
    assert await source.send_many([]) is None


# Requests of the stores.


async def test_a_request_is_answered_from_what_is_retained(net: Network) -> None:
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()])
    await net.stop()
    await source.send_many([b"%d" % number for number in range(10)])
    source.flush()
    asked: list[tuple[str, bytes]] = []
    context.pool.send = lambda to, octets: asked.append((to, octets))  # type: ignore[method-assign, assignment]
    source._perform(Resend("127.0.0.1:9", source.config.incarnation, 3, 4))
    source._perform(Resend("127.0.0.1:9", source.config.incarnation, 50, 60))
    life = source.config.incarnation
    wanted = b"".join(encode_recovered(codec.Recovered(life, life, number, b"%d" % number)) for number in (3, 4))
    assert asked == [("127.0.0.1:9", wanted)]


async def test_an_answer_is_bounded(net: Network) -> None:
    context = await net.context()
    options = {"ume_flight_size": 2 * MAX_REQUEST_MESSAGES}
    source = await context.source("orders", stores=[await net.store()], options=options)
    await net.stop()
    await source.send_many([b""] * (MAX_REQUEST_MESSAGES + 10))
    source.flush()
    asked: list[bytes] = []
    context.pool.send = lambda _, octets: asked.append(octets)  # type: ignore[method-assign, assignment]
    life = source.config.incarnation
    source._perform(Resend("127.0.0.1:9", life, 0, MAX_REQUEST_MESSAGES + 9))
    one = encode_recovered(codec.Recovered(life, life, 0, b""))
    assert len(asked[0]) == MAX_REQUEST_MESSAGES * len(one)


async def test_an_answer_is_bounded_in_bytes(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is never empty: the peer asks again for the rest."""
    monkeypatch.setattr("stablecast.client.sender.MAX_RESEND_BYTES", 1000)
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()])
    await net.stop()
    await source.send_many([bytes(400)] * 10)
    source.flush()
    asked: list[bytes] = []
    context.pool.send = lambda _, octets: asked.append(octets)  # type: ignore[method-assign, assignment]
    for first in (0, 3, 9):
        source._perform(Resend("127.0.0.1:9", source.config.incarnation, first, 9))
    assert [len(answer) // 436 for answer in asked] == [3, 3, 1]
    assert all(len(answer) % 436 == 0 for answer in asked)


async def test_a_store_that_was_away_recovers_from_the_source(net: Network) -> None:
    """Two of three hold the messages; the third one comes back, and another one may leave."""
    context = await net.context()
    stores = [await net.store(name) for name in "abc"]
    source = await context.source(
        "orders", stores=stores, options={"retransmit_retention_size_threshold": 1 << 20}, session_id=3
    )
    await source.send_many([b"x"] * 50)
    await net.stop("c")
    last = await source.send_many([b"y"] * 50)
    await source.wait_stable_through(99)
    await net.store("c", listen=stores[2])
    events = Events()
    source._on_event = events
    while not [event for event in events.of(Stable) if event.store_index == 2 and event.last == last]:
        await events.first(Stable, len(events.of(Stable)) + 1)


async def test_a_source_that_another_life_replaced_says_so(net: Network) -> None:
    """A waiting caller learns that it waits in vain; a new source is needed (formal design, 7.3)."""
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()])
    waiting = asyncio.create_task(source.wait_stable(7))
    await asyncio.sleep(0)
    source._on_notify(Overtaken())
    with pytest.raises(Closed, match="another life of source 'orders'"):
        await waiting
    with pytest.raises(Closed, match="make a new source"):
        source.try_send(b"x")


async def test_a_streaming_source_never_calls_anything_stable(net: Network) -> None:
    context = await net.context()
    source = await context.source("ticks")
    sent = await source.send(b"x")
    with pytest.raises(Closed, match="has no stores"):
        await sent.stable()
    with pytest.raises(Closed, match="has no stores"):
        await source.wait_stable_through(sent.number)
    assert source.stable_through == -1


async def test_what_leaves_at_once_is_reported_each_time(net: Network) -> None:
    """Without stores nothing else makes the source look at what it has sent."""
    source = await (await net.context()).source("ticks")
    await source.send(b"x")
    told: list[object] = []
    feed = source._feed

    def note(event: Any) -> None:
        told.append(event)
        feed(event)

    source._feed = note
    for count in (1, 2):
        source.try_send(b"x")
        await until(lambda: len([event for event in told if isinstance(event, Sent)]) == count)  # noqa: B023


async def test_a_source_that_was_closed_tells_no_events(net: Network) -> None:
    events = Events()
    source = await (await net.context()).source("orders", stores=[await net.store()], on_event=events)
    await source.close()
    told = len(events)
    source._on_notify(Overtaken())
    assert len(events) == told


async def test_a_source_fails_once_and_not_after_its_end(net: Network) -> None:
    reports: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report["exception"]))
    context = await net.context()
    failing, closed = await context.source("orders"), await context.source("trades")
    await closed.close()
    first, second = ValueError("first"), ValueError("second")
    for source in (failing, closed):
        source.fail("to write", first)
        source.fail("to write", second)
    assert reports == [first]
    assert (await failing.until_failed()).__cause__ is first
    assert closed._failure is None
