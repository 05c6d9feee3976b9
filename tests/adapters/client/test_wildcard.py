"""Wildcard receivers on real sockets: over a relay, by multicast, over a service, and over two at once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from unittest import mock

import attrs
import pytest

from stablecast.client import Context, Message, Receiver, Source, WildcardReceiver, resolution, wildcard
from stablecast.client.callbacks import RegIdRequest
from stablecast.config.option_kinds import OptionError, Value
from stablecast.core.errors import MisuseError
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.events import DeregistrationComplete, Event, NoSource, RegistrationSuccess
from stablecast.resolver.srs import SrsConfig, SrsDaemon
from stablecast.transports.resolution.records import SourceRecord
from tests.support.network import LOCAL, Network, until, unused_port
from tests.support.traffic import send

OVER = ("relay", "multicast", "service", "both")

QUICK: dict[str, Value] = {
    "resolver_query_minimum_initial_interval": 20,
    "resolver_query_maximum_initial_interval": 40,
    "resolver_query_minimum_initial_duration": 200,
    "resolver_query_sustain_interval": 100,
    "resolver_no_source_linger_timeout": 50,
}
"""A topic without a source is left within two seconds."""

Make = Callable[..., Awaitable[Context]]


@pytest.fixture(params=OVER)
async def make(net: Network, request: pytest.FixtureRequest) -> Make:
    """Open contexts that find each other in one way."""
    over: str = request.param
    settings: dict[str, Value] = dict(QUICK)
    services = []
    if over in ("service", "both"):
        daemon = await SrsDaemon.start(SrsConfig(interface=LOCAL, port=0), lambda *_: None)
        net.stack.push_async_callback(daemon.close)
        services = [daemon.address]
    if over == "multicast":
        settings |= {
            "resolver_multicast_address": "239.255.77.79",
            "resolver_multicast_port": unused_port(),
            "resolver_multicast_interface": LOCAL,
            "resolver_multicast_ttl": 0,
        }

    async def opened(session_id: int = 0) -> Context:
        common: dict[str, Any] = {"session_id": session_id, "resolver_service": services}
        common["resolution"] = resolution(options=settings)
        if over in ("relay", "both"):
            return await net.context(**common)
        return await net.stack.enter_async_context(Context(**common))

    return opened


async def sources_of(context: Context, store: str, *topics: str) -> dict[str, Source]:
    return {topic: await context.source(topic, stores=[store]) for topic in topics}


async def read(receiver: WildcardReceiver, count: int) -> list[tuple[str, bytes]]:
    """Receive and consume messages; return their topics and payloads, sorted by topic."""
    found = []
    for _ in range(count):
        message = await anext(receiver)
        message.consumed()
        found.append((message.topic, message.payload))
    return sorted(found, key=lambda pair: pair[0])


@pytest.mark.rows("M-005", "P-958", "T-031", "T-405")
async def test_matching_topics_are_received_at_one_place(net: Network, make: Make) -> None:
    """T-031, T-405, P-958: topics from before and after, in order for each topic, and no other topic."""
    store = await net.store()
    sending, receiving = await make(1), await make(2)
    before = await sources_of(sending, store, "orders.a", "orders.b", "trades.a")
    receiver = receiving.receiver(pattern="^orders[.]")
    await until(lambda: len(receiver.topics) == 2)
    after = await sources_of(sending, store, "orders.c", "bonds.a")
    for source in {**before, **after}.values():
        await send(source, 3)
    numbers = [b"0", b"1", b"2"]
    assert await read(receiver, 9) == [
        (topic, number) for topic in ("orders.a", "orders.b", "orders.c") for number in numbers
    ]
    assert set(receiver.topics) == {"orders.a", "orders.b", "orders.c"}
    assert receiver.passed_over == 0


async def test_topics_come_and_go(net: Network, make: Make) -> None:
    """A topic without a source is left, and found again when it comes back; nothing is delivered twice."""
    store = await net.store()
    made: list[str] = []
    deleted: list[str] = []
    sending, receiving = await make(1), await make(2)
    receiver = receiving.receiver(pattern="^orders[.]", on_create=made.append, on_delete=deleted.append)
    source = (await sources_of(sending, store, "orders.a"))["orders.a"]
    await sources_of(sending, store, "orders.b")
    await send(source, 2)
    assert await read(receiver, 2) == [("orders.a", b"0"), ("orders.a", b"1")]
    await source.close()
    await until(lambda: receiver.topics == ("orders.b",))
    assert deleted == ["orders.a"]
    await until(lambda: "orders.a" not in receiving._receivers)
    again = (await sources_of(sending, store, "orders.a"))["orders.a"]
    await send(again, 1)
    assert await read(receiver, 1) == [("orders.a", b"2")]
    assert sorted(made) == ["orders.a", "orders.a", "orders.b"]
    assert receiving.unresolved() == []
    with mock.patch.object(receiving, "remove_pattern", wraps=receiving.remove_pattern) as removing:
        await receiver.close()
    assert removing.mock_calls == [mock.call("^orders[.]")]
    assert sorted(deleted) == ["orders.a", "orders.a", "orders.b"]


@pytest.mark.parametrize("start_at", [None, lambda _topic, _question: 0])
@pytest.mark.parametrize("session_id", [0, 2])
async def test_a_topic_that_returns_goes_on_where_the_application_is(
    net: Network, session_id: int, start_at: Callable[[str, AskLow], int] | None
) -> None:
    """No store heard what was consumed before the topic was left. The pattern is the same receiver."""
    store = await net.store()
    settings = resolution(options=QUICK)
    sending, receiving = [await net.context(session_id=one, resolution=settings) for one in (1, session_id)]
    receiver = receiving.receiver(pattern="^orders[.]", start_at=start_at)
    source = (await sources_of(sending, store, "orders.a"))["orders.a"]
    await send(source, 1)
    assert await read(receiver, 1) == [("orders.a", b"0")]
    tell, receiving.pool.send = receiving.pool.send, lambda *_: None  # type: ignore[method-assign]
    await send(source, 2)
    assert await read(receiver, 2) == [("orders.a", b"1"), ("orders.a", b"2")]
    await source.close()
    await until(lambda: receiver.topics == () and "orders.a" not in receiving._receivers)
    receiving.pool.send = tell  # type: ignore[method-assign]
    again = (await sources_of(sending, store, "orders.a"))["orders.a"]
    await send(again, 1)
    assert await read(receiver, 1) == [("orders.a", b"3")]


async def test_a_new_pattern_topic_is_not_forgotten_with_the_old_one(net: Network) -> None:
    """The topic returns in the turn of the loop in which its first receiver is left."""
    sending, receiving = [await net.context(session_id=one) for one in (1, 2)]
    receiver = receiving.receiver(pattern="^orders[.]")
    await sources_of(sending, await net.store(), "orders.a")
    await until(lambda: receiver.topics)
    first = receiver._topics["orders.a"]
    receiver._delete("orders.a")
    receiver.look()  # A known source is reported again.
    await until(lambda: first._closed and receiver.topics)
    assert receiving._receivers["orders.a"] is receiver._topics["orders.a"] is not first


async def test_a_topic_is_kept_until_its_messages_are_consumed(net: Network, make: Make) -> None:
    store = await net.store()
    sending, receiving = await make(1), await make(2)
    receiver = receiving.receiver(pattern="orders")
    source = (await sources_of(sending, store, "orders"))["orders"]
    await send(source, 3)
    await until(lambda: len(receiver._delivery.inbox) > 0)
    await source.close()
    topic = receiver._topics["orders"]
    await until(lambda: topic._emptied is not None)
    assert receiver.topics == ("orders",)
    assert await read(receiver, 3) == [("orders", b"0"), ("orders", b"1"), ("orders", b"2")]
    await until(lambda: receiver.topics == ())


@pytest.mark.rows("P-589")
async def test_all_topics_deregister(net: Network, make: Make) -> None:
    """P-589: the stores forget the receivers of all topics, no later topic is found, messages still come."""
    store = await net.store()
    events: list[tuple[str, Event]] = []
    sending, receiving = await make(1), await make(2)
    receiver = receiving.receiver(pattern="^orders[.]", on_event=lambda topic, event: events.append((topic, event)))
    sources = await sources_of(sending, store, "orders.a", "orders.b")
    for source in sources.values():
        await send(source, 1)
    assert len(await read(receiver, 2)) == 2
    await receiver.deregister()
    ended = {topic for topic, event in events if isinstance(event, DeregistrationComplete)}
    assert ended == {"orders.a", "orders.b"}
    later = await sources_of(sending, store, "orders.c")
    await send(later["orders.c"], 1)
    for source in sources.values():
        await send(source, 1)
    assert await read(receiver, 2) == [("orders.a", b"1"), ("orders.b", b"1")]
    assert set(receiver.topics) == {"orders.a", "orders.b"}


@pytest.fixture
async def pair(net: Network) -> tuple[Context, Context, str]:
    """A context that sends, one that receives, and a store."""
    settings = resolution(options=QUICK)
    sending = await net.context(session_id=1, resolution=settings)
    return sending, await net.context(resolution=settings), await net.store()


async def test_a_callback_gets_the_messages_of_all_topics(pair: tuple[Context, Context, str]) -> None:
    sending, receiving, store = pair
    found: list[tuple[str, bytes]] = []

    def on_message(message: Message) -> None:
        found.append((message.topic, message.payload))

    receiver = receiving.receiver(pattern="orders", on_message=on_message, session_id=3)
    for source in (await sources_of(sending, store, "orders/1", "orders/2")).values():
        await send(source, 1)
    await until(lambda: len(found) == 2)
    assert sorted(found) == [("orders/1", b"0"), ("orders/2", b"0")]
    with pytest.raises(MisuseError, match="wildcard receiver 'orders' gives its messages to on_message"):
        await anext(receiver)


async def test_a_batch_has_one_topic(pair: tuple[Context, Context, str]) -> None:
    sending, receiving, store = pair
    async with receiving.receiver(pattern="orders") as receiver:
        for source in (await sources_of(sending, store, "orders/1", "orders/2")).values():
            await send(source, 5)
        left = {"orders/1": 5, "orders/2": 5}
        async for batch in receiver.batches():
            left[batch.topic] -= batch.count
            batch.consumed()
            if not any(left.values()):
                break
    assert [message async for message in receiver] == []


async def test_a_topic_has_its_own_regid_start_and_options(pair: tuple[Context, Context, str]) -> None:
    """P-249, P-421, and receiver_create_callback, which may change the options of the receiver."""
    sending, receiving, store = pair
    asked: list[tuple[str, str]] = []
    events: list[tuple[str, Event]] = []

    def reg_id(topic: str, request: RegIdRequest) -> int:
        asked.append((topic, request.store))
        return {"orders/1": 501, "orders/2": 502}[topic]

    def start_at(topic: str, question: AskLow) -> int:
        return question.low + (2 if topic == "orders/2" else 0)

    sources = await sources_of(sending, store, "orders/1", "orders/2")
    for source in sources.values():
        await send(source, 3)
    receiver = receiving.receiver(
        pattern="^orders/",
        reg_id=reg_id,
        start_at=start_at,
        on_create=lambda topic: {"ume_use_ack_batching": 0} if topic == "orders/1" else None,
        on_event=lambda topic, event: events.append((topic, event)),
    )
    assert await read(receiver, 4) == [("orders/1", b"0"), ("orders/1", b"1"), ("orders/1", b"2"), ("orders/2", b"2")]
    assert sorted(asked) == [("orders/1", store), ("orders/2", store)]
    granted = {topic: event.reg_id for topic, event in events if isinstance(event, RegistrationSuccess)}
    assert granted == {"orders/1": 501, "orders/2": 502}
    modes = {topic: one.config.ack_mode.name for topic, one in receiver._topics.items()}
    assert modes == {"orders/1": "IMMEDIATE", "orders/2": "BATCHED"}


async def test_a_run_of_unanswered_queries_is_an_event_of_the_topic(pair: tuple[Context, Context, str]) -> None:
    """Ten queries find no source, then the topic is left."""
    sending, receiving, store = pair
    events: list[tuple[str, Event]] = []
    receiver = receiving.receiver(pattern="orders", on_event=lambda topic, event: events.append((topic, event)))
    source = (await sources_of(sending, store, "orders"))["orders"]
    await until(lambda: receiver.topics)
    await source.close()
    await until(lambda: not receiver.topics)
    assert ("orders", NoSource("orders", 10)) in events


async def test_a_topic_with_a_receiver_of_its_own_belongs_to_it(pair: tuple[Context, Context, str]) -> None:
    """A pattern gets the topic when that receiver is closed. Two receivers of a topic would share a RegID."""
    sending, receiving, store = pair
    alone = receiving.receiver("orders/1", session_id=7)
    receiver = receiving.receiver(pattern="^orders/", session_id=7)
    sources = await sources_of(sending, store, "orders/1", "orders/2")
    for source in sources.values():
        await send(source, 1)
    assert (await anext(alone)).payload == b"0"
    assert await read(receiver, 1) == [("orders/2", b"0")]
    assert receiver.topics == ("orders/2",)
    for topic in ("orders/2", "orders/3"):
        with pytest.raises(MisuseError, match=r"orders/' of this context receives|has a receiver of 'orders/2'"):
            receiving.receiver(topic)
    await alone.close()
    await send(sources["orders/1"], 1)
    assert await read(receiver, 2) == [("orders/1", b"0"), ("orders/1", b"1")]


async def test_a_topic_of_two_patterns_belongs_to_the_first(pair: tuple[Context, Context, str]) -> None:
    """When the first is closed, the second gets the topic."""
    sending, receiving, store = pair
    first = receiving.receiver(pattern="^orders/", session_id=7)
    second = receiving.receiver(pattern="1$", session_id=7)
    sources = await sources_of(sending, store, "orders/1", "trades/1")
    for source in sources.values():
        await send(source, 1)
    assert await read(first, 1) == [("orders/1", b"0")]
    assert await read(second, 1) == [("trades/1", b"0")]
    await first.close()
    await send(sources["orders/1"], 1)
    assert await read(second, 1) == [("orders/1", b"1")]
    assert set(second.topics) == {"orders/1", "trades/1"}


async def test_there_is_a_bound_of_topics(
    pair: tuple[Context, Context, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A topic that was passed over is received when another one is left."""
    caplog.set_level(logging.WARNING, "stablecast")
    sending, receiving, store = pair
    monkeypatch.setattr(wildcard, "MAX_PATTERN_TOPICS", 1)
    receiver = receiving.receiver(pattern="orders")
    first = (await sources_of(sending, store, "orders/1"))["orders/1"]
    await until(lambda: receiver.topics)
    second = (await sources_of(sending, store, "orders/2"))["orders/2"]
    await until(lambda: receiver.passed_over)
    assert "pattern 'orders' ignores topic 'orders/2': the pattern has 1 topics already" in caplog.text
    await first.close()
    await send(second, 1)
    assert await read(receiver, 1) == [("orders/2", b"0")]


