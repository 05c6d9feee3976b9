"""A reader returns messages that are stable by the rule of the source, however many of its stores answer."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import attrs
import pytest

from stablecast.client import RangeReader, ReadFailed, last, range_inquiry, range_reader, stored_sources
from stablecast.client.range_batch import StoredMessage
from stablecast.client.range_bounds import ReadBounds
from stablecast.client.range_contents import SourceContents, sources_of
from stablecast.client.range_inquiry import RangeRoutes, StoreAway
from stablecast.client.range_reader import ReadOptions
from stablecast.core.machine import serial
from stablecast.core.protocol.history import FORGOTTEN
from stablecast.core.protocol.messages import Life, StoreEntry
from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup
from stablecast.core.protocol.stored_contents import StoredAnswer
from stablecast.core.receiver.range_progress import HoleReason
from tests.support.network import LOCAL, Network, drop, until, unused_port
from tests.support.traffic import SESSION, send, take
from tests.support.trio import SOON, Trio, dead_tail, known_to_one_of_two

ANY_GROUP = GroupRules()


async def test_a_reader_that_follows_returns_no_message_whose_number_is_used_again(net: Network) -> None:
    trio = Trio(net)
    await trio.start("abc")
    owner, source = await trio.source()
    await send(source, 10)
    reading = await net.context()
    found: list[tuple[int, bytes]] = []
    async with reading.reader("orders", stores=trio.stores, follow=True) as reader:

        async def read() -> None:
            async for message in reader:
                found.append((message.number, bytes(message.payload)))  # noqa: PERF401 - the list is watched

        task = asyncio.get_running_loop().create_task(read())
        await until(lambda: len(found) == 10)
        await trio.stop("bc")
        for _ in range(10):
            source.try_send(b"never stable")
        await trio.synced("a", 19)
        [one] = reader._readings
        await until(lambda: one.contents.answers[trio.places["a"]].reach == 20)  # The reader was told of them ...
        assert len(found) == 10  # ... and keeps them from the application.
        await drop(owner)
        await trio.stop("a")
        await trio.start("bc")
        _, source = await trio.source()
        await source.send_many([b"stable"] * 15)
        await source.wait_stable_through(24)
        await until(lambda: len(found) == 25)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert found == [*((number, b"%d" % number) for number in range(10)), *((n, b"stable") for n in range(10, 25))]


@pytest.mark.parametrize("quorum", [None, 2])
async def test_a_store_that_never_heard_of_a_source_does_not_have_its_messages(
    net: Network, quorum: int | None
) -> None:
    trio = await known_to_one_of_two(net)
    context = await net.context()
    given: dict[str, Any] = {"stores": trio.stores, "patience": 0.3, "quorum": quorum}
    with pytest.raises(ReadFailed, match=r"2 of 3 stores .* 1 of them know source 7, and 2 are needed") as failure:
        await context.reader("orders", **given).__aenter__()
    assert f"start {trio.places['c']}, or lower the quorum" in str(failure.value)
    with pytest.raises(ReadFailed, match="2 are needed"):
        await context.reader("orders", **given).plan()
    async with context.reader("orders", **given | {"quorum": 1}) as reader:
        assert [message.number async for message in reader] == list(range(10))


@pytest.mark.parametrize(("since", "first"), [(None, 0), (last(3), 7)])
async def test_a_reader_that_follows_waits_for_a_store_that_knows_the_source(
    net: Network, since: Any, first: int
) -> None:
    """It was there when the reader began, so it is no new source that is read from its begin."""
    trio = await known_to_one_of_two(net)
    context = await net.context()
    given: dict[str, Any] = {"stores": trio.stores, "patience": 0.3, "follow": True, "since": since, "until": 10}
    async with context.reader("orders", **given) as reader:
        assert not reader.sources
        await trio.start("c")
        assert [message.number async for message in reader] == list(range(first, 10))


async def test_two_of_three_stores_are_enough_for_what_both_have(net: Network) -> None:
    trio = Trio(net)
    await trio.start("abc")
    owner, source = await trio.source()
    await send(source, 10)
    await trio.synced("abc", 9)
    await trio.stop("b")
    await send(source, 10)
    await owner.close()
    await trio.stop("c")
    await trio.start("b")
    context = await net.context()
    async with context.reader("orders", stores=trio.stores) as reader:
        assert [message.number async for message in reader] == list(range(10))
    found, _ = await context.stored("orders", stores=trio.stores)
    assert [found.stable_stop(one) for one in found.sources] == [10]
    await trio.start("c")
    async with context.reader("orders", stores=trio.stores) as reader:
        assert [message.number async for message in reader] == list(range(20))


async def test_the_stores_that_a_reader_was_not_told_count_as_well(net: Network) -> None:
    trio = Trio(net)
    await trio.start("abc")
    _, source = await trio.source()
    await send(source, 10)
    await trio.synced("a", 9)
    context = await net.context()
    one = [trio.places["a"]]
    with pytest.raises(ReadFailed, match="name all 3 stores of the source, or lower the quorum"):
        await context.reader("orders", stores=one, patience=0.3).__aenter__()
    found, _ = await context.stored("orders", stores=one)
    assert [found.stable_stop(known) for known in found.sources] == [None]
    async with context.reader("orders", stores=one, quorum=1) as reader:
        assert [message.number async for message in reader] == list(range(10))


async def test_a_group_with_a_quorum_is_enough_though_most_stores_are_away(net: Network) -> None:
    trio = Trio(net)
    trio.places |= {name: f"{LOCAL}:{unused_port()}" for name in "de"}
    await trio.start("abcde")
    context = await net.context(session_id=SESSION)
    stores = ",".join(f"{place}:0:{int(name in 'de')}" for name, place in trio.places.items())
    groups: dict[str, Any] = {"ume_store": stores, "ume_store_group": "0:3,1:2"}
    owner = await context.source("orders", options=SOON | groups)
    await send(owner, 10)
    await trio.synced("abcde", 9)
    await owner.close()
    await trio.stop("abc")
    async with context.reader("orders", stores=trio.stores) as reader:  # Group 1 is whole.
        assert [message.number async for message in reader] == list(range(10))
    await trio.start("a")
    await trio.stop("d")  # One of three, and one of two: no group has a quorum.
    with pytest.raises(ReadFailed):
        await context.reader("orders", stores=trio.stores, patience=0.3).__aenter__()


async def test_a_reader_waits_for_stores_that_refuse_connections(net: Network) -> None:
    trio = Trio(net)
    await trio.start("abc")
    owner, source = await trio.source()
    await send(source, 10)
    await trio.synced("abc", 9)
    await owner.close()
    await trio.stop("bc")
    context = await net.context()
    beginning = asyncio.get_running_loop().create_task(
        context.reader("orders", stores=trio.stores, patience=60.0).plan()
    )
    await until(lambda: context.reads._questions or beginning.done())
    await trio.start("b")
    [(_, found)] = await beginning
    assert (found.first, found.stop) == (0, 10)


async def test_a_store_that_goes_away_again_does_not_count_with_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have lost its messages when it comes back, so the others must be enough."""
    monkeypatch.setattr(range_inquiry, "REPEAT_SECONDS", 0.0)
    times: Counter[str] = Counter()

    class Routes(RangeRoutes):
        async def ask(self, store: str, **_: Any) -> list[StoredAnswer]:
            times[store] += 1
            if times["a"] > 1 if store == "a" else times["a"] < 3:
                raise StoreAway
            return [answer((0, 10))]

    assert list(await range_inquiry.ask_all(Routes(), "abc", 60.0)) == ["b", "c"]


