"""Members of a group on real sockets: a topic is divided, and its shares move when members come, leave and die."""

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from stablecast.client import (
    Context,
    Message,
    MisuseError,
    Redelivery,
    Source,
    group_receiver,
    last,
    presence,
    stored_sources,
)
from stablecast.client.group_receiver import GroupReceiver
from stablecast.client.message_division import MessageDivision, MessageKey, octets_of
from stablecast.client.presence import announcement, decoded, presence_topic
from stablecast.client.share_receiver import ShareReceiver
from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.events import Confirmed, EndOfSource, SharesChanged
from stablecast.core.protocol.inputs import Reset
from stablecast.core.sharing import member as core_member
from stablecast.core.sharing.division import share_of_key, share_of_number
from stablecast.core.sharing.member import Disagreement, Heard, Left, MemberConfig
from stablecast.runtime import ports
from stablecast.runtime.request_port import RequestPort
from stablecast.transports import codec
from tests.adapters.client.test_inbox import batch_of
from tests.support.network import Events, Network, until, unused_port

COUNT = 60
SHARES = 4
QUICK = {"ume_activity_timeout": 1500}
"""A share whose holder is silent is free after 1.5 s."""


class Worker:
    """A member that processes messages in a task; `done` has their payloads."""

    def __init__(self, member: GroupReceiver, process: Callable[[Message], object] = lambda message: None) -> None:
        self.member = member
        self.done: list[bytes] = []
        self._process = process
        self.work = asyncio.create_task(self._work())

    async def _work(self) -> None:
        async for message in self.member:
            self._process(message)
            self.done.append(message.payload)

    async def leave(self) -> None:
        await self.member.close()
        await self.work


def processed(*workers: Worker) -> Counter[bytes]:
    return Counter(payload for worker in workers for payload in worker.done)


def numbered(first: int, stop: int) -> Counter[bytes]:
    return Counter(b"%d" % number for number in range(first, stop))


async def member(context: Context, **arguments: Any) -> Worker:
    return Worker(context.receiver("orders", group="billing", shares=SHARES, **arguments))


async def divided(*workers: Worker) -> None:
    """Wait until each share has one holder, and all have about as many."""
    least = SHARES // len(workers)
    await until(
        lambda: (
            sorted(share for worker in workers for share in worker.member.shares) == list(range(SHARES))
            and all(len(worker.member.shares) - least in (0, 1) for worker in workers)
        )
    )


def lapsed(member: GroupReceiver) -> ShareReceiver:
    """End the leases of the only share of a member, as a pause beyond them does; return its receiver."""
    (share,) = member._open.values()
    for session in share.sessions:
        for registration in session._machine.enrollment.registrations.values():
            registration.timers.deadlines = {
                kind: due - 10_000 * MILLISECOND for kind, due in registration.timers.deadlines.items()
            }
    return share


async def send(source: Source, first: int, stop: int) -> None:
    for number in range(first, stop):
        await source.send(b"%d" % number, {"customer": f"c{number % 7}"})


@pytest.fixture
async def source(net: Network) -> Source:
    stores = [await net.store(name) for name in ("a", "b", "c")]
    return await (await net.context()).source("orders", stores=stores, session_id=1)


async def test_members_divide_a_topic(net: Network, source: Source) -> None:
    """Each message is processed by one member, and each member has work."""
    events = Events()
    workers = [await member(await net.context(), on_event=events), await member(await net.context())]
    await divided(*workers)
    await send(source, 0, COUNT)
    await until(lambda: len(processed(*workers)) == COUNT)
    assert processed(*workers) == numbered(0, COUNT)
    assert all(worker.done for worker in workers)
    assert workers[0].member.members == 2
    changes = events.of(SharesChanged)
    assert changes[-1] == SharesChanged("orders", "billing", workers[0].member.shares, 2)
    assert all(before != after for before, after in pairwise(changes))


