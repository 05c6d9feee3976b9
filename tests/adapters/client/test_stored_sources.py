"""Receivers of topics whose source has ended: the stores that hold the messages are enough."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from stablecast.client import Context, Message, Receiver, WildcardReceiver, last, stored_consumer, stored_sources
from stablecast.client.range_contents import SourceContents, sources_of
from stablecast.client.range_inquiry import RangeRoutes, ask_all
from stablecast.client.stored_consumer import ConsumerRefused, StoredConsumer
from stablecast.client.stored_sources import StoredSources, announcement
from stablecast.core.errors import MisuseError
from stablecast.core.protocol.events import UnrecoverableLoss
from stablecast.core.protocol.messages import ConsumptionAck, Keepalive, Pace, Register, Role, SourceInfo
from stablecast.core.protocol.settings import ReceiverConfig
from tests.core import samples
from tests.core.samples import registered
from tests.support.network import LOCAL, Events, Network, unused_port
from tests.support.traffic import send, source_of, take


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_sources, "LIVE_SECONDS", 0.0)


def addresses(net: Network) -> list[str]:
    return [store.address for store in net.stores.values()]


async def ended(net: Network, count: int) -> list[str]:
    """Store messages of a source that ends; return the stores."""
    owner, source = await source_of(net, "a", "b", "c")
    await send(source, count)
    await owner.close()
    return addresses(net)


async def test_a_receiver_gets_what_stores_hold_without_source_and_resolver(net: Network) -> None:
    stores = await ended(net, 100)
    async with Context(session_id=1) as context:
        assert await take(context.receiver("orders", stores=stores), 60) == list(range(60))
    async with Context(session_id=1) as context:  # The stores remember how far it was.
        [number, *_] = await take(context.receiver("orders", stores=stores), 40)
        assert 59 <= number <= 60
    async with Context(session_id=2) as context:
        assert await take(context.receiver("orders", stores=stores, start=last(5)), 5) == list(range(95, 100))


async def test_the_next_life_of_the_source_goes_on(net: Network) -> None:
    stores = await ended(net, 50)
    context = await net.context(session_id=1)
    receiver = context.receiver("orders", stores=stores)
    assert await take(receiver, 50) == list(range(50))
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 10)
    assert await take(receiver, 10) == list(range(50, 60))


async def test_a_store_that_is_away_is_not_missed(net: Network) -> None:
    stores = await ended(net, 50)
    await net.stop("b")
    async with Context(session_id=1) as context:
        assert await take(context.receiver("orders", stores=stores), 50) == list(range(50))


async def test_a_source_that_runs_is_received_as_ever(net: Network) -> None:
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 10)
    context = await net.context(session_id=1)
    receiver = context.receiver("orders", stores=addresses(net))
    assert await take(receiver, 10) == list(range(10))
    await send(source, 10)
    assert await take(receiver, 10) == list(range(10, 20))


async def test_what_goes_wrong_while_stores_are_asked_is_reported_and_they_are_asked_again(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = await ended(net, 10)
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: reported.append(str(told["exception"])))
    failing = [OSError("no descriptors")]

    async def asked(*names: Any, **more: Any) -> Any:
        if failing:
            raise failing.pop()
        return await ask_all(*names, **more)

    monkeypatch.setattr(stored_sources, "ask_all", asked)
    monkeypatch.setattr(stored_sources, "ASK_SECONDS", 0.5)
    async with Context(session_id=1) as context:
        assert await take(context.receiver("orders", stores=stores), 10) == list(range(10))
    assert reported == ["no descriptors"]


@pytest.mark.parametrize("given", [{}, {"stores": []}])
async def test_a_receiver_needs_some_way_to_its_messages(given: Any) -> None:
    async with Context() as context:
        with pytest.raises(MisuseError, match="or stores="):
            context.receiver("orders", **given)


async def test_a_pattern_gets_all_matching_topics_of_the_stores(net: Network) -> None:
    stores = await ended(net, 100)
    async with Context(session_id=5) as owner:
        for topic in ("orders.eu", "bills"):
            source = await owner.source(topic, stores=stores)
            await source.send_many([b"%d" % number for number in range(20)])
            await source.wait_stable_through(19)
    async with Context(session_id=1) as context:
        bills = context.receiver("bills", stores=stores)
        pattern = context.receiver(pattern="orders|bills", stores=stores, start=last(5))
        found = [message async for message in first_of(pattern, 10)]
        assert {message.topic for message in found} == {"orders", "orders.eu"}
        assert sorted(message.number for message in found) == [*range(15, 20), *range(95, 100)]
        assert await take(bills, 20) == list(range(20)), "a topic with a receiver of its own is not the pattern's"
        await pattern.close()


async def first_of(messages: Receiver | WildcardReceiver, count: int) -> AsyncIterator[Message]:
    async for message in messages:
        yield message
        count -= 1
        if not count:
            return


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "no way to find sources"),
        ({"stores": ["127.0.0.1:1"], "start": "soon"}, "cannot begin at 'soon'"),
        ({"stores": ["127.0.0.1:1"], "start": 7, "start_at": lambda *_: 0}, "give one of them"),
        ({"stores": "127.0.0.1:1"}, "stores"),
    ],
)
async def test_a_pattern_refuses_what_makes_no_sense(given: Any, text: str) -> None:
    async with Context() as context:
        with pytest.raises(MisuseError, match=text):
            context.receiver(pattern="orders", **given)


@asynccontextmanager
async def between_lives(net: Network, count: int) -> AsyncIterator[tuple[asyncio.Event, list[str]]]:
    """Store messages of a life, and let the next one register where no quorum answers, until the event is set.

    Yields the event, and the stores of the source.
    """
    places = [await net.store(name) for name in ("late", "a", "b", "c")]
    places += [f"{LOCAL}:{unused_port()}" for _ in range(2)]
    first = await net.context(session_id=7)
    await send(await first.source("orders", stores=places), count)
    await first.close()
    late = await net.stop("late")
    owner, go_on = await net.context(session_id=7), asyncio.Event()

    async def live() -> None:
        opening = asyncio.ensure_future(owner.source("orders", stores=places))
        await go_on.wait()
        await net.store("late", listen=late)  # With it a quorum answers, and the life announces itself.
        await send(await opening, 10)

    living = asyncio.create_task(live())
    try:
        while any(  # noqa: ASYNC110  # stores tell no event to a client that asks
            one.readable for one in (await contents(owner, addresses(net))).answers.values()
        ):
            await asyncio.sleep(0.01)
        yield go_on, places
        await living
    finally:
        living.cancel()


async def contents(context: Context, stores: Sequence[str]) -> SourceContents:
    [source] = sources_of(await ask_all(context.reads, stores, 5.0, topic="orders"))
    return source


@pytest.mark.parametrize("pattern", [False, True])
async def test_a_life_that_waits_for_its_stores_is_not_begun(
    net: Network, pattern: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session takes the numbers of a life from the first announcement: those of the life before would be wrong."""
    asked = asyncio.Event()
    tell = StoredSources._tell

    def told(stored: StoredSources, sources: Sequence[SourceContents], silent: Sequence[str]) -> bool:
        found = tell(stored, sources, silent)
        asked.set()
        return found

    monkeypatch.setattr(StoredSources, "_tell", told)
    events = Events()
    async with between_lives(net, 50) as (go_on, _):
        context = await net.context(session_id=1)
        stores = addresses(net)
        receiver: Receiver | WildcardReceiver
        if pattern:
            receiver = context.receiver(pattern="orders", stores=stores, on_event=lambda _, event: events(event))
        else:
            receiver = context.receiver("orders", stores=stores, on_event=events)
        await asked.wait()
        go_on.set()
        assert [message.number async for message in first_of(receiver, 60)] == list(range(60))
    assert events.of(UnrecoverableLoss) == []