def answer(*ranges: tuple[int, int], lives: Sequence[Life] = ((7, 0),), **more: Any) -> StoredAnswer:
    """Return the answer of a store that holds these numbers."""
    stop = ranges[-1][1] if ranges else 0
    given: dict[str, Any] = {
        "incarnation": lives[-1][0], "topic": "orders", "version": 0, "low": 0, "high": serial.wire(stop - 1),
        "request": "", "group_sizes": (), "confirmations": False, "stores": (), "lives": tuple(lives),
        "term": len(lives), "answered": 1, "reg_id": 1, "session_id": SESSION, "ranges": ranges, "reach": stop,
    }  # fmt: skip
    return StoredAnswer(**given | more)


def contents(**answers: StoredAnswer) -> SourceContents:
    return SourceContents("orders", SESSION, dict(answers))


def stable_stop(source: SourceContents, stores: str, wish: GroupRules = ANY_GROUP) -> int:
    rule = source.rule(tuple(stores), wish)
    return source.stable_stop(rule, source.first(), [store for store in stores if store not in source.answers])


def test_the_size_of_a_group_is_the_configured_one() -> None:
    ten, five = (0, 10), (0, 5)
    # No store knows the groups: a majority of the stores that were named.
    assert stable_stop(contents(a=answer(ten)), "abc") == 0
    assert stable_stop(contents(a=answer(ten), b=answer(five)), "abc") == 5
    # The source has five stores, and a reader was told three.
    assert stable_stop(contents(a=answer(ten), b=answer(five, group_sizes=(5,))), "abc") == 0
    # The source has one store; the others are those of other sources.
    assert stable_stop(contents(a=answer(ten, group_sizes=(1,))), "abc") == 10
    # The newest life has more stores.
    lives = ((7, 0), (8, 5))
    newer = answer(five, lives=lives, group_sizes=(3,))
    assert stable_stop(contents(a=answer(five, group_sizes=(1,)), b=newer), "abc") == 5
    assert stable_stop(contents(b=newer), "abc") == 0


