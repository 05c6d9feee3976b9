"""`receiver(start=...)`: where a receiver begins that no store knows; a store that knows it decides otherwise."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from stablecast.client import last
from stablecast.client.range_bounds import ReadBounds, ReceiverStart
from stablecast.client.range_inquiry import RangeRoutes
from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.events import RegistrationComplete
from stablecast.core.protocol.messages import SourceInfo, StoreEntry
from stablecast.core.protocol.settings import RepositoryType
from stablecast.core.protocol.stored_contents import StoredAnswer
from stablecast.runtime import machine
from tests.support.network import Events, Network, until
from tests.support.traffic import send, source_of, take


@pytest.mark.parametrize(
    ("start", "first"),
    [("earliest", 0), ("latest", 100), (last(10), 90), (last(1000), 0), (42, 42), (None, 0)],
)
async def test_where_a_new_receiver_begins(net: Network, start: Any, first: int) -> None:
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 100)
    events = Events()
    receiver = (await net.context(session_id=1)).receiver("orders", start=start, on_event=events)
    await events.first(RegistrationComplete)
    await send(source, 5)
    assert await take(receiver, 105 - first) == list(range(first, 105))


async def test_a_receiver_begins_at_a_time(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = datetime(2026, 1, 31, 12, tzinfo=UTC)
    now = [begin]
    monkeypatch.setattr(machine.clock, "wall_ns", lambda: round(now[0].timestamp()) * SECOND, raising=False)
    _, source = await source_of(net, "a", "b", "c")
    for _ in range(5):
        await send(source, 10)
        now[0] += timedelta(hours=1)
    context = await net.context(session_id=1)
    receiver = context.receiver("orders", start=begin + timedelta(hours=2, minutes=30))
    assert await take(receiver, 20) == list(range(30, 50))


async def test_a_receiver_that_returns_goes_on_where_it_was(net: Network) -> None:
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 100)
    context = await net.context(session_id=1)
    async with context.receiver("orders", start=90) as receiver:
        assert await take(receiver, 5) == list(range(90, 95))
    for start in ("earliest", 3, last(1)):
        await send(source, 1)
        await context.close()
        context = await net.context(session_id=1)
        async with context.receiver("orders", start=start) as again:
            [number] = await take(again, 1)
            assert 94 <= number < 100


async def test_the_next_life_of_a_source_is_received_whole(net: Network) -> None:
    owner, source = await source_of(net, "a", "b", "c")
    await send(source, 10)
    context = await net.context(session_id=1)
    receiver = context.receiver("orders", start=5)
    assert await take(receiver, 5) == list(range(5, 10))
    await owner.close()
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 10)
    assert await take(receiver, 10) == list(range(10, 20))


@attrs.define
class Beginning:
    """A session that asks where to begin; no store knows its receiver."""

    info: SourceInfo
    returning: bool = False

    @property
    def incarnation(self) -> int:
        return self.info.incarnation


async def test_the_bound_counts_once_for_each_source(net: Network) -> None:
    """What the next life sent before the receiver met it must not be left out: nothing was acknowledged yet."""
    receiver = (await net.context(session_id=1)).receiver("orders", start="latest")
    found = []
    for life, place in (7, 70), (8, 70), (8, 70), (9, 90), (10, 90):
        info = SourceInfo(life, "orders", 1, 0, 20, "", (1,), False, (StoreEntry(0, 0, "a", place, 1),))
        receiver.subscription.memory.identity.begin(info, ())
        session: Any = Beginning(info)
        found.append(receiver.choose_low(AskLow(20, 0, 3), session))
    assert found == [21, 3, 3, 21, 3]


async def test_a_receiver_that_is_closed_asks_no_more_where_it_begins(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(*_: object, **__: object) -> list[StoredAnswer]:
        await asyncio.get_running_loop().create_future()
        return []

    _, source = await source_of(net, "a")
    await send(source, 1)
    context = await net.context(session_id=1)
    monkeypatch.setattr(RangeRoutes, "ask", ask)
    receiver = context.receiver("orders", start=datetime(2026, 1, 31, tzinfo=UTC))
    start = receiver.start
    assert start is not None
    await until(lambda: start._tasks)
    [task] = start._tasks
    await receiver.close()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_two_answers_to_one_question_are_refused(net: Network) -> None:
    context = await net.context()
    with pytest.raises(MisuseError, match="give one of them"):
        context.receiver("orders", start=5, start_at=lambda question: question.low)
    with pytest.raises(MisuseError, match="cannot begin at 'now'"):
        context.receiver("orders", start="now")


@pytest.mark.parametrize("kind", [RepositoryType.MEMORY, RepositoryType.DISK])
async def test_a_time_before_all_messages_is_the_earliest_one(net: Network, kind: RepositoryType) -> None:
    """Repositories in memory know no times, and must not leave out what they have (whole seed 20074)."""
    long_ago, to_come = datetime(1970, 1, 2, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
    for name in ("a", "b", "c"):
        await net.store(name, kind=kind)
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 20)
    context = await net.context(session_id=1)
    assert await take(context.receiver("orders", start=long_ago), 20) == list(range(20))
    stores = [store.address for store in net.stores.values()]
    async with context.reader("orders", stores=stores, since=long_ago, until=to_come) as reader:
        assert [message.number async for message in reader] == list(range(20))


ANSWER = StoredAnswer(
    incarnation=9,
    topic="orders",
    version=0,
    low=0,
    high=20,
    request="",
    group_sizes=(),
    confirmations=False,
    stores=(),
    answered=1,
    since=14,
)


@pytest.mark.parametrize(
    ("answers", "first"),
    [
        ([ANSWER, attrs.evolve(ANSWER, since=16), None, None], 14),
        ([ANSWER, ANSWER, attrs.evolve(ANSWER, since=12, readable=False), None], 14),
        ([ANSWER, ANSWER, attrs.evolve(ANSWER, since=11, incarnation=8), None], 14),
        ([ANSWER, attrs.evolve(ANSWER, since=None), None, None], 14),
        ([ANSWER, None, None, None], 3),
    ],
    ids=["majority", "waits-for-the-life", "earlier-life", "nothing-since", "too-few"],
)
async def test_whose_numbers_of_a_time_count(answers: list[StoredAnswer | None], first: int) -> None:
    """A store may lack messages, or name a number that a life used again, above messages that came later."""
    stores = tuple(StoreEntry(at, 0, str(at), 5, 1) for at in range(4))
    life = SourceInfo(9, "orders", 1, 0, 20, "", (3,), False, stores)
    chosen: list[int] = []

    class Session:
        info = life
        returning = False

        def choose(self, _: AskLow, low: int) -> None:
            chosen.append(low)

    class Routes(RangeRoutes):
        async def ask(self, store: str, **_: Any) -> list[StoredAnswer]:
            answer = answers[int(store)]
            return [] if answer is None else [answer]

    assert ReceiverStart(ReadBounds.of(last(100), None), Routes()).number(AskLow(20, 0, 3), Session()) == 3
    start = ReceiverStart(ReadBounds.of(datetime(2026, 1, 31, tzinfo=UTC), None), Routes())
    assert start.number(AskLow(20, 0, 3), Session()) is None
    await asyncio.gather(*start._tasks)
    assert chosen == [first]


@pytest.mark.parametrize(
    ("returning", "announced", "first"), [(True, True, 3), (False, False, 3), (True, False, 3), (False, True, 42)]
)
async def test_a_bound_is_for_receivers_that_no_store_knows(returning: bool, announced: bool, first: int) -> None:
    life = SourceInfo(9, "orders", 1, 0, 20, "", (), False, ())
    session: Any = SimpleNamespace(info=life if announced else None, returning=returning)
    assert ReceiverStart(ReadBounds.of(42, None), RangeRoutes()).number(AskLow(20, 0, 3), session) == first
