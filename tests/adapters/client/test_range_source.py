"""The reading of one source: whom it asks, and for how much, over routes that only note it."""

import asyncio
from typing import Any
from unittest import mock

import attrs
import pytest

from stablecast.client import range_source
from stablecast.client.range_inquiry import RangeRoutes, StoreAway
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import RetransmitRequest
from stablecast.core.protocol.stored_contents import StoredAnswer
from stablecast.transports import codec
from stablecast.transports.wire import lbmc
from tests.adapters.client.test_range_stability import answer, contents
from tests.support.network import until
from tests.support.traffic import SESSION


class Sent(RangeRoutes):
    """Routes that keep what is requested; `told` has the answers of stores, of others none comes."""

    def __init__(self, told: dict[str, StoredAnswer]) -> None:
        super().__init__("10.0.0.1:1")
        self.told, self.requests, self.asked = told, list[tuple[str, int, int]](), list[str]()

    async def ask(self, store: str, **given: Any) -> list[StoredAnswer]:
        self.asked.append(store)
        if store not in self.told or ("timed" in given and len(self.asked) > 50):
            raise StoreAway
        return [self.told[store]]

    def send(self, store: str, data: bytes) -> None:
        request = codec.decode(lbmc.decode(data)[0])
        assert isinstance(request, RetransmitRequest)
        self.requests.append((store, request.first, request.last))


def reading_of(routes: Sent, stop: int, *, times: bool = False, **known: StoredAnswer) -> range_source.SourceReading:
    owner: Any = mock.Mock()
    terms = range_source.ReadingTerms(10_000, 3600 * SECOND, times)
    return range_source.SourceReading(owner, routes, contents(**known), (0, stop), terms)


async def test_what_a_store_no_longer_serves_is_requested_from_another_at_once() -> None:
    """It waits for the next life of the source, and is asked again until it knows it."""
    held = answer((0, 10))
    routes = Sent({})
    reading = reading_of(routes, 10, a=held, b=held)
    reading.start(1, ())
    [(busy, first, last)] = routes.requests
    assert (first, last) == (0, 9)
    reading.contents.answers[busy] = attrs.evolve(held, readable=False)
    reading.learn(2, 0)
    [other] = {"a", "b"} - {busy}
    assert (routes.requests[1:], list(reading.machine.away)) == ([(other, 0, 9)], [busy])
    await asyncio.gather(*reading.close(), return_exceptions=True)
    reading.on_recovered([codec.RecoveredRun(7, 7, 0, [b"x"] * 10)])
    assert reading._owner.mock_calls == []  # type: ignore[attr-defined]