def test_the_stores_that_a_reader_was_not_told_are_those_that_its_groups_lack() -> None:
    entries = tuple(StoreEntry(index, int(name == "d"), name, 1, 1) for index, name in enumerate("abcd"))
    source = contents(a=answer((0, 10), group_sizes=(3, 1), stores=entries))
    unnamed = {stores: source.rule(tuple(stores), ANY_GROUP).unnamed for stores in ("abcd", "abc", "ad", "abw")}
    assert unnamed == {"abcd": 0, "abc": 0b1000, "ad": 0b1100, "abw": 0b11000}


def test_each_group_has_its_own_quorum_and_a_rule_between_them() -> None:
    entries = tuple(StoreEntry(index, int(name == "d"), name, 1, 1) for index, name in enumerate("abcd"))
    told: dict[str, Any] = {"group_sizes": (3, 1), "stores": entries}
    source = contents(a=answer((0, 10), **told), b=answer((0, 5), **told), d=answer((0, 3), **told))
    assert stable_stop(source, "abcd") == 5
    assert stable_stop(source, "abcd", GroupRules(intergroup=Intergroup.ALL)) == 3
    assert stable_stop(source, "abcd", GroupRules(intragroup=Intragroup.ALL)) == 3  # The group of one.
    assert stable_stop(contents(a=answer((0, 10), **told)), "abcd") == 0
    assert stable_stop(contents(d=answer((0, 10), **told)), "abcd") == 10
    # The stores have other addresses for the source than for the reader: a majority of all has one of some group.
    source = contents(w=answer((0, 10), **told), x=answer((0, 5), **told), y=answer((0, 3), **told))
    assert stable_stop(source, "wxyz") == 3
    assert stable_stop(source, "wxyz", GroupRules(intergroup=Intergroup.ALL)) == 0


def test_a_store_with_a_hole_does_not_have_what_is_in_it() -> None:
    source = contents(a=answer((0, 30)), b=answer((0, 10), (20, 30)))
    assert stable_stop(source, "abc") == 10
    assert source.refuse(source.rule("abc", GroupRules()), ["c"]) == 30
    assert source.held(source.answers["a"]).ranges == [(0, 10), (20, 30)]
    source.answers["c"] = answer((0, 15))
    assert stable_stop(source, "abc") == 15
    # A dead tail is not what the newest life has under the same numbers.
    lives = ((7, 0), (8, 10))
    source = contents(a=answer((0, 30)), b=answer((0, 10)), c=answer((0, 12), lives=lives))
    assert stable_stop(source, "abc") == 10
    # Nor is a dead tail that a limit let go.
    source = contents(a=answer((15, 30), trail=15), c=answer((0, 20), lives=lives))
    assert stable_stop(source, "abc") == 10


@pytest.mark.parametrize(
    ("began", "stop"),
    [
        (0, 3_000_000_000),
        (0, serial.MODULUS - 20_000_000),
        (serial.MODULUS - 3, serial.MODULUS + 2),
        (3_000_000_000, 3),
    ],
    ids=["most-of-the-numbers", "nearly-all-numbers", "over-the-wrap", "nothing-sent"],
)
def test_a_life_is_announced_with_the_numbers_that_it_used(began: int, stop: int) -> None:
    """A receiver would ask for higher numbers, and report them lost."""
    held = answer((stop - 3, stop), lives=((7, serial.wire(began)),))
    info = stored_sources.announcement(contents(a=held, b=held), "abc")
    assert info is not None
    assert (info.low, info.high) == (serial.wire(began), serial.wire(max(began, stop) - 1))


