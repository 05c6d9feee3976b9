"""Receivers behind routers: a source keeps its life, and is joined at one of its places."""

from collections.abc import Awaitable, Callable

import pytest

from stablecast.core.protocol.events import EndOfSource, UnrecoverableLoss
from stablecast.transports import codec
from tests.adapters.client.test_group_receiver import COUNT, divided, member, numbered, processed
from tests.adapters.client.test_group_receiver import send as give
from tests.adapters.client.test_transport_sessions import OPTIONS
from tests.adapters.runtime.peers import data, hello, listener
from tests.support.network import Events, Network, until
from tests.support.proxy import INDEX, Proxy, proxy, receiving, relay
from tests.support.traffic import info, send, source_of, take


@pytest.mark.rows("R-055", "R-226")
async def test_a_receiver_behind_a_router_knows_the_life_of_the_source(net: Network) -> None:
    """The names on its stream are those of the hop; registrations and acknowledgements name the life."""
    _, source = await source_of(net, "a")
    await send(source, 3)
    there = await relay(net)
    behind = await receiving(net, there, session_id=1)
    receiver = behind.receiver("orders")
    one = await proxy(net, there)
    await send(source, 3)
    assert await take(receiver, 6) == list(range(6))
    (session,) = receiver._sessions.values()
    assert session.incarnation == source.config.incarnation
    assert session.transport == one.place
    assert source.config.incarnation != one.session << 32 | INDEX
    await behind.close()
    again = (await receiving(net, there, session_id=1)).receiver("orders")
    await send(source, 1)
    assert await take(again, 1) == [6]


@pytest.mark.rows("R-052")
async def test_a_message_of_a_source_says_its_life_through_any_router(net: Network) -> None:
    _, source = await source_of(net, "a")
    there = await relay(net)
    receiver = (await receiving(net, there)).receiver("orders")
    await proxy(net, there)
    await send(source, 1)
    message = await anext(receiver)
    assert message.incarnation == source.config.incarnation


@pytest.mark.rows("R-059")
@pytest.mark.parametrize("end", [Proxy.close, Proxy.fail])
async def test_of_several_places_the_cheapest_is_joined_and_then_the_next(
    net: Network, end: Callable[[Proxy], Awaitable[None]]
) -> None:
    """Two routers repeat the source. When the cheaper one goes, the other one is joined, and nothing comes twice.

    That holds if the place is still advertised, too.
    """
    _, source = await source_of(net, "a")
    there = await relay(net)
    events = Events()
    dear, cheap = await proxy(net, there, session=5, cost=9), await proxy(net, there, session=6, cost=2)
    receiver = (await receiving(net, there, session_id=1)).receiver("orders", on_event=events)
    await until(lambda: cheap.server.subscribers and not dear.server.subscribers)
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5))
    await end(cheap)
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5, 10))
    assert [session.transport for session in receiver._sessions.values()] == [dear.place]
    assert [session.incarnation for session in receiver._sessions.values()] == [source.config.incarnation]
    assert len(events.of(EndOfSource)) <= 1


@pytest.mark.rows("R-060")
async def test_a_receiver_moves_to_a_cheaper_way_and_loses_nothing(net: Network) -> None:
    _, source = await source_of(net, "a")
    there = await relay(net)
    receiver = (await receiving(net, there, session_id=1)).receiver("orders")
    dear = await proxy(net, there, session=5, cost=9)
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5))
    (before,) = receiver._sessions.values()
    cheap = await proxy(net, there, session=6, cost=2)
    await until(lambda: before.transport == cheap.place)
    await until(lambda: not dear.server.subscribers)
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5, 10))
    assert list(receiver._sessions.values()) == [before]


async def test_the_source_itself_is_joined_where_it_is_heard(net: Network) -> None:
    """Beside a router that repeats it. A receiver in both domains hears both."""
    _, source = await source_of(net, "a")
    there = await relay(net)
    one = await proxy(net, there)
    receiver = (await receiving(net, net.relays[0], there)).receiver("orders")
    await until(lambda: receiver._sessions and not one.server.subscribers)
    await send(source, 3)
    assert await take(receiver, 3) == [0, 1, 2]
    assert [session.transport for session in receiver._sessions.values()] == [source.place]


async def test_members_of_a_group_share_a_source_behind_a_router(net: Network) -> None:
    """Each share acknowledges to the stores under the life, so that each message is processed once."""
    context = await net.context()
    source = await context.source("orders", stores=[await net.store(name) for name in ("a", "b", "c")], session_id=1)
    there = await relay(net)
    dear, cheap = await proxy(net, there, session=5, cost=9), await proxy(net, there, session=6, cost=2)
    workers = [await member(await receiving(net, there)) for _ in range(2)]
    await divided(*workers)
    await give(source, 0, COUNT)
    await until(lambda: len(processed(*workers)) == COUNT)
    assert not dear.server.subscribers
    await cheap.close()
    await give(source, COUNT, 2 * COUNT)
    await until(lambda: len(processed(*workers)) >= 2 * COUNT)
    assert processed(*workers) == numbered(0, 2 * COUNT)