def records(count: int) -> dict[str, SourceRecord]:
    """Return a source of each topic, at one place where nobody is."""
    return {f"orders.{number}": SourceRecord(f"{LOCAL}:{unused_port()}", 1, number) for number in range(count)}


async def test_a_turn_makes_a_few_receivers_and_the_next_ones_make_the_others(net: Network) -> None:
    """Nothing is overtaken: a second source of the first topic that waits, and the end of another one."""
    context = await net.context()
    receiver = context.receiver(pattern="^orders[.]")
    known = records(2 * wildcard.AT_ONCE + 2)
    topics, joined = list(known), list[tuple[str, int]]()

    def found(self: Receiver, _: str, session: int, *__: object) -> None:
        joined.append((self.topic, session))

    with mock.patch.object(Receiver, "found", found):
        for topic, record in known.items():
            context._on_found(topic, record)
        context._on_found(topics[wildcard.AT_ONCE], attrs.evolve(known[topics[wildcard.AT_ONCE]], session_id=2))
        context._on_gone(topics[-1], known[topics[-1]])
        assert receiver.topics == tuple(topics[: wildcard.AT_ONCE])
        seen = []
        while len(receiver.topics) < len(topics) - 1:
            await asyncio.sleep(0)
            seen.append(len(receiver.topics))
        assert [*dict.fromkeys(seen)] == [2 * wildcard.AT_ONCE, 2 * wildcard.AT_ONCE + 1]
    expected = [(topic, 1) for topic in topics[:-1]]
    expected.insert(wildcard.AT_ONCE + 1, (topics[wildcard.AT_ONCE], 2))
    assert joined == expected


