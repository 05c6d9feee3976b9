"""A receiver that meets an earlier life of a source after a later one: the later one's messages go on."""

import attrs
import pytest

from stablecast.client import Context, Receiver, Source
from stablecast.client.subscriber import Subscriber
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import SourceInfo
from stablecast.core.subscription import subscription
from stablecast.core.subscription.inputs import Place, Settled
from stablecast.transports import codec
from tests.adapters.runtime.peers import Listener, data, hello, listener
from tests.support.network import Network, until
from tests.support.traffic import send, source_of, take

STALE_SESSION = 5
STALE = codec.join(STALE_SESSION, 7)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A life waits until earlier messages are consumed, however slow this machine is."""
    monkeypatch.setattr(subscription, "DRAIN_NS", 600 * SECOND)


async def second_life(net: Network, *, hot_failover: bool = False) -> tuple[Context, Source, Receiver]:
    """Start a source for the second time, with a receiver that has consumed a message of each life."""
    context, source = await source_of(net, "a")
    receiver = (await net.context(session_id=1)).receiver("orders", hot_failover=hot_failover)
    await send(source, 1)
    assert await take(receiver, 1) == [0]
    await context.close()
    await until(lambda: not receiver._sessions)
    context, source = await source_of(net, "a")
    await send(source, 1)
    assert await take(receiver, 1) == [1]
    return context, source, receiver


async def meet(receiver: Receiver, stale: Listener) -> SourceInfo:
    """A life between the first one and the one that the receiver follows announces itself and sends."""
    (session,) = receiver._sessions.values()
    newest = session._machine.info
    assert newest is not None
    assert newest.term > 1
    early = attrs.evolve(newest, incarnation=STALE, term=1, lives=(newest.lives[0], (STALE, 1)), low=1, high=0)
    announce(receiver, stale, early)
    await until(lambda: STALE in receiver.subscription.passed_over)
    return early


def announce(receiver: Receiver, stale: Listener, early: SourceInfo) -> None:
    stale.greeting = hello(STALE_SESSION) + codec.encode(early) + data(1, b"stale")
    receiver.found(stale.address, STALE_SESSION, stale.address)


async def test_an_earlier_life_does_not_end_the_deliveries_of_a_later_one(net: Network) -> None:
    """Neither while it is there, nor when it is gone."""
    _, source, receiver = await second_life(net)
    async with listener() as stale:
        await meet(receiver, stale)
        await send(source, 3)
        assert await take(receiver, 3) == [2, 3, 4]
        assert list(receiver._sessions) == [source.config.incarnation]
    await until(lambda: STALE not in receiver.subscription.passed_over)
    await send(source, 2)
    assert await take(receiver, 2) == [5, 6]


async def test_a_life_that_was_passed_over_is_followed_when_the_later_one_is_gone(net: Network) -> None:
    """It may be the true one: no quorum remembers which came first if stores were emptied."""
    context, source, receiver = await second_life(net)
    async with listener() as stale:
        early = await meet(receiver, stale)
        await send(source, 1)
        await until(lambda: len(receiver.inbox) > 0)
        await context.close()
        await until(lambda: stale.address in receiver.subscription.plans)
        newer = attrs.evolve(early, version=early.version + 1)
        stale.connections[0].transport.write(codec.encode(newer))
        await until(lambda: newer in [info for info, _ in receiver.subscription.passed_over.announcements.values()])
        assert receiver._sessions == {}
        assert await take(receiver, 1) == [2]
        await until(lambda: set(receiver._sessions) == {STALE})
        assert len(stale.connections) == 1
        assert STALE not in receiver.subscription.passed_over


async def test_a_life_that_is_gone_before_its_turn_is_not_joined_again(net: Network) -> None:
    context, source, receiver = await second_life(net)
    async with listener() as stale:
        await meet(receiver, stale)
        await send(source, 1)
        await until(lambda: len(receiver.inbox) > 0)
        await context.close()
        await until(lambda: stale.address in receiver.subscription.plans)
    await until(lambda: stale.address not in receiver._joiners)
    assert stale.address not in receiver.subscription.plans
    assert STALE not in receiver.subscription.passed_over


async def test_a_life_that_comes_back_gets_a_new_session(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was replaced while its stream stayed joined, and announces itself with a higher term than its successor.

    Its true announcements, which the source repeats, have its old term. The receiver hears the test's instead.
    """
    _, source, receiver = await second_life(net)
    life = source.config.incarnation
    hear = Subscriber._on_info

    def hear_others(self: Receiver, info: SourceInfo, session_id: int, place: Place) -> None:
        if info.incarnation != life:
            hear(self, info, session_id, place)

    monkeypatch.setattr(Subscriber, "_on_info", hear_others)
    (session,) = receiver._sessions.values()
    assert session.info is not None
    async with listener() as rival:
        later = attrs.evolve(session.info, incarnation=STALE, term=8, lives=(*session.info.lives, (STALE, 2)), low=2)
        announce(receiver, rival, later)
        await until(lambda: STALE in receiver._sessions)
        await send(source, 1)
        place = Place(session.transport, codec.split(life)[0], session.config.source_request)
        for term, renewed in ((7, False), (9, True)):
            hear(receiver, attrs.evolve(session.info, term=term), codec.split(life)[0], place)
            assert (receiver._sessions[life] is not session) is renewed
        assert await take(receiver, 1) == [2]
        rival.connections[0].transport.write(codec.encode(attrs.evolve(later, version=later.version + 1)))
        await send(source, 2)
        assert await take(receiver, 2) == [3, 4]


async def test_a_hot_source_counts_while_its_life_has_a_session(net: Network) -> None:
    """Its stream broke, and the session that ends then has a successor of the same life."""
    _, source, receiver = await second_life(net, hot_failover=True)
    (session,) = receiver._sessions.values()
    await send(source, 1)
    await until(lambda: len(receiver.inbox) > 0)
    receiver._joiners[session.transport].abandon()
    receiver._gone(session.transport)
    await until(lambda: session.transport in receiver.subscription.plans)
    place, _ = receiver.subscription.plans[session.transport]
    receiver.subscription.plans[session.transport] = (place, 0)
    receiver.feed(Settled(()))
    await until(lambda: receiver._sessions != {} and session not in receiver._finished)
    assert receiver._hot is not None
    assert source.config.incarnation in receiver._hot.numbers.passed
    assert await take(receiver, 1) == [2]


async def test_a_later_life_is_followed_again_after_an_earlier_one_without_a_common_past(net: Network) -> None:
    """The receiver cannot know which is later, and follows the one that it met last. The stores refuse that life."""
    _, source, receiver = await second_life(net)
    (session,) = receiver._sessions.values()
    assert session.info is not None
    async with listener() as stale:
        early = attrs.evolve(session.info, incarnation=STALE, term=1, lives=((STALE, 1),), low=1, high=0)
        announce(receiver, stale, early)
        await until(lambda: STALE in receiver._sessions)
        await send(source, 3)
    await until(lambda: list(receiver._sessions) == [source.config.incarnation])
    assert await take(receiver, 3) == [2, 3, 4]
    await send(source, 2)
    assert await take(receiver, 2) == [5, 6]
    assert len(receiver.subscription.passed_over.announcements) == 0