@pytest.mark.parametrize(("held", "awaited"), [(True, True), (False, False)])
async def test_a_source_whose_messages_too_few_stores_have_is_awaited(net: Network, held: bool, awaited: bool) -> None:
    """All stores answered. An operator may put the disks of the others back; what no store has is not worth a wait."""
    stores = await ended(net, 5)
    context = await net.context()
    source = await contents(context, stores)
    store, one = next((store, one) for store, one in source.answers.items() if one.ranges)  # One may still lack them.
    source.answers = {store: one if held else attrs.evolve(one, ranges=())}
    announced: list[SourceInfo] = []
    looking = StoredSources(context.reads, "orders", stores, announced.append)
    assert (looking._tell([source], []), announced) == (awaited, [])
    await looking.close()


async def test_the_answer_of_a_store_is_about_one_life(net: Network) -> None:
    async with between_lives(net, 50) as (go_on, _):
        context = await net.context()
        source = await contents(context, addresses(net))
        assert [life for life, _ in source.lives] == [source.incarnation], "the next life has no numbers yet"
        assert source.newest.ranges == ((0, 50),)
        assert announcement(source, addresses(net)) is None
        go_on.set()
    after = await contents(context, addresses(net)[:3])
    assert [life for life, _ in after.lives] == [source.incarnation, after.incarnation]
    info = announcement(after, addresses(net)[:3])
    assert info is not None
    assert (info.incarnation, info.low) == (after.incarnation, 50)
    older = attrs.evolve(source.newest, readable=False)
    after.answers |= dict.fromkeys(addresses(net)[1:3], older)
    assert announcement(after, addresses(net)[:3]) is None, "one store of three knows where the life resumes"