async def test_a_pattern_that_is_left_makes_no_receivers_of_topics_that_wait(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wildcard, "AT_ONCE", 1)
    context = await net.context()
    made: list[str] = []
    receiver = context.receiver(pattern="^orders[.]", on_create=made.append)
    for topic, record in records(3).items():
        context._on_found(topic, record)
    await receiver.deregister()
    await asyncio.sleep(0)
    assert made == ["orders.0"]
    assert not receiver._waiting


async def test_a_failing_callback_passes_its_topic_over(pair: tuple[Context, Context, str]) -> None:
    """Other topics are received. A failing on_delete keeps nothing from closing."""
    sending, receiving, store = pair
    reports: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context["message"]))

    def on_create(topic: str) -> dict[str, Value] | None:
        if topic == "orders/1":
            raise ValueError("no")
        return {"no_such_option": 1} if topic == "orders/2" else None

    def on_delete(topic: str) -> None:
        raise ValueError(topic)

    receiver = receiving.receiver(pattern="orders", on_create=on_create, on_delete=on_delete)
    sources = await sources_of(sending, store, "orders/1", "orders/2", "orders/3")
    for source in sources.values():
        await send(source, 1)
    assert await read(receiver, 1) == [("orders/3", b"0")]
    await until(lambda: receiver.passed_over >= 2)
    assert receiver.topics == ("orders/3",)
    await receiver.close()
    asyncio.get_running_loop().set_exception_handler(None)
    assert {text.split(" callback")[0] for text in reports} == {"the on_create", "the on_delete"}


