"""A topic with two sources, one of which ends or begins again: the events that a receiver reports."""

import asyncio
import shutil

import pytest

from stablecast.client import Context
from stablecast.client.source_identity import SourceIdentity
from stablecast.config.option_kinds import Value
from stablecast.core.protocol.events import SteppedBack
from stablecast.core.protocol.messages import SourceInfo, StoreEntry
from stablecast.resolver.srs import SrsConfig, SrsDaemon
from stablecast.transports.resolution.udp.phases import Phase
from tests.core import samples
from tests.support.network import LOCAL, Events, Network, drop, until
from tests.support.traffic import send, source_of, take

QUICK: dict[str, Value] = {
    "resolver_query_minimum_initial_interval": 20,
    "resolver_query_maximum_initial_interval": 40,
    "resolver_query_minimum_initial_duration": 200,
    "resolver_query_sustain_interval": 50,
}


async def service(net: Network) -> SrsDaemon:
    daemon = await SrsDaemon.start(SrsConfig(interface=LOCAL, port=0), lambda *_: None)
    net.stack.push_async_callback(daemon.close)
    return daemon


@pytest.mark.rows("T-307")
@pytest.mark.parametrize("over", ["relay", "service"])
async def test_a_receiver_with_another_source_does_not_wait_when_one_ends(net: Network, over: str) -> None:
    """It is resolved, asks for others for a while and then no more, and finds a new life of the source."""
    where = [(await service(net)).address] if over == "service" else []

    async def context(session_id: int) -> Context:
        if over == "relay":
            return await net.context(session_id=session_id)
        return await net.stack.enter_async_context(Context(resolver_service=where, session_id=session_id))

    store = await net.store()
    receiving = await context(9)
    receiver = receiving.receiver("orders", options=QUICK)
    one, two = await context(1), await context(2)
    first = await one.source("orders", stores=[store])
    second = await two.source("orders", stores=[store])
    await until(lambda: len(receiver._sessions) == 2)
    assert receiving.unresolved() == []
    await first.close()
    await until(lambda: len(receiver._sessions) == 1)
    assert receiving.unresolved() == []
    await send(second, 3)
    assert await take(receiver, 3) == [0, 1, 2]
    if over == "relay":
        assert receiving._resolver is not None
        (udp,) = receiving._resolver._kinds
        rounds = udp._machine.querier.rounds  # type: ignore[attr-defined]
        await until(lambda: rounds.phase("orders") is Phase.QUIESCENT)
    again = await one.source("orders", stores=[store])
    await send(again, 2)
    assert await take(receiver, 2) == [0, 1]
    assert receiving.unresolved() == []
    await again.close()
    await second.close()
    await until(lambda: not receiver._sessions)
    assert [wait.topic for wait in receiving.unresolved()] == ["orders"]


async def test_another_source_does_not_step_back(net: Network) -> None:
    """T20 is about one source. What was consumed of another says nothing of this one, whoever comes or returns."""
    events = Events()
    store = await net.store()
    receiver = (await net.context(session_id=9)).receiver("orders", on_event=events)
    one, two = await net.context(session_id=1), await net.context(session_id=2)
    first = await one.source("orders", stores=[store])
    await send(first, 10)
    assert await take(receiver, 10) == list(range(10))
    second = await two.source("orders", stores=[store])
    await send(second, 3)
    assert await take(receiver, 3) == [0, 1, 2]
    for source, context, number in ((second, two, 3), (first, one, 10)):
        await source.close()
        returned = await context.source("orders", stores=[store])
        await send(returned, 1)
        assert await take(receiver, 1) == [number]
    assert events.of(SteppedBack) == []


async def test_a_source_whose_stores_were_emptied_steps_back(net: Network) -> None:
    """T20: its RegID is another one now, and it is the only source that is gone."""
    events = Events()
    store = await net.store()
    receiver = (await net.context(session_id=9)).receiver("orders", on_event=events)
    context = await net.context(session_id=1)
    source = await context.source("orders", stores=[store])
    await send(source, 10)
    assert await take(receiver, 10) == list(range(10))
    await source.close()
    await until(lambda: not receiver._sessions)
    await net.stop()
    await asyncio.to_thread(shutil.rmtree, net.directory / "store")
    await net.store(listen=store)
    returned = await context.source("orders", stores=[store])
    await send(returned, 1)
    assert await take(receiver, 1) == [0]
    back = await events.first(SteppedBack)
    assert (back.resume_point, back.known) == (0, 9)


