"""An application with a backlog, and a source that is killed and returns: each message once, in order, in one run."""

import asyncio
from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from stablecast.client import Context, Message, Receiver, Source
from stablecast.config.options import Value
from stablecast.core.errors import MisuseError
from stablecast.core.machine import serial
from stablecast.core.protocol.effects import StartProxy
from stablecast.core.protocol.events import Oddity, RegistrationComplete, UnrecoverableLoss
from stablecast.core.protocol.messages import ElectionToken, StoreEntry
from stablecast.core.subscription import subscription
from stablecast.transports.codec.identity import TOPIC_BITS
from stablecast.transports.codec.lbttcp import Run, build
from tests.support.network import LOCAL, Events, Network, drop, until
from tests.support.traffic import SESSION, source_of

EXPLICIT: dict[str, Value] = {"ume_explicit_ack_only": 1}
ARRIVAL: dict[str, Value] = {"ordered_delivery": 0}
LIFE = 30
"""Messages of a life."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new life is joined at once: the backlog is never short enough to wait for."""
    monkeypatch.setattr(subscription, "DRAIN_NS", 0)


@attrs.define
class Log:
    """Messages that an application was handed, as number and life."""

    got: list[tuple[int, int]] = attrs.field(factory=list)

    def note(self, message: Message) -> None:
        assert int(bytes(message.payload[:8])) == message.numbers[0]
        self.got.append((message.sequence_number, message.incarnation))

    @property
    def numbers(self) -> list[int]:
        return [number for number, _ in self.got]

    async def read(self, receiver: Receiver, upto: int, form: str = "each") -> None:
        """Read up to a number; each message is consumed, and acknowledged where the application does that."""
        if form == "batches":
            async for batch in receiver.batches():
                for index, payload in enumerate(batch.payloads()):
                    self.note(Message(payload, batch, index))
                batch.consumed()
                if batch.numbers(batch.count - 1)[1] >= upto:
                    return
        async for message in receiver:
            self.note(message)
            if receiver.config.ack_mode.name == "EXPLICIT":
                message.ack()
            message.consumed()
            if message.numbers[1] >= upto:
                return


async def fill(source: Source, count: int, size: int = 8) -> None:
    """Send messages that say their number, until they are stable."""
    for _ in range(count):
        await source.send((b"%08d" % source.next_number).ljust(size, b"."))
    await source.wait_stable_through(source.next_number - 1)


async def backlog(net: Network, receiver: Receiver, source: Source, before: int = 0) -> None:
    """Wait until the receiver has delivered everything that was sent."""
    life = source.config.incarnation
    await until(lambda: any(session.incarnation == life for session in receiver._sessions.values()))
    session = receiver._sessions[life]
    await until(lambda: session._machine.window.next == source.next_number)


async def returned(net: Network, context: Context, receiver: Receiver, **more: Any) -> tuple[Context, Source]:
    """Kill a source; its next life, with which the receiver has a session."""
    await drop(context)
    await until(lambda: not receiver._sessions)
    context, source = await source_of(net, *(net.stores or ["a"]), **more)
    await until(lambda: receiver._sessions)
    return context, source


async def nothing_comes_again(net: Network, receiving: Context, source: Source, options: Mapping[str, Value]) -> None:
    """All was acknowledged: the receiver's next run begins behind it."""
    await receiving.close()
    await fill(source, 1)
    again = (await net.context(session_id=1)).receiver("orders", options=options)
    assert (await anext(again)).numbers[1] == source.next_number - 1


async def test_a_session_that_begins_behind_what_waits_withholds_nothing_more(net: Network) -> None:
    """The application still has the messages of the life before, and no store sends them again."""
    context, source = await source_of(net, "a")
    receiver = (await net.context(session_id=1)).receiver("orders", start_at=lambda question: question.high + 1)
    await until(lambda: any(session._machine.window.next is not None for session in receiver._sessions.values()))
    await fill(source, 3)
    await backlog(net, receiver, source)
    context, source = await returned(net, context, receiver)
    [session] = receiver._sessions.values()
    await until(lambda: session._machine.window.next is not None)
    assert session._machine.start_number == 3
    assert session.succession.plain
    await fill(source, 1)
    log = Log()
    await log.read(receiver, 3)
    assert log.numbers == [0, 1, 2, 3]