def test_a_life_that_begins_behind_the_wrap_is_announced_empty() -> None:
    """Too few stores hold the last numbers before it."""
    held = answer((serial.MODULUS - 6, serial.MODULUS - 3), lives=((7, 2),))
    info = stored_sources.announcement(contents(a=held, b=held), "abc")
    assert info is not None
    assert (info.low, info.high) == (2, 1)


async def test_a_message_at_too_few_stores_is_named_as_missing(net: Network) -> None:
    trio = Trio(net)
    await trio.start("abc")
    owner, source = await trio.source()
    await send(source, 30)
    await trio.synced("abc", 29)
    await owner.close()
    for name in "bc":
        [known] = trio.net.stores[name].machine.registry.repositories.values()
        known.held.remove(10, 12)
        known.window.synced.remove(10, 12)
    context = await net.context()
    async with context.reader("orders", stores=trio.stores) as reader:
        assert [message.number async for message in reader] == [*range(10), *range(12, 30)]
    assert [(hole.first, hole.last, hole.reason) for hole in reader.holes] == [(10, 11, HoleReason.UNSTABLE)]
    [(_, planned)] = await context.reader("orders", stores=trio.stores).plan()
    assert planned.stop == 10


async def test_a_range_that_is_known_to_be_stable_is_read_from_the_newest_history(net: Network) -> None:
    trio = await dead_tail(net)
    await trio.stop("b")
    await trio.start("a")
    context = await net.context()
    given: dict[str, Any] = {"stores": trio.stores, "patience": 0.3, "since": 10, "until": 25, "stable": False}
    async with context.reader("orders", **given) as reader:
        assert [bytes(message.payload) async for message in reader] == [b"stable"] * 15
    await trio.stop("c")
    with pytest.raises(ReadFailed, match="1 of 3 stores"):
        await context.reader("orders", **given).__aenter__()


@pytest.mark.parametrize(("since", "begin"), [("latest", 10), (last(4), 6)])
async def test_a_source_that_begins_while_a_reader_follows_the_newest_is_read_from_its_begin(
    net: Network, since: Any, begin: int
) -> None:
    trio = Trio(net)
    await trio.start("abc")
    _, source = await trio.source()
    await send(source, 10)
    context = await net.context()
    async with context.reader("orders", stores=trio.stores, since=since, follow=True) as reader:
        other = await context.source("orders", stores=trio.stores, session_id=8, options=SOON)
        await send(other, 10)
        await send(source, 10)
        found = [(message.session_id, message.number) async for message in taking(reader, 30 - begin)]
    assert sorted(found) == [*((7, number) for number in range(begin, 20)), *((8, number) for number in range(10))]


async def test_a_source_that_deregistered_is_another_one_when_it_returns(net: Network) -> None:
    """It has the same session id, and its numbers begin at 0 again: the reader returns each of them."""
    trio = Trio(net)
    await trio.start("abc")
    owner, source = await trio.source()
    await send(source, 10)
    context = await net.context()
    async with context.reader("orders", stores=trio.stores, follow=True) as reader:
        assert [message.number async for message in taking(reader, 10)] == list(range(10))
        await source.deregister()
        await owner.close()
        _, source = await trio.source()
        await send(source, 20)
        assert [message.number async for message in taking(reader, 20)] == list(range(20))
        assert reader.holes == []


def test_sources_whose_first_lives_are_forgotten_are_not_one_for_that() -> None:
    """Without a session id their lives tell them apart."""
    told = [answer((0, 9), lives=((FORGOTTEN, 0), (life, 5)), session_id=0) for life in (7, 8)]
    assert [source.incarnation for source in sources_of({"a": told[:1], "b": told[1:]})] == [7, 8]


def test_a_store_that_missed_the_deregistration_does_not_join_two_sources() -> None:
    """Asked at the same time, stores with one session id know one source. Asked later, they must know its lives."""
    read = contents(a=answer((0, 10)), b=answer((0, 10)))
    later = contents(a=answer((0, 5), lives=[(8, 0)]), b=answer((0, 10)))
    assert read.is_about(later.answers["a"])
    assert not read.goes_on(later.answers["a"])
    assert read.same(later)
    assert not read.same(contents(a=later.answers["a"]))
    assert read.same(contents(a=answer((0, 12), lives=[(7, 0), (8, 10)])))
    assert read.same(contents(a=answer((0, 99), lives=[(FORGOTTEN, 0), (99, 50)])))


