"""Readers: any range of a topic from the stores, without registering (spec/stored_messages.md)."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from stablecast.client import (
    Context,
    MissingRange,
    RangeReader,
    ReadFailed,
    TopicUnknown,
    last,
    range_reader,
    range_replay,
    range_source,
)
from stablecast.client.range_bounds import ReadBounds
from stablecast.client.range_inquiry import RangeRoutes
from stablecast.client.range_source import Portion, _portions
from stablecast.core.errors import MisuseError
from stablecast.core.machine.serial import wire
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.effects import SendStored
from stablecast.core.receiver.range_progress import Hole, HoleReason
from stablecast.runtime import machine
from stablecast.store.retransmission import Retrieval
from stablecast.transports import codec
from tests.support.network import Network, until, unused_port
from tests.support.traffic import send, source_of


def addresses(net: Network) -> list[str]:
    return [store.address for store in net.stores.values()]


async def numbers(reader: RangeReader) -> list[int]:
    found = []
    async for message in reader:
        assert int(message.payload) == message.number
        found.append(message.number)
    return found


async def read(context: Context, net: Network, **bounds: Any) -> list[int]:
    async with context.reader("orders", stores=addresses(net), **bounds) as reader:
        found = await numbers(reader)
        assert not reader.holes
    return found


def test_messages_that_came_together_are_joined_by_life_and_number() -> None:
    def one(number: int, life: int) -> codec.Recovered:
        return codec.Recovered(9, life, wire(number), b"%d" % number)

    run = codec.RecoveredRun(9, 2, wire(4), [b"4", b"5"])
    messages: list[codec.Recovered | codec.RecoveredRun] = [
        one(-1, 1),
        one(0, 1),
        one(1, 2),
        one(3, 2),
        run,
        one(6, 2),
        one(7, 2),
    ]
    assert list(_portions(messages, 0)) == [
        Portion(-1, 1, [b"-1", b"0"]),
        Portion(1, 2, [b"1"]),
        Portion(3, 2, [b"3"]),
        Portion(4, 2, [b"4", b"5"]),
        Portion(6, 2, [b"6", b"7"]),
    ]


async def test_a_reader_reads_all_that_is_stable_and_registers_nowhere(net: Network) -> None:
    owner, source = await source_of(net, "a", "b", "c")
    await send(source, 5000)
    await owner.close()
    clients = {name: len(store.machine.status.clients) for name, store in net.stores.items()}
    context = await net.context()
    assert await read(context, net) == list(range(5000))
    assert {name: len(store.machine.status.clients) for name, store in net.stores.items()} == clients


@pytest.mark.parametrize(
    ("since", "until_number", "expected"),
    [
        (30, None, range(30, 100)),
        (30, 40, range(30, 40)),
        (None, 7, range(7)),
        ("earliest", 500, range(100)),
        (last(10), None, range(90, 100)),
        (last(1000), None, range(100)),
        (last(10), 50, range(40, 50)),
        ("latest", None, range(0)),
        (1000, None, range(0)),
    ],
)
async def test_the_bounds_of_a_range(net: Network, since: Any, until_number: int | None, expected: range) -> None:
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 100)
    assert await read(await net.context(), net, since=since, until=until_number) == list(expected)


async def test_a_range_by_time_is_kept_over_restarts(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = datetime(2026, 1, 31, 12, microsecond=125_000, tzinfo=UTC)
    now = [begin]
    monkeypatch.setattr(machine.clock, "wall_ns", lambda: round(now[0].timestamp() * 1000) * MILLISECOND, raising=False)
    owner, source = await source_of(net, "a", "b", "c")
    for _ in range(10):
        await send(source, 100)
        now[0] += timedelta(hours=1)
    await owner.close()
    for name in ("a", "b", "c"):
        await net.store(name, await net.stop(name))
    context = await net.context()
    at = begin + timedelta(hours=3, minutes=-30)
    assert await read(context, net, since=at) == list(range(300, 1000))
    assert await read(context, net, since=at, until=begin + timedelta(hours=5)) == list(range(300, 500))
    assert await read(context, net, until=begin) == []
    assert await read(context, net, since=begin + timedelta(days=1)) == []
    async with context.reader("orders", stores=addresses(net), since=at, times=True) as reader:
        found = [message async for message in reader]
    times = {message.number: message.came_at for message in found}
    assert times == {number: begin + timedelta(hours=number // 100) for number in range(300, 1000)}
    assert {message.received_at for message in found} == {now[0].timestamp()}


async def test_a_store_that_ends_in_the_middle_costs_nothing(net: Network) -> None:
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 20_000)
    context = await net.context()
    found = []
    async with context.reader("orders", stores=addresses(net)) as reader:
        async for message in reader:
            found.append(message.number)
            if len(found) == 5000:
                await net.stop("a")
        assert not reader.holes
    assert found == list(range(20_000))


async def test_a_request_that_a_store_does_not_answer_is_made_again(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_source, "RETRY_NS", 10 * MILLISECOND)
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 100)
    serve, asked = Retrieval.serve, list[Retrieval]()

    def once_deaf(retrieval: Retrieval, effect: SendStored) -> None:
        if retrieval in asked:
            serve(retrieval, effect)
        asked.append(retrieval)

    monkeypatch.setattr(Retrieval, "serve", once_deaf)
    assert await read(await net.context(), net) == list(range(100))


async def test_a_reader_waits_for_the_only_store_that_has_a_message(net: Network) -> None:
    _, source = await source_of(net, "a")
    await send(source, 3000)
    context = await net.context()
    found: list[int] = []
    async with context.reader("orders", stores=addresses(net)) as reader:
        async for message in reader:
            found.append(message.number)
            if len(found) == 1:
                reading = next(iter(reader._readings))
                reading.machine.stop = 3000
                where = await net.stop("a")
                await net.store("a", where)
    assert found == list(range(3000))


async def test_missing_messages_are_named_with_their_reason(net: Network) -> None:
    await net.store("a", size_threshold=200_000, disk_limit=400_000)
    _, source = await source_of(net, "a")
    for first in range(0, 2000, 100):
        await source.send_many([b"%01000d" % number for number in range(first, first + 100)])
        await source.wait_stable_through(first + 99)
    [kept] = net.stores["a"].machine.status.repositories.values()
    trail = kept.trail
    assert trail > 0
    context = await net.context()
    holes: list[MissingRange] = []
    async with context.reader("orders", stores=addresses(net), since=0, on_hole=holes.append) as reader:
        found = await numbers(reader)
    assert found == list(range(trail, 2000))
    assert [(hole.first, hole.last, hole.reason) for hole in holes] == [(0, trail - 1, HoleReason.LET_GO)]
    assert reader.holes == holes
    assert reader.missing_numbers == trail
    assert await read(context, net) == list(range(trail, 2000))


def test_all_holes_are_reported_and_counted_beyond_those_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "MAX_HOLES", 2)
    told: list[MissingRange] = []
    options = range_reader.ReadOptions(ReadBounds(), ("127.0.0.1:9",), on_hole=told.append)
    reader = RangeReader(RangeRoutes(), "orders", options)
    reading: Any = SimpleNamespace(contents=SimpleNamespace(topic="orders", session_id=7, incarnation=1))
    for first in 0, 10, 20:
        reader.missing(reading, Hole(first, first + 5, HoleReason.AWAY))
    assert [(hole.first, hole.last) for hole in told] == [(0, 4), (10, 14), (20, 24)]
    assert reader.holes == told[:2]
    assert reader.missing_numbers == 15


async def test_messages_on_a_store_that_is_away_are_named(net: Network) -> None:
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 10)
    await net.stop("c")
    context = await net.context()
    stores = [*addresses(net), f"127.0.0.1:{unused_port()}"]
    async with context.reader("orders", stores=stores) as reader:
        assert await numbers(reader) == list(range(10))
        [reading] = reader._readings
    async with context.reader("orders", stores=stores) as reader:
        [reading] = reader._readings
        for holding in reading.machine.holdings.values():
            holding.held.remove(4, 6)
        reading.machine.asked.clear()
        assert not reading.machine.accept(4, 6)
    assert [store in reading.machine.away for store in stores] == [False, False, True]


async def test_a_quorum_of_stores_must_answer(net: Network) -> None:
    _, source = await source_of(net, "a")
    await send(source, 10)
    stores = [*addresses(net), f"127.0.0.1:{unused_port()}", f"127.0.0.1:{unused_port()}"]
    context = await net.context()
    with pytest.raises(ReadFailed, match=r"1 of 3 stores of 'orders' answered and 2 are needed"):
        async with context.reader("orders", stores=stores, patience=0.5):
            pass
    async with context.reader("orders", stores=stores, quorum=1) as reader:
        assert await numbers(reader) == list(range(10))


async def test_a_topic_that_no_store_holds_is_refused_unless_it_may_be_new(net: Network) -> None:
    _, source = await source_of(net, "a")
    await send(source, 10)
    context = await net.context()
    for follow in (False, True):
        with pytest.raises(TopicUnknown, match=r"no store holds a source of 'other': .* new=True"):
            await context.reader("other", stores=addresses(net), follow=follow).__aenter__()
    with pytest.raises(TopicUnknown, match="no store holds source 8 or 9 of 'orders'"):
        await context.reader("orders", stores=addresses(net), sources=[9, 8]).__aenter__()
    where = f"127.0.0.1:{unused_port()}"
    with pytest.raises(TopicUnknown, match=f"no store that answered .* {where} did not answer"):
        await context.reader("other", stores=[*addresses(net), where], patience=0.2, quorum=1).__aenter__()
    async with context.reader("other", stores=addresses(net), new=True) as reader:
        assert await numbers(reader) == []
        assert reader.sources == []
    async with context.reader("other", stores=addresses(net), new=True, follow=True, until=5) as reader:
        await send(await context.source("other", stores=addresses(net), session_id=8), 5)
        assert await numbers(reader) == list(range(5))


async def test_a_reader_follows(net: Network) -> None:
    _, source = await source_of(net, "a", "b", "c")
    await send(source, 10)
    context = await net.context()
    found = []
    async with context.reader("orders", stores=addresses(net), follow=True) as reader:
        async for message in reader:
            found.append(message.number)
            if message.number in (9, 19):
                await send(source, 10)
            if message.number == 29:
                break
    assert found == list(range(30))
    async with context.reader("orders", stores=addresses(net), follow=True, since=5, until=25) as reader:
        assert await numbers(reader) == list(range(5, 25))


async def test_who_names_the_end_learns_what_a_store_that_is_behind_lacks(net: Network) -> None:
    """An archive knows from other stores that these messages are stable: it must not go on without a word."""
    _, source = await source_of(net, "a")
    await send(source, 10)
    context = await net.context()
    async with context.reader("orders", stores=addresses(net), since=5, until=15, stable=False) as reader:
        assert await numbers(reader) == list(range(5, 10))
    assert [(hole.first, hole.last, hole.reason) for hole in reader.holes] == [(10, 14, HoleReason.NEVER_STORED)]


async def test_two_sources_are_read_and_chosen(net: Network) -> None:
    _, one = await source_of(net, "a", "b", "c")
    context = await net.context()
    two = await context.source("orders", stores=addresses(net), session_id=8)
    await send(one, 100)
    await send(two, 50)
    async with context.reader("orders", stores=addresses(net)) as reader:
        found = [(message.session_id, message.number) async for message in reader]
    # A source without a session id is named by one of its lives.
    async with context.reader("orders", stores=addresses(net), sources=[two.config.incarnation]) as reader:
        assert {message.session_id async for message in reader} == {8}
    assert sorted(found) == [*((7, number) for number in range(100)), *((8, number) for number in range(50))]
    async with context.reader("orders", stores=addresses(net), sources=[8]) as reader:
        assert await numbers(reader) == list(range(50))


async def test_large_messages_belong_to_the_range_of_their_last_number(net: Network) -> None:
    _, source = await source_of(net, "a", "b", "c")
    large = [bytes([65 + index]) * 200_000 for index in range(3)]
    for payload in large:
        await (await source.send(payload, properties={"size": len(payload)})).stable()
    pieces = source.next_number // 3
    assert pieces > 1
    context = await net.context()
    found = []
    for first in range(0, source.next_number, 2):
        async with context.reader("orders", stores=addresses(net), since=first, until=first + 2) as reader:
            async for message in reader:
                found.append(message.payload)
                assert message.properties == {"size": 200_000}
                assert message.number % pieces == pieces - 1
    assert found == large


async def test_memory_is_bounded_while_the_application_waits(net: Network) -> None:
    _, source = await source_of(net, "a")
    await send(source, 40_000)
    context = await net.context()
    async with context.reader("orders", stores=addresses(net)) as reader:
        stream = aiter(reader)
        first = await anext(stream)
        [reading] = reader._readings
        await until(lambda: not reading.machine.asked)
        assert reading.waiting + reading.machine.arrived.total() <= reading.machine.window < 40_000
        rest = [message.number async for message in stream]
    assert [first.number, *rest] == list(range(40_000))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"since": -1}, "cannot begin at -1"),
        ({"since": "yesterday"}, "cannot begin at 'yesterday'"),
        ({"until": 0}, "cannot end at 0"),
        ({"since": 5, "until": 5}, "has no number"),
        ({"stores": []}, "no stores to read from"),
        ({"quorum": 4}, "a quorum of 4 cannot be reached"),
        ({"follow": True, "until": datetime(2026, 1, 1, tzinfo=UTC)}, "leave out the time of until"),
    ],
)
async def test_bounds_without_sense_are_refused(net: Network, given: dict[str, Any], text: str) -> None:
    context = await net.context()
    with pytest.raises(MisuseError, match=text):
        context.reader("orders", **{"stores": ["127.0.0.1:9"], **given})


class Paused:
    """A clock of the loop that only pauses move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pauses: list[float] = []
        self._now = 0.0
        monkeypatch.setattr(range_replay, "asyncio", self)

    def get_running_loop(self) -> "Paused":
        return self

    def time(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 6))
        self._now += seconds