async def test_a_life_with_another_store_does_not_bring_messages_twice(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session knows what was consumed when it began. The receiver remembers what was consumed since, too.

    The first store is away meanwhile: it does not hear what is acknowledged, and sends it again.
    """
    monkeypatch.setattr("stablecast.client.receiver.DRAIN_SECONDS", 0.0)
    receiver = (await net.context(session_id=9)).receiver("orders")
    context, source = await source_of(net, "a")
    await send(source, 10)
    assert await take(receiver, 5) == list(range(5))
    where = await net.stop("a")
    await drop(context)
    await until(lambda: not receiver._sessions)
    context, _ = await source_of(net, "b")
    await until(lambda: receiver._sessions)
    assert await take(receiver, 5) == list(range(5, 10))
    await drop(context)
    await until(lambda: not receiver._sessions)
    await net.store("a", listen=where)
    _, source = await source_of(net, "a")
    await send(source, 3)
    assert await take(receiver, 3) == list(range(10, 13))


def announced(life: int, *places: tuple[str, int], earlier: tuple[int, ...] = ()) -> SourceInfo:
    stores = tuple(StoreEntry(index, 0, address, reg_id, 1) for index, (address, reg_id) in enumerate(places))
    return samples.info(incarnation=life, stores=stores, lives=tuple((other, 0) for other in earlier))


def test_lives_with_a_place_in_common_are_of_one_source() -> None:
    """Without one, a single source that is gone may have lost its stores: its history counts, its messages do not."""
    known = SourceIdentity()
    assert known.begin(announced(1, ("a", 5)), []) == {1}
    assert known.begin(announced(2, ("a", 6)), [1]) == {2}
    assert known.begin(announced(3, ("b", 7), ("a", 5)), [2]) == {1, 3}
    known.learn(announced(3, ("c", 8)), [3, 30])
    assert known.begin(announced(4, ("c", 8)), [2, 3]) == {1, 3, 30, 4}
    assert known.begin(announced(5, ("d", 9)), [2]) == {1, 3, 4, 30, 5}
    assert [known.same(life, 1) for life in (1, 2, 3, 30, 4, 5)] == [True, False, True, True, True, False]
    assert known.begin(announced(6, ("e", 9)), []) == {6}
    known.learn(announced(99, ("a", 5)), [99])
    known.learn(None, [98])
    assert not {98, 99} & known.sources.keys()
    assert (known.same(99, 99), known.same(99, 98)) == (True, False)


def test_an_announcement_that_names_an_earlier_life_is_of_its_source() -> None:
    known = SourceIdentity()
    known.begin(announced(1, ("a", 5)), [])
    known.begin(announced(2, ("b", 6)), [1])
    assert known.begin(announced(3, ("c", 7), earlier=(1,)), [1, 2]) == {1, 3}
    known.learn(announced(2, ("b", 6), earlier=(4,)), [])
    assert known.begin(announced(4, ("d", 8)), [2, 3]) == {2, 4}


def test_sources_that_turn_out_to_be_one_are_united() -> None:
    known = SourceIdentity()
    known.begin(announced(1, ("a", 5)), [])
    known.begin(announced(2, ("b", 6)), [1])
    assert known.begin(announced(3, ("a", 5), ("b", 6)), []) == {1, 2, 3}
    assert known.same(1, 2)
    assert list(known.places.values()) == [{("a", 5), ("b", 6)}]


def test_known_sources_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stablecast.client.source_identity.MAX_LIVES", 2)
    known = SourceIdentity()
    for life in range(5):
        known.begin(announced(life, ("a", life)), range(life))
    assert set(known.sources) == {3, 4}
    assert list(known.places.values()) == [{("a", 3)}, {("a", 4)}]