async def taking(reader: RangeReader, count: int) -> AsyncIterator[StoredMessage]:
    async for message in reader:
        yield message
        count -= 1
        if not count:
            return


async def test_a_receiver_without_a_source_needs_as_many_stores_as_the_source(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_sources, "LIVE_SECONDS", 0.0)
    monkeypatch.setattr(stored_sources, "ASK_SECONDS", 0.1)
    trio = await known_to_one_of_two(net)
    context = await net.context()
    found, _ = await context.stored("orders", stores=trio.stores)
    assert [stored_sources.announcement(one, trio.stores) for one in found.sources] == [None]
    receiver = context.receiver("orders", session_id=9, stores=trio.stores)
    await trio.start("c")
    assert await take(receiver, 10) == list(range(10))
    found, _ = await context.stored("orders", stores=trio.stores)
    [info] = [stored_sources.announcement(one, trio.stores) for one in found.sources]
    assert info is not None
    assert (info.group_sizes, len(info.stores)) == ((3,), 2)


async def test_a_store_that_forgot_a_source_no_longer_counts_with_its_earlier_answer(net: Network) -> None:
    trio = Trio(net)
    await trio.start("abc")
    _, source = await trio.source()
    await send(source, 10)
    await trio.synced("abc", 9)
    context = await net.context()
    async with context.reader("orders", stores=trio.stores, follow=True) as reader:
        [one] = reader._readings
        assert trio.places["c"] in one.contents.answers
        net.stores["c"].machine.registry.repositories.clear()
        await until(lambda: trio.places["c"] not in one.contents.answers)
        assert trio.places["c"] not in one.machine.holdings


async def test_an_earlier_answer_of_a_store_that_is_away_does_not_pass_for_a_new_one(net: Network) -> None:
    trio = Trio(net)
    await trio.start("abc")
    _, source = await trio.source()
    await send(source, 10)
    context = await net.context()
    async with context.reader("orders", stores=trio.stores, follow=True) as reader:
        [one] = reader._readings
        await until(lambda: len(one.machine.holdings) == 3)
        away = trio.places["c"]
        await trio.stop("c")
        await until(lambda: away in one.machine.away)
        asked_at = one.machine.holdings[away].asked_at
        await send(source, 10)
        await until(lambda: one.machine.stop == 20)
        assert away in one.machine.away
        assert one.machine.holdings[away].asked_at == asked_at


async def test_messages_that_only_one_store_still_knows_are_not_left_out_in_silence(net: Network) -> None:
    trio = await known_to_one_of_two(net)
    trio.places["c"] = f"{LOCAL}:{unused_port()}"
    await net.store("d", trio.places["c"])  # Its disk was replaced: all three answer, and one has the messages.
    context = await net.context()
    with pytest.raises(ReadFailed, match=r"3 of 3 stores .* 1 of them know source 7, .* wait until other stores"):
        await context.reader("orders", stores=trio.stores).__aenter__()
    found, _ = await context.stored("orders", stores=trio.stores)
    assert [found.stable_stop(one) for one in found.sources] == [None]