async def test_members_come_and_leave_while_messages_flow(net: Network, source: Source) -> None:
    """No member fails, so each message is processed once, whoever holds its share when."""
    first = await member(await net.context())
    await divided(first)
    sending = asyncio.create_task(send(source, 0, 10 * COUNT))
    second = await member(await net.context())
    await divided(first, second)
    third = await member(await net.context())
    await divided(first, second, third)
    await first.leave()
    await divided(second, third)
    await sending
    await send(source, 10 * COUNT, 11 * COUNT)
    await until(lambda: len(processed(first, second, third)) == 11 * COUNT)
    assert processed(first, second, third) == numbered(0, 11 * COUNT)


async def test_a_message_is_confirmed_once_by_the_share_that_processed_it(net: Network) -> None:
    """The other shares pass over it. They acknowledge it to the stores, and confirm nothing."""
    events, context = Events(), await net.context()
    source = await context.source(
        "orders",
        stores=[await net.store()],
        session_id=1,
        on_event=events,
        options={"ume_confirmed_delivery_notification": 1, "ume_retention_unique_confirmations": 1},
    )
    first = await member(await net.context(), options=QUICK)
    await divided(first)
    await send(source, 0, COUNT)
    await until(lambda: source.stable_through == COUNT - 1 and len(first.done) == COUNT)
    await first.leave()
    second = await member(await net.context(), options=QUICK)
    await divided(second)
    await send(source, COUNT, 2 * COUNT)
    stop = 2 * COUNT
    await until(lambda: len(confirmations(events)) >= stop)
    assert confirmations(events) == Counter(range(stop))
    assert processed(first, second) == numbered(0, stop)


def confirmations(events: Events) -> Counter[int]:
    return Counter(number for event in events.of(Confirmed) for number in range(event.first, event.last + 1))


async def test_a_share_in_work_moves_once_its_messages_are_settled(net: Network, source: Source) -> None:
    """A message that was refused comes again to the same member; only then does its share go to another one."""
    refusals = 3

    def process(message: Message) -> None:
        if message.attempt <= refusals:
            message.nack(0.05)

    first = Worker(
        (await net.context()).receiver("orders", group="billing", shares=SHARES, redelivery=Redelivery()), process
    )
    await divided(first)
    await send(source, 0, SHARES)
    second = await member(await net.context())
    await divided(first, second)
    await until(lambda: len(first.done) == SHARES * (refusals + 1))
    await send(source, SHARES, COUNT)
    await until(lambda: len(processed(first, second)) == COUNT)
    assert not set(second.done) & set(numbered(0, SHARES))


async def test_a_message_in_hand_keeps_its_share_although_the_source_returned(net: Network) -> None:
    """The session that delivered it is over: a session with the next life answers for its messages."""
    stores = [await net.store(name) for name in ("a", "b", "c")]
    context = await net.context()
    source = await context.source("orders", stores=stores, session_id=1)
    mine: GroupReceiver = (await net.context()).receiver("orders", group="billing", shares=1)
    await send(source, 0, 2)
    message = await anext(mine)
    await context.close()
    again = await (await net.context()).source("orders", stores=stores, session_id=1)
    await send(again, 2, 3)
    share = mine._open[0]
    await until(lambda: share.sessions and all(one.incarnation != message.incarnation for one in share.sessions))
    assert share.busy
    share.drain()
    assert len(mine._delivery.inbox) == 0
    assert mine.unconsumed == 1
    message.consumed()
    await until(lambda: not share.busy)
    assert mine.unconsumed == 0


async def test_a_dead_member_is_replaced(net: Network, source: Source) -> None:
    """Its sockets end without a last word. Only its own unacknowledged messages may come again."""
    dying = await net.context()
    first, second = await member(dying), await member(await net.context())
    await divided(first, second)
    await send(source, 0, COUNT)
    await until(lambda: len(processed(first, second)) == COUNT)
    await kill(dying, first)
    await divided(second)
    await send(source, COUNT, 2 * COUNT)
    await until(lambda: len(processed(first, second)) == 2 * COUNT)
    twice = {payload for payload, count in processed(first, second).items() if count > 1}
    assert twice <= set(first.done)