async def test_a_pattern_finds_a_source_behind_a_router(net: Network) -> None:
    _, source = await source_of(net, "a")
    there = await relay(net)
    dear, cheap = await proxy(net, there, session=5, cost=9), await proxy(net, there, session=6, cost=2)
    found: list[tuple[str, int]] = []
    context = await receiving(net, there)
    context.receiver(pattern="^ord", on_message=lambda message: found.append((message.topic, message.sequence_number)))
    await until(lambda: cheap.server.subscribers and not dear.server.subscribers)
    await send(source, 3)
    await until(lambda: len(found) == 3)
    assert found == [("orders", number) for number in range(3)]


async def test_messages_of_a_source_without_stores_come_once_through_a_router(net: Network) -> None:
    context = await net.context(session_id=7)
    source = await context.source("orders")
    there = await relay(net)
    receiver = (await receiving(net, there)).receiver("orders")
    one = await proxy(net, there)
    await until(lambda: receiver._sessions)
    await source.send_many([b"0", b"1", b"2"])
    assert await take(receiver, 3) == [0, 1, 2]
    assert [session.transport for session in receiver._sessions.values()] == [one.place]


@pytest.mark.parametrize("kind", ["lbtrm", "lbtru"])
async def test_a_session_that_sources_share_is_heard_by_its_names_on_the_hop(net: Network, kind: str) -> None:
    """A router's session over LBT-RM or LBT-RU: items of other topics are not looked at, and the end is understood."""
    context = await net.context()
    source = await context.source("orders", options=OPTIONS[kind])
    other = await context.source("trades", options=OPTIONS[kind])
    session_id, index = codec.split(source.config.incarnation)
    life = codec.join(9, 4)
    events = Events()
    receiver = (await receiving(net, await relay(net))).receiver("orders", on_event=events)
    receiver.found(source.place, session_id, "", index, life)
    await until(lambda: receiver._sessions)
    await other.send(b"other")
    for number in range(3):
        await source.send(b"%d" % number)
    assert await take(receiver, 3) == [0, 1, 2]
    (session,) = receiver._sessions.values()
    assert (session.incarnation, session.transport) == (life, source.place)
    (joiner,) = receiver._joiners.values()
    assert joiner._claims == {index}
    receiver.withdrawn(source.place, session_id, index, life)
    await source.close()
    await events.first(EndOfSource)
    assert not receiver._sessions


async def test_a_life_is_heard_at_one_place_at_a_time(net: Network) -> None:
    """At the next one from its announcement there; what came on neither stream is lost."""
    events, life = Events(), codec.join(9, 4)
    receiver = (await net.context()).receiver("orders", on_event=events)
    early = hello(6) + data(3, b"3")
    async with listener(hello(5) + info(codec.join(5, 7))) as old, listener(early) as new:
        receiver.found(old.address, 5, "", 7, life)
        await until(lambda: receiver._sessions)
        (await old.connection()).transport.write(data(0, b"0"))
        assert await take(receiver, 1) == [0]
        receiver.found(new.address, 6, "", 7, life)
        await until(lambda: receiver._early.runs or events)
        assert events == []
        (await old.connection()).transport.write(data(1, b"1"))
        assert await take(receiver, 1) == [1]
        (await new.connection()).transport.write(info(codec.join(6, 7)))
        await (await old.connection()).over.wait()
        assert await take(receiver, 1) == [3]
        assert events.of(UnrecoverableLoss) == [UnrecoverableLoss(2, 2)]
        assert [session.incarnation for session in receiver._sessions.values()] == [life]
        receiver.found(old.address, 5, "", 7, life)
        await (await new.connection()).over.wait()
        (await old.connection(2)).transport.write(data(5, b"5"))
        assert await take(receiver, 1) == [5], "the first place again"
        assert events.of(UnrecoverableLoss) == [UnrecoverableLoss(2, 2), UnrecoverableLoss(4, 4)]


async def test_a_router_that_begins_again_repeats_the_same_life(net: Network) -> None:
    """Under other names. What was sent while it was away comes from the stores, and nothing comes twice."""
    _, source = await source_of(net, "a")
    there, events = await relay(net), Events()
    receiver = (await receiving(net, there, session_id=1)).receiver("orders", on_event=events)
    one = await proxy(net, there, session=5)
    await send(source, 3)
    assert await take(receiver, 3) == [0, 1, 2]
    await one.fail()
    await events.first(EndOfSource)
    await send(source, 3)
    again = await proxy(net, there, session=6)
    await send(source, 2)
    assert await take(receiver, 5) == list(range(3, 8))
    assert {(one.incarnation, one.transport) for one in receiver._sessions.values()} == {
        (source.config.incarnation, again.place)
    }
    assert not events.of(UnrecoverableLoss)