FORMS: dict[str, tuple[str, dict[str, Value], int]] = {
    "each": ("each", {}, 8),
    "batches": ("batches", {}, 8),
    "explicit": ("each", EXPLICIT, 8),
    "arrival": ("each", ARRIVAL, 8),
    "arrival, explicit": ("each", ARRIVAL | EXPLICIT, 8),
    "in pieces": ("each", {}, 20_000),
    "in pieces, explicit": ("each", EXPLICIT, 20_000),
}


@pytest.mark.parametrize("form", list(FORMS))
async def test_each_message_once_and_in_order_over_three_lives(net: Network, form: str) -> None:
    """With nothing, something and everything of the lives before consumed when the next one begins."""
    how, options, size = FORMS[form]
    sending = {"transport_tcp_datagram_max_size": 8192} if size > 8 else {}
    context, source = await source_of(net, "a", options=sending)
    receiving, events, log = await net.context(session_id=1), Events(), Log()
    receiver = receiving.receiver("orders", on_event=events, options=options)
    await events.first(RegistrationComplete)
    ends = []
    for _ in range(3):
        await fill(source, LIFE, size)
        await backlog(net, receiver, source)
        ends.append(source.next_number - 1)
        if len(ends) == 2:
            await log.read(receiver, ends[0], how)
        context, source = await returned(net, context, receiver, options=sending)
    await fill(source, LIFE, size)
    await log.read(receiver, source.next_number - 1, how)
    assert log.numbers == sorted(set(log.numbers))
    assert len(log.numbers) == 4 * LIFE
    assert events.of(UnrecoverableLoss) == []
    # In arrival order the last life's messages do not wait for what its session still recovers. Only what the session
    # has got itself can be acknowledged by it.
    await until(lambda: not any(session.recovering for session in receiver._sessions.values()))
    await nothing_comes_again(net, receiving, source, options)


@pytest.mark.parametrize("lives", [1, 2])
async def test_a_message_in_hand_is_acknowledged_by_the_session_that_inherits_it(net: Network, lives: int) -> None:
    """In hand when the source was killed; consumed when a later life has been there for long.

    A reader that kept the loop for long asks the session that delivered the message, which answers for nothing now.
    """
    context, source = await source_of(net, "a")
    receiving, events = await net.context(session_id=1), Events()
    receiver = receiving.receiver("orders", on_event=events)
    await fill(source, 3)
    first = await anext(receiver)
    await backlog(net, receiver, source)
    assert receiver.inbox.current is not None
    owner = receiver.inbox.current.owner
    for later in range(lives):
        context, source = await returned(net, context, receiver)
        await events.first(RegistrationComplete, 2 + later)
    [session] = receiver._sessions.values()
    await until(lambda: session._machine.window.next == 3)
    assert session._machine.window.acked == -1
    first.consumed()
    owner.acknowledge_now()
    assert session._machine.window.acked == 0
    assert [(await anext(receiver)).sequence_number for _ in range(2)] == [1, 2]


@pytest.mark.rows("P-348")
async def test_a_handle_acknowledges_whatever_session_answers_by_then(net: Network) -> None:
    """P-348, over two lives; what was never delivered is refused."""
    context, source = await source_of(net, "a")
    receiving, events = await net.context(session_id=1), Events()
    receiver = receiving.receiver("orders", on_event=events, options=EXPLICIT)
    await fill(source, 3)
    handle = [await anext(receiver) for _ in range(2)][1].ack_handle()
    for _ in range(2):
        context, source = await returned(net, context, receiver)
    handle.ack()
    with pytest.raises(MisuseError, match="not delivered"):
        handle.ack(77)
    [session] = receiver._sessions.values()
    await until(lambda: session._machine.window.acked == 1)
    assert (await anext(receiver)).sequence_number == 2


async def test_waiting_messages_of_a_life_that_was_cut_are_dropped(net: Network) -> None:
    """Its store never had the last messages: they are not stable, and their numbers are used again."""
    context, source = await source_of(net, "a")
    receiving, events, log = await net.context(session_id=1), Events(), Log()
    receiver = receiving.receiver("orders", on_event=events)
    await events.first(RegistrationComplete)
    await fill(source, 5)
    await backlog(net, receiver, source)
    [session] = receiver._sessions.values()
    cut = build_run(session.incarnation, 5, 4)
    session.on_run(cut)
    old = source.config.incarnation
    assert session.waiting == 9
    context, source = await returned(net, context, receiver)
    assert source.next_number == 5
    [oddity] = [event for event in events.of(Oddity) if event.code == "dead-tail"]
    assert oddity.text.startswith("4 messages that waited")
    await fill(source, 5)
    await log.read(receiver, 9)
    assert log.got == [(number, old if number < 5 else source.config.incarnation) for number in range(10)]