async def test_a_life_without_a_history_is_no_source_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its history may name a life that the reader reads already. Then a second reading would return all of that twice.

    Without a session id, only the history joins the two.
    """
    monkeypatch.setattr(range_reader, "FOLLOW_SECONDS", 0.0)
    before = answer((0, 10), session_id=0)
    told = {"a": attrs.evolve(answer(lives=[(8, 0)], session_id=0), lives=()), "b": before, "c": before}

    class Routes(RangeRoutes):
        async def ask(self, store: str, **_: Any) -> list[StoredAnswer]:
            return [told[store]]

    options = ReadOptions(ReadBounds(), tuple(told), follow=True)
    async with RangeReader(Routes("10.0.0.1:1"), "orders", options) as reader:
        assert [(one.incarnation, one.stop) for one in reader.sources] == [(7, 10)]
        told = dict.fromkeys(told, answer((0, 12), lives=[(7, 0), (8, 10)], session_id=0))
        [reading] = reader._readings
        await until(lambda: reading.machine.stop == 12)  # It goes on with the next life ...
        assert len(reader.sources) == 1  # ... and nothing else does.


async def test_a_question_that_fails_is_an_error_at_once_and_not_silence() -> None:
    class Routes(RangeRoutes):
        async def ask(self, store: str, **_: Any) -> list[StoredAnswer]:
            raise ValueError(store)

    with pytest.raises(ValueError, match="a"):
        await range_inquiry.ask_all(Routes("10.0.0.1:1"), ["a"], 1e9)


@pytest.mark.parametrize("pages", [1, 3])
async def test_ranges_that_did_not_fit_are_asked_for_as_long_as_there_are_more(pages: int) -> None:
    """A store that says that it has more, and tells nothing, is not asked for ever."""
    whole, asked = answer((0, 30)), list[int]()

    class Routes(RangeRoutes):
        async def ask(self, store: str, **given: Any) -> list[StoredAnswer]:
            asked.append(given["first"])
            reach = min(10 * len(asked), 10 * pages)
            return [attrs.evolve(whole, ranges=((reach - 10, reach),), reach=reach)]

    found = await range_inquiry.ask_all(Routes("10.0.0.1:1"), ["a"], 1e9, first=0)
    assert [one.reach for one in found["a"]] == [10 * pages]
    assert asked == ([0, 10] if pages == 1 else [0, 10, 20])


@pytest.mark.parametrize("more", [0, 3])
async def test_a_store_with_many_sources_is_asked_for_the_next_ones_until_it_told_of_all(more: int) -> None:
    """The last page of a store that has no more names none."""
    pages = {0: [answer(reg_id=1), answer(reg_id=2, whole=False)], 2: [answer(reg_id=more)]}
    asked: list[int] = []

    class Routes(RangeRoutes):
        async def _page(self, store: str, asking: dict[str, Any]) -> list[StoredAnswer]:
            asked.append(asking["after"])
            return pages[asking["after"]]

    assert [one.reg_id for one in await Routes("10.0.0.1:1").ask("a")] == [1, 2, *([more] if more else [])]
    assert asked == [0, 2]


@pytest.mark.parametrize("changes", [{"incarnation": 8}, {"lives": ((6, 0), (7, 3))}], ids=str)
async def test_ranges_of_another_history_do_not_complete_an_answer(changes: dict[str, Any]) -> None:
    """The source began its next life between the two, which uses numbers again."""
    part = attrs.evolve(answer((0, 5)), high=9)

    class Routes(RangeRoutes):
        async def ask(self, store: str, **given: Any) -> list[StoredAnswer]:
            return [attrs.evolve(answer((5, 10)), **changes) if "reg_id" in given else part]

    assert await range_inquiry.ask_all(Routes(), ["a"], 60.0, topic="orders") == {"a": [part]}


async def test_a_reader_that_was_closed_hears_no_more_messages() -> None:
    class Routes(RangeRoutes):
        async def ask(self, store: str, **_: Any) -> list[StoredAnswer]:
            return [answer((0, 10))]

    routes = Routes("10.0.0.1:1")
    async with RangeReader(routes, "orders", ReadOptions(ReadBounds(), ("a", "b"))) as reader:
        [reading] = reader._readings
        reading.learn(0, 0)
        assert routes.readings == {7: [reading]}
        assert routes.readers
    assert (routes.readings, list(routes.readers)) == ({}, [])


async def test_a_reader_that_is_cancelled_while_it_begins_leaves_nothing() -> None:
    asked = asyncio.Event()

    class Routes(RangeRoutes):
        async def ask(self, store: str, **_: Any) -> list[StoredAnswer]:
            asked.set()
            await asyncio.get_running_loop().create_future()
            return []

    routes = Routes("10.0.0.1:1")
    reader = RangeReader(routes, "orders", ReadOptions(ReadBounds(), ("a", "b")))
    beginning = asyncio.ensure_future(reader.__aenter__())
    await asked.wait()
    assert routes.readers
    beginning.cancel()
    await asyncio.wait([beginning])
    assert (beginning.cancelled(), list(routes.readers)) == (True, [])


async def test_the_readings_of_all_sources_hear_that_a_store_is_away() -> None:
    """What each of them requested there goes to other stores at once."""

    class Routes(RangeRoutes):
        async def ask(self, store: str, **_: Any) -> list[StoredAnswer]:
            return [answer((0, 10), lives=[(life, 0)], session_id=life) for life in (7, 8)]

    options = ReadOptions(ReadBounds(), ("a", "b"))
    async with RangeReader(Routes("10.0.0.1:1"), "orders", options) as reader:
        reader.on_broken("a")
        assert [list(reading.machine.away) for reading in reader._readings] == [["a"], ["a"]]