async def test_a_wildcard_receiver_that_is_misused(net: Network, pair: tuple[Context, Context, str]) -> None:
    _, receiving, _ = pair
    for pattern, text in (("(", "is malformed"), (r"\Kx", "cannot be matched"), ("(a+)+$", "could take for ever")):
        with pytest.raises(MisuseError, match=text):
            receiving.receiver(pattern=pattern)
    receiving.receiver(pattern="x")
    with pytest.raises(MisuseError, match="has a receiver of the pattern 'x'"):
        receiving.receiver(pattern="x")
    with pytest.raises(MisuseError, match="give neither topic nor source"):
        receiving.receiver("orders", pattern="y")  # type: ignore[call-overload]
    uncached = await net.context(resolution=resolution(options={"resolver_cache": 0}))
    with pytest.raises(MisuseError, match="leave resolver_cache at 1"):
        uncached.receiver(pattern="x")
    alone = await net.stack.enter_async_context(Context())
    with pytest.raises(MisuseError, match="no way to find sources"):
        alone.receiver(pattern="x")
    assert list(alone._wildcards) == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"pattern_type": "appcb"}, "no other context can evaluate a function"),
        ({"pattern_type": "glob"}, "one of pcre, regex"),
        ({"receiver_create_callback": "f"}, "pass it as on_create"),
        ({"receiver_delete_callback": "f"}, "pass it as on_delete"),
        ({"hf_receiver": 1}, "make a hot-failover receiver of each topic"),
        ({"resolver_query_maximum_intervall": 1}, "there is no receiver option"),
    ],
)
async def test_options_that_are_refused(pair: tuple[Context, Context, str], options: Any, text: str) -> None:
    _, receiving, _ = pair
    with pytest.raises(OptionError, match=text):
        receiving.receiver(pattern="x", options=options)
    assert receiving.receiver(pattern="x").topics == ()


