"""A topic with two sources, one of which ends or begins again: the events that a receiver reports."""

import asyncio
import shutil

import pytest

from stablecast.client import Context
from stablecast.config.option_kinds import Value
from stablecast.core.protocol.events import SteppedBack
from stablecast.core.subscription import subscription
from stablecast.resolver.srs import SrsConfig, SrsDaemon
from stablecast.transports.resolution.udp.phases import Phase
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
    monkeypatch.setattr(subscription, "DRAIN_NS", 0)
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
