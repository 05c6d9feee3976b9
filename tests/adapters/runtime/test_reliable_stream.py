"""A source's stream on a session: blocks that wait for the rate limit, and the repeated greeting."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import attrs
import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.runtime import reliable_sources, reliable_stream
from stablecast.runtime.reliable_sources import ReliableSources
from stablecast.runtime.reliable_stream import ReliableStream
from stablecast.transports.reliable.batches import BatchMark
from stablecast.transports.reliable.high_water_marks import message
from stablecast.transports.reliable.lbtru import LbtruSources
from stablecast.transports.reliable.settings import RateSettings, SourceSettings
from tests.support.network import until
from tests.transports.reliable.network import block

HOST = "127.0.0.1"
SLOW = RateSettings(50 * MILLISECOND, 8_000)
"""50 bytes in an interval: each datagram has one of its own."""
PLENTY = attrs.evolve(SLOW, data_bits=1 << 40)


class Bench:
    """A stream, what it asked its source for, and when it held it."""

    def __init__(self, rates: RateSettings) -> None:
        self.sources = ReliableSources(LbtruSources(rates), HOST)
        self.session = self.sources.open(settings=SourceSettings(linger_ns=0))
        self.held: list[bool] = []
        self.standings = itertools.count(-1)  # the first is told before there is anything to tell
        self.stream = ReliableStream(
            self.sources,
            self.session,
            lambda: message([(7, number)]) if (number := next(self.standings)) >= 0 else b"",
            self.held.append,
            lambda: self.sources.retire(self.session),
        )

    def sent(self) -> int:
        return self.sources.statistics(self.session)["msgs_sent"]


@asynccontextmanager
async def bench(rates: RateSettings) -> AsyncIterator[Bench]:
    found = Bench(rates)
    await found.stream.start()
    try:
        yield found
    finally:
        await found.stream.close()
        found.sources.close()


async def test_a_block_leaves_at_once() -> None:
    async with bench(PLENTY) as found:
        found.stream.write(block(7, 0, 3))
        assert (found.sent(), found.held) == (1, [])


async def test_at_the_rate_limit_the_source_is_held_until_all_has_left() -> None:
    async with bench(SLOW) as found:
        for number in range(4):
            found.stream.write(block(7, number, 1, 60))
        assert found.held == [True]
        await until(lambda: len(found.held) == 2)
        assert found.held == [True, False]
        assert found.sent() == 4


async def test_another_source_of_the_context_that_reaches_the_limit_holds_this_one_too() -> None:
    async with bench(SLOW) as found:
        other = found.sources.open()
        for number in range(2):
            if not found.sources.blocked:
                found.sources.offer(other, block(7, number, 1, 60))
                found.sources.flush(other)
        found.stream.write(block(7, 0, 1))
        assert (found.sent(), found.held) == (0, [True])
        await until(lambda: found.sent() == 1)


async def test_the_greeting_is_repeated_at_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliable_stream, "STANDING_SECONDS", 0.005)
    async with bench(PLENTY) as found:
        assert found.sent() == 0
        await until(lambda: found.sent() >= 3)


async def test_control_messages_that_wait_are_bounded_and_data_is_never_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reliable_stream, "MAX_WAITING", 2)
    monkeypatch.setattr(reliable_stream, "STANDING_SECONDS", 0.005)
    async with bench(SLOW) as found:
        for number in range(5):
            found.stream.write(block(7, number, 1, 60))
        waiting = len(found.stream._waiting)
        assert found.sent() + len(found.sources.machine.limiter.data) + waiting == 5
        for number in range(8):
            found.stream.write(message([(7, number)]))
        assert len(found.stream._waiting) <= max(waiting, 2)
        await until(lambda: found.sent() >= 5)


async def test_control_messages_that_use_up_the_interval_do_not_wedge_a_source() -> None:
    """The control messages that waited for their session reach the limit: the block behind them waits, and leaves."""
    async with bench(SLOW) as found:
        other = found.sources.open()
        held: list[bool] = []
        second = ReliableStream(found.sources, other, lambda: b"", held.append, lambda: None)
        for number in range(20):
            found.stream.write(message([(7, number)]))
            second.write(message([(8, number)]))
        for number in range(3):
            found.stream.write(block(7, number, 1, 60))
            second.write(block(8, number, 1, 60))
        await until(lambda: not (found.stream._waiting or second._waiting or found.sources.blocked))
        await until(lambda: found.held[-1:] == [False] and held[-1:] == [False])
        lasts = [found.sources.machine.get(number).marks.topics for number in (found.session, other)]
        assert [topics[topic].high for topics, topic in zip(lasts, (7, 8), strict=True)] == [2, 2]


async def test_a_source_that_fails_in_its_turn_does_not_keep_others_from_theirs() -> None:
    def fail() -> None:
        raise ValueError("no")

    turns: list[str] = []
    reports: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context["message"]))
    async with bench(SLOW) as found:
        for number in range(2):
            found.sources.offer(found.session, block(7, number, 1, 60), BatchMark.END)
        assert not found.sources.offer(found.session, block(7, 2, 1, 60)), "it must wait"
        found.sources.when_room(fail)
        found.sources.when_room(lambda: turns.append("second"))
        await until(lambda: turns == ["second"])
    assert reports == ["a source that waited for the rate limit failed"]


async def test_control_messages_of_many_sources_share_datagrams() -> None:
    """The first leaves at once, the others behind it together; data is not held up, and overtakes nothing."""
    async with bench(PLENTY) as found:
        for number in range(20):
            found.stream.write(message([(7, number)]))
        assert found.sent() == 1
        await until(lambda: not found.sources._said)
        assert found.sent() == 2
        for number in range(20):
            found.stream.write(message([(7, number)]))
        found.stream.write(block(7, 0, 1))
        assert found.sent() == 3, "the control messages that waited leave with the data, before it"


async def test_gathered_control_messages_leave_before_the_session_ends() -> None:
    async with bench(PLENTY) as found:
        for number in range(3):
            found.stream.write(message([(7, number)]))
        found.sources.retire(found.session)
        assert found.sent() == 2


async def test_control_messages_that_left_with_data_use_up_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """If they did, no source of the context would announce itself any more."""
    said = message([(7, 0)])
    monkeypatch.setattr(reliable_sources, "MAX_SAID_BYTES", 2 * len(said))
    async with bench(PLENTY) as found:
        for number in range(5):
            for _ in range(2):  # Only the first one of all leaves at once.
                found.sources.say(found.session, said)
            found.stream.write(block(7, number, 1))
        assert (found.sent(), found.sources.unsaid) == (6, 0)


async def test_control_messages_that_a_retired_session_takes_along_use_up_no_room() -> None:
    async with bench(SLOW) as found:
        other = found.sources.open()
        for _ in range(2):  # The second one waits for the first one's datagram, or for the rate limit.
            found.sources.say(other, message([(8, 0)]))
        for number in range(3):
            found.sources.offer(found.session, block(7, number, 1, 60), BatchMark.END)
        assert found.sources.blocked
        found.sources.retire(other)
        assert (found.sources._said, found.sources._said_bytes) == ({}, 0)


async def test_control_messages_that_the_rate_limit_holds_up_leave_when_it_allows() -> None:
    """No timer runs for them, and a source may have nothing to say for long."""
    async with bench(SLOW) as found:
        for number in range(3):
            found.sources.offer(found.session, block(7, number, 1, 60), BatchMark.END)
        assert found.sources.blocked
        found.sources.say(found.session, message([(7, 2)]))
        assert found.sources._said
        await found.sources.room()
        assert not found.sources._said


async def test_many_control_messages_do_not_wait() -> None:
    async with bench(PLENTY) as found:
        room = reliable_sources.TOGETHER_BYTES // len(message([(7, 0)]))
        for number in range(room + 2):
            found.stream.write(message([(7, number)]))
        assert found.sent() > 2


async def test_sources_that_wait_for_room_get_it_in_turn() -> None:
    """Each time that the limit lets go a thousand sources were told, of which it held again all but one."""
    async with bench(SLOW) as found:
        turns = list[int]()

        def want(who: int) -> None:
            turns.append(who)
            found.sources.offer(found.session, block(7, who, 1, 60), BatchMark.END)

        found.sources.offer(found.session, block(7, 8, 1, 60), BatchMark.END)
        found.sources.offer(found.session, block(7, 9, 1, 60), BatchMark.END)
        assert found.sources.blocked
        for who in range(3):
            found.sources.when_room(partial(want, who))
        await until(lambda: len(turns) == 1)
        assert found.sources.blocked
        await until(lambda: len(turns) == 3)
        assert turns == [0, 1, 2]


async def test_a_stream_that_is_closed_twice_leaves_its_session_once() -> None:
    found, left = Bench(PLENTY), list[int]()
    stream = ReliableStream(found.sources, found.session, lambda: b"", found.held.append, lambda: left.append(1))
    await stream.start()
    await stream.close()
    await stream.close()
    assert left == [1]
    assert found.sources.streams == 0
    found.sources.close()


async def test_a_stream_that_is_closed_greets_no_more() -> None:
    async with bench(PLENTY) as found:
        timer = found.stream._timer
        assert timer is not None
        await found.stream.close()
        assert timer.cancelled()


async def test_a_stream_that_never_started_can_be_closed() -> None:
    found = Bench(PLENTY)
    await found.stream.close()
    found.sources.close()


async def test_closing_lets_out_what_waits_for_the_rate_limit() -> None:
    async with bench(SLOW) as found:
        for number in range(5):
            found.stream.write(block(7, number, 1, 60))
        await found.stream.close()
        assert found.sent() == 5


async def test_closing_gives_up_on_a_rate_limit_that_is_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliable_stream, "CLOSE_SECONDS", 0.02)
    async with bench(attrs.evolve(SLOW, interval_ns=SECOND)) as found:
        for number in range(100):
            found.stream.write(block(7, number, 1, 1000))
        await found.stream.close()
        assert found.sent() < 100


async def test_control_messages_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources repeat those that are left out."""
    said = message([(7, 2)])
    monkeypatch.setattr(reliable_sources, "MAX_SAID_BYTES", 2 * len(said))
    async with bench(SLOW) as found:
        for number in range(3):
            found.sources.offer(found.session, block(7, number, 1, 60), BatchMark.END)
        for _ in range(3):
            found.sources.say(found.session, said)
        assert (found.sources._said_bytes, found.sources.unsaid) == (2 * len(said), 1)