async def test_options_that_are_accepted(pair: tuple[Context, Context, str], caplog: pytest.LogCaptureFixture) -> None:
    """Options of the pattern, of its receivers, and options without effect, which are logged."""
    caplog.set_level(logging.WARNING, "stablecast")
    _, receiving, _ = pair
    options: dict[str, Value] = {
        "pattern_type": "regex",
        "monitor_interval": 5,
        "hf_receiver": 0,
        "resolver_query_max_interval": 1,
        "resolver_query_maximum_interval": 70,
        "resolver_query_minimum_duration": 3,
        "resolver_no_source_linger_timeout": 9,
        "use_late_join": 0,
    }
    settings = receiving.receiver(pattern="x", options=options).settings
    assert (settings.query.pace.longest, settings.query.pace.initial) == (70_000_000, 3_000_000_000)
    assert (settings.query.linger, settings.receiver.late_join) == (9_000_000, False)
    assert [text.split(",")[0].split(":")[0] for text in caplog.messages] == [
        "monitor_interval has no effect",
        "hf_receiver has no effect",
        "resolver_query_max_interval has no effect",
        "pattern_type regex is deprecated",
    ]


SHARED: dict[str, dict[str, Value]] = {
    "lbtrm": {"transport": "lbtrm", "transport_lbtrm_multicast_address": "239.255.77.80"},
    "lbtru": {"transport": "lbtru", "transport_lbtru_port": 0},
}
"""Options of sources that share one session; a port is added."""


@pytest.mark.parametrize("kind", SHARED)
async def test_topics_that_share_a_session_are_received_apart(pair: tuple[Context, Context, str], kind: str) -> None:
    """Each receiver claims its topic, so that it does not look at the messages of the others."""
    sending, receiving, store = pair
    options = dict(SHARED[kind])
    if kind == "lbtru":
        options["transport_lbtru_port"] = unused_port()
    topics = [f"orders/{number}" for number in range(4)]
    sources = [await sending.source(topic, stores=[store], options=options) for topic in topics]
    assert len({source.place for source in sources}) == 1
    receiver = receiving.receiver(pattern="^orders/")
    await until(lambda: len(receiving.lives) == len(topics))
    assert receiving.transports._receivers is not None
    (session,) = receiving.transports._receivers._sessions.values()
    assert [len(claims) for claims in session.joined.values()] == [1, 1, 1, 1]
    for source in sources:
        await send(source, 2)
    assert await read(receiver, 8) == [(topic, payload) for topic in topics for payload in (b"0", b"1")]
    await receiver.close()
    assert not session._claimed