async def test_a_store_that_returns_is_read_from_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as it serves: one that waits for the next life of the source does not yet."""
    monkeypatch.setattr(range_source, "REPEAT_SECONDS", 0.0)
    routes = Sent({})
    reading = reading_of(routes, 20, a=answer((0, 10)))
    reading.start(1, ["b"])
    assert routes.requests == [("a", 0, 9)]
    await until(lambda: "b" in routes.asked)
    routes.told["b"] = attrs.evolve(answer((10, 20)), readable=False)
    asked = len(routes.asked)
    await until(lambda: len(routes.asked) > asked + 1)
    assert len(routes.requests) == 1
    routes.told["b"] = answer((10, 20))
    await until(lambda: len(routes.requests) > 1)
    assert routes.requests[1:] == [("b", 10, 19)]
    assert reading.contents.answers["b"] == answer((10, 20))
    await asyncio.gather(*reading.close(), return_exceptions=True)


async def test_a_store_that_tells_no_times_is_not_asked_for_ever() -> None:
    """It says that it has more, each time."""
    routes = Sent({"a": attrs.evolve(answer((0, 10)), reach=0)})
    reading = reading_of(routes, 10, times=True, a=answer((0, 10)))
    reading.start(1, ())
    await until(lambda: not reading._timed.missing(0, 10))
    assert len(routes.asked) == 10
    await asyncio.gather(*reading.close(), return_exceptions=True)


async def test_the_times_of_a_store_that_is_away_are_not_waited_for() -> None:
    reading = reading_of(Sent({}), 10, times=True, a=answer((0, 10)))
    reading._note_time(-1, 5)
    reading.start(1, ())
    await until(lambda: not reading._timed.missing(0, 10))
    assert reading.came_at(9) is None, "not the time of a message before"
    await asyncio.gather(*reading.close(), return_exceptions=True)


async def test_no_message_is_handed_over_before_its_time_is_known() -> None:
    known = asyncio.Event()

    class Late(Sent):
        async def ask(self, store: str, **given: Any) -> list[StoredAnswer]:
            if "timed" in given:
                await known.wait()
            return await super().ask(store, **given)

    held = answer((0, 10), times=((0, 5),))
    reading = reading_of(Late({"a": held}), 10, times=True, a=held)
    reading.start(1, ())
    owner: Any = reading._owner
    reading.on_recovered([codec.RecoveredRun(7, 7, 0, [b"x"] * 10)])
    await asyncio.sleep(0)
    assert not owner.deliver.called
    known.set()
    await until(lambda: owner.deliver.called)
    assert [reading.came_at(number) for number in (0, 9)] == [5, 5]
    await asyncio.gather(*reading.close(), return_exceptions=True)


async def test_the_times_of_consumed_messages_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_source, "MAX_TIMES_KEPT", 4)
    reading = reading_of(Sent({}), 20, times=True, a=answer((0, 20)))
    reading.machine.cursor, reading.waiting = 16, 4
    for number in range(0, 20, 2):
        reading._note_time(number, number)
    assert [reading.came_at(number) for number in (7, 9, 13, 19)] == [None, 8, 12, 18]
    await asyncio.gather(*reading.close(), return_exceptions=True)


@pytest.mark.parametrize("consumed", range(12))
async def test_a_message_that_waits_keeps_its_time(monkeypatch: pytest.MonkeyPatch, consumed: int) -> None:
    monkeypatch.setattr(range_source, "MAX_TIMES_KEPT", 4)
    reading = reading_of(Sent({}), 20, times=True, a=answer((0, 20)))
    reading.machine.cursor, reading.waiting = consumed + 4, 4
    for number in range(consumed + 4):
        reading._note_time(number, number)
    assert [reading.came_at(consumed + index) for index in range(4)] == [consumed + index for index in range(4)]
    assert len(reading._times) <= 8
    await asyncio.gather(*reading.close(), return_exceptions=True)


async def test_what_is_consumed_makes_room_for_the_next_request() -> None:
    routes = Sent({})
    reading = reading_of(routes, 20, a=answer((0, 20)))
    reading.machine.window = 8
    reading.start(1, ())
    reading.on_recovered([codec.RecoveredRun(7, 7, 0, [b"x"] * 8)])
    assert routes.requests == [("a", 0, 7)]
    reading.consumed(8)
    assert routes.requests[1:] == [("a", 8, 15)]
    await asyncio.gather(*reading.close(), return_exceptions=True)


async def test_a_store_that_no_longer_knows_the_source_is_not_waited_for() -> None:
    routes = Sent({"b": attrs.evolve(answer((0, 10)), session_id=77)})
    reading = reading_of(routes, 10, a=answer((0, 10)))
    reading.start(1, ["b"])
    assert list(reading.machine.away) == ["b"]
    await until(lambda: not reading.machine.away)
    await asyncio.gather(*reading.close(), return_exceptions=True)


async def test_a_break_of_a_store_that_never_had_the_source_is_no_reason_to_ask_it() -> None:
    routes = Sent({})
    reading = reading_of(routes, 10, a=answer((0, 10)))
    reading.start(1, ())
    reading.on_broken("b")
    await asyncio.sleep(0)
    assert (routes.asked, list(reading.machine.away)) == ([], [])
    await asyncio.gather(*reading.close(), return_exceptions=True)


@pytest.mark.parametrize("together", [False, True])
async def test_messages_on_both_sides_of_those_that_came_before_are_handed_over(together: bool) -> None:
    reading = reading_of(Sent({}), 10, a=answer((0, 10)))
    reading.start(1, ())
    runs = [codec.RecoveredRun(7, 7, first, [b"x"] * count) for first, count in ((4, 2), (0, 10))]
    for some in (runs,) if together else (runs[:1], runs[1:]):
        reading.on_recovered(list(some))
    owner: Any = reading._owner
    assert [call.args[2] for call in owner.deliver.mock_calls] == [4, 2, 4]
    assert reading.machine.done
    await asyncio.gather(*reading.close(), return_exceptions=True)


async def test_a_reading_that_ends_hears_no_life_of_its_source_any_more() -> None:
    routes = Sent({})
    reading = reading_of(routes, 10, a=answer((0, 10)))
    reading.start(1, ())
    reading.contents.answers["a"] = answer((0, 10), lives=((7, 0), (8, 5)))
    reading.learn(2, 0)
    assert set(routes.readings) == {7, 8}
    await asyncio.gather(*reading.close(), return_exceptions=True)
    assert routes.readings == {}


async def test_all_requests_that_have_room_are_sent() -> None:
    routes = Sent({})
    reading = reading_of(routes, 10_000, a=answer((0, 10_000)))
    reading.start(1, ())
    assert len(routes.requests) > 1
    assert [first for _, first, _ in routes.requests[1:]] == [last + 1 for _, _, last in routes.requests[:-1]]
    assert reading.machine.outstanding == routes.requests[-1][2] + 1
    await asyncio.gather(*reading.close(), return_exceptions=True)


async def test_a_store_that_returns_with_other_sources_tells_of_this_one() -> None:
    """It may have met its next life meanwhile, which the messages then come with."""
    ours = answer((0, 10), lives=((7, 0), (8, 5)))

    class Several(Sent):
        async def ask(self, store: str, **given: Any) -> list[StoredAnswer]:
            return [attrs.evolve(ours, session_id=SESSION + 1, reach=5, ranges=((0, 5),)), ours]

    reading = reading_of(Several({}), 10, a=answer((0, 4)))
    reading.start(1, ())
    reading.on_broken("a")
    await until(lambda: not reading.machine.away)
    assert (reading.contents.answers, set(reading._routes.readings)) == ({"a": ours}, {7, 8})
    await asyncio.gather(*reading.close(), return_exceptions=True)


async def test_an_answer_that_comes_twice_or_before_the_store_is_lost_counts_once() -> None:
    routes = RangeRoutes("10.0.0.1:1")
    asking = asyncio.create_task(routes.ask("10.0.0.2:1", topic="orders"))
    await until(lambda: routes._questions)
    [number] = routes._questions
    for _ in range(2):
        routes.on_answer(attrs.evolve(answer((0, 10)), answered=number))
    routes.on_broken("10.0.0.2:1")
    assert len(await asking) == 1


@pytest.mark.parametrize(("size", "window", "most"), [(1, 10_000, 4096), (1 << 16, 512, 64), (1 << 20, 64, 4)])
async def test_large_messages_are_asked_for_in_smaller_numbers(size: int, window: int, most: int) -> None:
    """The memory of a reader is bounded in bytes."""
    reading = reading_of(Sent({}), 10, a=attrs.evolve(answer((0, 10)), stored_bytes=10 * size))
    assert (reading.machine.window, reading._most) == (window, most)