async def kill(context: Context, worker: Worker) -> None:
    """End a member as a crash does: it says nothing more, and its sockets are closed."""
    worker.work.cancel()
    inner = worker.member
    inner._driver.close()
    inner._watch_timer.cancel()
    for receiver in inner._open.values():
        for session in receiver.sessions:
            session._driver.close()
        await receiver.close()
        await receiver.place.port.close()
    inner._open.clear()
    assert inner._presence is not None
    await inner._presence.close()
    inner._closed = True


async def test_messages_of_one_key_go_to_one_member_in_order(net: Network, source: Source) -> None:
    """A property or a function names the key."""
    keys: list[MessageKey] = ["customer", lambda message: message.properties["customer"]]
    for number, key in enumerate(keys):
        contexts = [await net.context() for _ in range(2)]
        group = f"group {number}"
        workers = [Worker(one.receiver("orders", group=group, shares=SHARES, key=key)) for one in contexts]
        await divided(*workers)
        await send(source, 0, COUNT)
        await until(lambda: sum(processed(*workers).values()) >= COUNT)  # noqa: B023
        owners = [{int(payload) % 7 for payload in worker.done} for worker in workers]
        assert not owners[0] & owners[1]
        for worker in workers:
            await worker.leave()


async def test_a_member_that_was_stopped_hands_nothing_over(net: Network, source: Source) -> None:
    """After a pause beyond the lease its shares may be another member's: what waits in the inbox is dropped."""
    context = await net.context()
    inner = context.receiver("orders", group="billing", shares=1, options=QUICK)
    await until(lambda: inner.shares == (0,))
    await send(source, 0, 3)
    assert (await anext(inner)).payload == b"0"
    await until(lambda: len(inner._delivery.inbox) + inner._delivery.inbox.rest >= 2)
    share = lapsed(inner)
    inner._looked_at -= 1
    inner._delivery.reader.until = 0
    assert (await anext(inner)).payload == b"1"
    assert inner._open[0] is not share