async def test_a_replay_keeps_the_recorded_pace(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [datetime(2026, 1, 31, 12, tzinfo=UTC)]
    monkeypatch.setattr(machine.clock, "wall_ns", lambda: round(now[0].timestamp()) * SECOND, raising=False)
    _, source = await source_of(net, "a")
    for pause in (2, 4, 4000):
        await send(source, 3)
        now[0] += timedelta(seconds=pause)
    await send(source, 3)
    clock = Paused(monkeypatch)
    context = await net.context()
    for speed, pauses in ((1.0, [2, 4, 60]), (2.0, [1, 2, 60]), (None, [])):
        clock.pauses.clear()
        async with context.reader("orders", stores=addresses(net), times=True) as reader:
            assert [message.number async for message in reader.replay(speed)] == list(range(12))
        assert clock.pauses == pauses
    async with context.reader("orders", stores=addresses(net)) as reader:
        with pytest.raises(MisuseError, match="needs the times"):
            await anext(reader.replay())
    for wrong in (0, -1.0, float("inf")):
        with pytest.raises(MisuseError, match="cannot run at"):
            await anext(reader.replay(wrong))
    for wrong in (-1.0, float("inf")):
        with pytest.raises(MisuseError, match="makes no sense"):
            await anext(reader.replay(1.0, wrong))


async def test_a_reader_ends_when_its_context_is_closed(net: Network) -> None:
    _, source = await source_of(net, "a")
    await send(source, 10)
    context = await net.context()
    reader = context.reader("orders", stores=addresses(net), follow=True)
    await reader.__aenter__()
    found: list[int] = []

    async def read_all() -> None:
        async for message in reader:
            found.append(message.number)  # noqa: PERF401 - the task is watched

    task = asyncio.get_running_loop().create_task(read_all())
    await until(lambda: len(found) == 10)
    await context.close()
    await task
    assert found == list(range(10))