async def test_a_reader_waits_for_a_life_that_waits(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stores hold all messages, so none may be called a hole, however often they are asked meanwhile."""
    ask, asked = RangeRoutes.ask, Counter[str]()
    async with between_lives(net, 50) as (go_on, places):

        async def asking(routes: RangeRoutes, store: str, **more: Any) -> Any:
            asked[store] += 1
            if all(asked[one] > 2 for one in addresses(net)):
                go_on.set()
            return await ask(routes, store, **more)

        monkeypatch.setattr(RangeRoutes, "ask", asking)
        context = await net.context()
        async with context.reader("orders", stores=places, until=50) as reader:
            assert [message.number async for message in reader] == list(range(50))
        assert reader.holes == []
        go_on.set()


async def test_a_consumer_waits_for_a_life_that_waits(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would not know how far its session is, and begin again."""
    waits = asyncio.Event()

    async def asking(*arguments: Any, **more: Any) -> Any:
        waits.set()
        return await ask_all(*arguments, **more)

    monkeypatch.setattr(stored_consumer, "ask_all", asking)
    async with between_lives(net, 50) as (go_on, _):
        context = await net.context()
        config = attrs.evolve(context.template(9), topic="orders")
        stores = addresses(net)
        consumer = StoredConsumer(context.reads, config, stores)
        registering = asyncio.create_task(consumer.register({"7": await contents(context, stores)}, 10.0))
        await waits.wait()
        go_on.set()
        await registering
        assert consumer._sources["7"].info.low == 50
        await consumer.close()


async def test_a_consumer_acknowledges_nothing_to_a_source_that_begins_again(net: Network) -> None:
    """The source deregistered, and has its session id again. What was consumed of it is none of the new messages."""
    owner, source = await source_of(net, "a", "b", "c")
    await send(source, 50)
    context, stores = await net.context(), addresses(net)
    consumer = StoredConsumer(context.reads, attrs.evolve(context.template(9), topic="orders"), stores)
    assert await consumer.register({"7": await contents(context, stores)}, 10.0) == {}
    consumer.acknowledge("7", 50)
    await source.deregister()
    await owner.close()
    owner, source = await source_of(net, "a", "b", "c")
    await send(source, 10)
    await consumer.register({"7": await contents(context, stores)}, 10.0)
    assert [one.stop for one in consumer._sources.values()] == [None]
    consumer.acknowledge("7", 5)
    await owner.close()
    _, source = await source_of(net, "a", "b", "c")
    assert await consumer.register({"7": await contents(context, stores)}, 10.0) == {"7": 5}
    assert [one.stop for one in consumer._sources.values()] == [5]
    assert list(context.reads.consumers.values()) == [consumer], "only for the newest life"
    assert consumer._alarm._timer is not None
    await consumer.close()
    assert (list(context.reads.consumers), list(context.reads.readers)) == ([], [])
    assert consumer._alarm._timer is None


@pytest.mark.parametrize(
    ("stop", "lives", "first"),
    [
        (7, ((1, 0),), 7),
        (7, ((1, 0), (2, 5)), 5),
        (3, ((1, 0), (2, 5)), 3),
        (7, ((9, 0),), None),
        (None, ((1, 0), (2, 5)), None),
        (None, ((1, 0),), None),
    ],
)
def test_what_was_acknowledged_holds_up_to_where_the_next_life_uses_numbers_again(
    stop: int | None, lives: tuple[tuple[int, int], ...], first: int | None
) -> None:
    known: Any = SimpleNamespace(info=samples.info(lives=((1, 0),)), stop=stop)
    assert stored_consumer._agreed(known, samples.info(lives=lives), 10) == first


@pytest.mark.parametrize("wants", [Pace.SOURCE, Pace.RECEIVERS])
@pytest.mark.parametrize("answer", [Pace.SOURCE, Pace.RECEIVERS])
async def test_a_consumer_with_the_pace_of_its_stores_is_not_refused(wants: Pace, answer: Pace) -> None:
    config = ReceiverConfig("orders", 0, "me:1", pace=wants)
    consumer = StoredConsumer(RangeRoutes("me:1"), config, [])
    consumer._note(registered(pace=answer))
    assert ("another pace" in consumer._failure) is (wants is Pace.RECEIVERS and answer is Pace.SOURCE)


async def test_a_store_that_comes_late_or_returns_gets_what_a_consumer_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the consumer would begin lower where only that store knows it."""
    acks: list[tuple[str, int]] = []
    consumer = StoredConsumer(RangeRoutes("me:1"), ReceiverConfig("topic", 0, "me:1", session_id=9), [])

    def encode(message: object) -> bytes:
        if isinstance(message, ConsumptionAck):
            acks.append((f"RegID {message.receiver_reg_id}", message.number))
        return b""

    def grant(index: int) -> None:
        generation = requests[index].request.generation
        of_store = {"store_index": index, "reg_id": 70 + index, "generation": generation}
        consumer.on_control(registered(role=Role.RECEIVER, **of_store))

    monkeypatch.setattr(stored_consumer, "codec", SimpleNamespace(encode=encode))
    consumer._begin("7", samples.info(1, 1, 1), 20)
    requests = consumer._sources["7"].registrations.enrollment.registrations
    for index in (0, 1):
        grant(index)
    assert acks == []
    consumer.acknowledge("7", 20)
    assert acks == [("RegID 70", 19), ("RegID 71", 19)]
    del acks[:]
    grant(2)
    consumer.on_broken("store1:1")
    grant(1)
    assert acks == [("RegID 72", 19), ("RegID 71", 19)]
    consumer.acknowledge("7", 10)
    consumer.acknowledge("8", 10)
    assert acks[2:] == [], "it never acknowledges less"
    await consumer.close()


async def test_a_consumer_lives_on_at_its_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers a keepalive, and registers again when an answer is due."""
    sent: list[object] = []

    def encode(message: object) -> bytes:
        sent.append(message)
        return b""

    monkeypatch.setattr(stored_consumer, "codec", SimpleNamespace(encode=encode))
    consumer = StoredConsumer(RangeRoutes("me:1"), ReceiverConfig("topic", 0, "me:1", session_id=9), [])
    consumer._begin("7", samples.info(1, 1, 1), 20)
    requests = consumer._sources["7"].registrations.enrollment.registrations
    of_store = {"store_index": 0, "reg_id": 70, "generation": requests[0].request.generation}
    consumer.on_control(registered(role=Role.RECEIVER, **of_store))
    del sent[:]
    consumer.on_control(Keepalive(Role.STORE, samples.LIFE, 70, True, 0))
    assert sent == [requests[0].keepalive(respond=False)]
    del sent[:]
    requests[1].timers.deadlines = dict.fromkeys(requests[1].timers.deadlines, 0)
    consumer._ring()
    assert [type(message) for message in sent] == [Register]
    with pytest.raises(ConsumerRefused):
        await consumer.register({}, 0.0)
    await consumer.close()