async def test_a_message_without_a_lease_comes_again_with_the_next_claim(
    net: Network, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The member looks at its leases now and then, and may be granted the share anew before it looks."""
    monkeypatch.setattr(group_receiver, "WATCH_SECONDS", 3600)
    context = await net.context()
    inner = context.receiver("orders", group="billing", shares=1, options=QUICK)
    await send(source, 0, 1)
    assert (await anext(inner)).payload == b"0"
    lapsed(inner)
    await send(source, 1, 3)
    await until(lambda: not inner.shares)
    assert not inner._delivery.inbox
    monkeypatch.undo()
    inner._watch()
    assert [(await anext(inner)).payload for _ in range(2)] == [b"1", b"2"]


@pytest.mark.rows("P-584", "P-588")
async def test_messages_of_a_share_that_the_stores_forgot_still_come(net: Network, source: Source) -> None:
    """They are not acknowledged, and the member does not claim the share again."""
    context = await net.context()
    inner = context.receiver("orders", group="billing", shares=1)
    await send(source, 0, 3)
    found = [(await anext(inner)).payload for _ in range(3)]
    (share,) = inner._open.values()
    await inner.deregister()
    assert [session.withdrawn for session in share.sessions] == [True]
    for number in range(3, 6):
        await send(source, number, number + 1)
        found.append((await anext(inner)).payload)
        inner._look()
    assert found == [b"%d" % number for number in range(6)]
    assert inner._open == {0: share}
    await inner.close()


async def test_a_share_that_no_store_knows_begins_where_the_member_says_also_without_a_source(
    net: Network, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_sources, "LIVE_SECONDS", 0.0)
    await send(source, 0, 6)
    await source.close()
    async with Context() as context:
        stores = [store.address for store in net.stores.values()]
        inner = context.receiver("orders", group="billing", shares=1, stores=stores, start=last(2))
        assert [(await anext(inner)).payload for _ in range(2)] == [b"4", b"5"]
        await inner.close()


async def test_a_member_joins_the_only_source_at_its_place(net: Network, source: Source) -> None:
    async with Context() as context:
        inner = context.receiver("orders", group="billing", shares=1, source=source.place)
        await send(source, 0, 1)
        assert (await anext(inner)).payload == b"0"
        await inner.close()


async def test_a_share_is_claimed_later_if_descriptors_are_scarce(
    net: Network, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_member, "MAX_WAIT_NS", core_member.MIN_WAIT_NS)
    failures = [ports.ScarcityError("no descriptor is left")]

    def listening(*where: Any) -> Any:
        if failures:
            raise failures.pop()
        return ports.listen_in_range(*where)

    places = SimpleNamespace(listen_in_range=listening, ScarcityError=ports.ScarcityError)
    monkeypatch.setattr(group_receiver, "ports", places)
    inner = (await net.context()).receiver("orders", group="billing", shares=2)
    await until(lambda: inner.shares == (0, 1))
    await send(source, 0, 2)
    assert {(await anext(inner)).payload for _ in range(2)} == {b"0", b"1"}
    await inner.close()


@pytest.mark.parametrize("where", [(ports, "listen_in_range"), (RequestPort, "start")])
async def test_a_member_that_cannot_open_a_share_ends_and_says_so(
    monkeypatch: pytest.MonkeyPatch, where: tuple[Any, str]
) -> None:
    """Nobody else would look for the error of what it does in the background."""

    def failing(*_: Any) -> Any:
        raise ports.PortError("no port is free")

    async with Context() as context:
        monkeypatch.setattr(*where, failing)
        inner = context.receiver("orders", group="billing", shares=1, source=f"127.0.0.1:{unused_port()}")
        with pytest.raises(StablecastError, match="no port is free"):
            await anext(inner)


async def test_each_share_learns_of_a_broken_connection(
    net: Network, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = (await net.context()).receiver("orders", group="billing", shares=2)
    await until(lambda: inner.shares == (0, 1))
    found: list[object] = []
    monkeypatch.setattr(ShareReceiver, "on_broken", lambda _, event: found.append(event))
    inner.on_broken(Reset("127.0.0.1:2"))
    assert found == [Reset("127.0.0.1:2")] * 2
    await inner.close()


async def test_a_share_that_opens_later_joins_a_source_at_its_newest_place() -> None:
    async with Context() as context:
        inner = context.receiver("orders", group="billing", shares=1, source=f"127.0.0.1:{unused_port()}")
        places = [f"127.0.0.1:{unused_port()}" for _ in range(2)]
        for session, place in enumerate(places, 5):
            inner.found(place, session, "", 7, 9)
        await until(lambda: inner._open and inner._open[0].names.hops)
        assert [place for place, _ in inner._open[0].names.hops] == places[1:]


async def test_a_share_that_opens_later_does_not_join_a_source_that_is_gone() -> None:
    """Sources that crash announce no end, and a member may run for months."""
    async with Context() as context:
        inner = context.receiver("orders", group="billing", shares=1, source=f"127.0.0.1:{unused_port()}")
        places = [f"127.0.0.1:{unused_port()}" for _ in range(2)]
        await until(lambda: inner._open)
        for session, place in enumerate(places, 5):
            inner.found(place, session, "", 7, 9 + session)
        inner._open[0].place.lost_source("orders", places[0], others=True)
        assert [known[0] for known in inner._places.values()] == places[1:]


async def test_a_share_is_released_although_no_store_shows_its_records(
    net: Network, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its member cannot wait for stores that may be away for long."""
    monkeypatch.setattr(group_receiver, "RECORD_SECONDS", 0.0)
    monkeypatch.setattr(ShareReceiver, "record", lambda _: False)
    inner = (await net.context()).receiver("orders", group="billing", shares=1)
    await send(source, 0, 1)
    assert (await anext(inner)).payload == b"0"
    await inner.close()
    assert not inner.shares


async def test_the_end_of_a_life_takes_no_later_life_from_a_share(source: Source) -> None:
    """Both have one place, and the end of the first may be told after the second was found there."""
    session, index = codec.split(source.life)
    async with Context() as context:
        worker = await member(context, source=f"127.0.0.1:{unused_port()}")
        worker.member.found(source.place, session, "")
        worker.member.withdrawn(source.place, session + 1, index)
        await send(source, 0, COUNT)
        await until(lambda: processed(worker) == numbered(0, COUNT))
        await worker.leave()


async def test_members_with_other_shares_are_refused(
    net: Network, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    """Two divisions would process each message twice."""
    first = await member(await net.context())
    await divided(first)
    other = (await net.context()).receiver("orders", group="billing", shares=SHARES + 1)
    with pytest.raises(MisuseError, match="into 4 shares, this one into 5: give all members the same shares="):
        await anext(other)
    first.member._disagree(Disagreement(7, SHARES + 1))  # It was there before, so it goes on.
    await send(source, 0, COUNT)
    await until(lambda: processed(first) == numbered(0, COUNT))
    assert any("into 5 shares, this one into 4" in record.getMessage() for record in caplog.records)


async def test_a_source_without_stores_is_not_shared(net: Network) -> None:
    """Without stores nobody keeps who has which share."""
    context = await net.context()
    source = await context.source("ticks")
    member = (await net.context()).receiver("ticks", group="billing")
    await until(lambda: source.try_send(b"tick") is not None)
    with pytest.raises(MisuseError, match="has no stores"):
        await anext(member)


def test_the_end_of_a_stream_tells_who_left_for_as_many_members_as_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(presence, "MAX_PLACES", 2)
    news: list[object] = []
    known = presence.Presence(MemberConfig(9, SHARES), news.append, None)  # type: ignore[arg-type]
    for number in (1, 2, 3):
        message: Any = SimpleNamespace(payload=announcement(MemberConfig(number, SHARES), leaving=False), source=number)
        known._on_message(message)
    del news[:]
    for place in (1, 2, 3):
        known._on_event(EndOfSource("orders", place))  # type: ignore[arg-type]
    assert news == [Left(2), Left(3)]


def test_announcements_of_anyone_are_decoded() -> None:
    """Anybody may send on the topic."""
    config = MemberConfig(7, 16)
    assert decoded(announcement(config, leaving=False)) == Heard(7, 16)
    assert decoded(announcement(config, leaving=True)) == Left(7)
    for bad in (b"", b"\xff", b"[]", b"{}", b'{"member": "x", "shares": 1, "leaving": false}', b"[" * 100_000):
        assert decoded(bad) is None
    for wrong in (
        b'{"member": "-1", "shares": 1, "leaving": false}',
        b'{"member": "18446744073709551616", "shares": 1, "leaving": false}',
        b'{"member": "7", "shares": 1, "leaving": 1}',
        b'{"member": "7", "shares": "1", "leaving": false}',
    ):
        assert decoded(wrong) is None
    assert presence_topic("a.b", "c") != presence_topic("a", "b.c")


@pytest.mark.parametrize("key", [b"c1", "c1", 7])
def test_a_key_is_bytes_text_or_a_number(key: object) -> None:
    """Two messages of one key go to one share, and the same at each member."""
    division = MessageDivision(1000, lambda _: key)
    assert len({*division(batch_of(2)), share_of_key(octets_of(key), 1000)}) == 1
    with pytest.raises(MisuseError, match="must be bytes, str or int, not list"):
        octets_of([key])
    assert octets_of(True) == octets_of(1)
    assert MessageDivision(1000, None)(batch_of(2)) == [share_of_number(number, 1000) for number in (0, 1)]


@pytest.mark.parametrize(
    ("name", "shares", "key"), [("x" * 300, 4, None), (b"billing", 4, None), ("billing", "4", None), ("billing", 4, 5)]
)
async def test_a_member_that_cannot_be(net: Network, name: Any, shares: Any, key: Any) -> None:
    context = await net.context()
    with pytest.raises(MisuseError):
        context.receiver("orders", group=name, shares=shares, key=key)
    assert not context._receivers