async def test_a_proxy_stands_in_and_ends(net: Network) -> None:
    """Its session inherits the backlog, and the source's next life inherits it from that."""
    context, source = await source_of(net, "a", options={"ume_proxy_source": 1})
    where = net.stores["a"].address
    receiving, events, log = await net.context(session_id=1), Events(), Log()
    receiver = receiving.receiver("orders", on_event=events)
    await events.first(RegistrationComplete)
    await fill(source, LIFE)
    await backlog(net, receiver, source)
    await drop(context)
    await until(lambda: not receiver._sessions)
    proxies = net.stores["a"]._proxies
    proxies._context = lambda: Context(resolver=[net.relays[0].address], interface=LOCAL)
    entry = StoreEntry(0, 0, where, 0, 1)
    net.stores["a"]._perform(StartProxy(1, "orders", SESSION, ElectionToken(77, 1), (entry,), (1,)))
    await until(lambda: receiver._sessions)
    await events.first(RegistrationComplete, 2)
    await log.read(receiver, 9)
    context, source = await source_of(net, "a", options={"ume_proxy_source": 1})
    await fill(source, LIFE)
    await log.read(receiver, source.next_number - 1)
    assert log.numbers == list(range(2 * LIFE))


async def test_two_sources_with_a_backlog_each(net: Network) -> None:
    """One of them is killed and returns: the other one's messages stay where they are."""
    context, source = await source_of(net, "a")
    other = await (await net.context(session_id=SESSION + 1)).source("orders", stores=[net.stores["a"].address])
    receiving, log = await net.context(session_id=1), Log()
    receiver = receiving.receiver("orders")
    await until(lambda: len(receiver._sessions) == 2)
    for sending in (source, other):
        await fill(sending, LIFE)
        await backlog(net, receiver, sending)
    lives = {source.config.incarnation}
    await drop(context)
    await until(lambda: len(receiver._sessions) == 1)
    context, source = await source_of(net, "a")
    await until(lambda: len(receiver._sessions) == 2)
    lives.add(source.config.incarnation)
    for sending in (source, other):
        await fill(sending, LIFE)
    while len(log.got) < 4 * LIFE:
        log.note(await anext(receiver))
    first = [number for number, life in log.got if life in lives]
    second = [number for number, life in log.got if life == other.config.incarnation]
    assert (first, second) == (list(range(2 * LIFE)), list(range(2 * LIFE)))


async def test_a_callback_with_a_backlog(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes as long as a turn may take: the rest waits for the next turns, and another life begins meanwhile."""
    monkeypatch.setattr("stablecast.client.callbacks.TURN_SECONDS", -1.0)
    held: list[Any] = []
    loop = asyncio.get_running_loop()
    call_soon = loop.call_soon

    def later(callback: Any, *arguments: Any, **more: Any) -> Any:
        if getattr(callback, "__name__", "") != "_next_turn":
            return call_soon(callback, *arguments, **more)
        held.append(callback)
        return None

    monkeypatch.setattr(loop, "call_soon", later)
    context, source = await source_of(net, "a")
    receiving, log = await net.context(session_id=1), Log()
    receiver = receiving.receiver("orders", on_message=log.note)
    await until(lambda: receiver._sessions)
    await fill(source, LIFE)
    await backlog(net, receiver, source)
    assert len(log.got) <= 1
    context, source = await returned(net, context, receiver)
    await fill(source, LIFE)
    monkeypatch.setattr("stablecast.client.callbacks.TURN_SECONDS", 3600.0)
    monkeypatch.setattr(loop, "call_soon", call_soon)
    for callback in held:
        callback()
    await until(lambda: len(log.got) >= 2 * LIFE)
    assert log.numbers == list(range(2 * LIFE))
    await nothing_comes_again(net, receiving, source, {})


def build_run(life: int, first: int, count: int) -> Run:
    """A live run of a life."""
    index = life % (1 << TOPIC_BITS)
    contents = [b"%08d" % number for number in range(first, first + count)]
    return Run(index, serial.wire(first), count, 8 * count, build(index, serial.wire(first), contents))
