"""A context measures the times of messages and of the loop, as OpenMetrics, and only if it is asked to."""

import re
from functools import partial
from typing import Any, Final

import pytest

from stablecast.client import METRICS_TYPE, Context, MisuseError, Receiver, Source
from stablecast.client.measured_times import MAX_TIMED, MAX_TOPICS, OTHER, ContextTimes, TimedBlocks, TimedSession
from stablecast.core.machine.durations import Durations
from stablecast.core.protocol import inputs
from stablecast.core.source.outbox import Block
from stablecast.sync import Context as BlockingContext
from tests.support.network import Network, until
from tests.support.traffic import send, take

SAMPLE: Final = re.compile(r"(\w+)\{([^}]*)\} (\S+)(?: # \{([^}]*)\} (\S+) (\S+))?")
COUNT: Final = 20


def samples(text: str) -> dict[tuple[str, str], float]:
    """Return the values by name and labels, after a look at the form."""
    assert text.endswith("# EOF\n")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = [SAMPLE.fullmatch(line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found, strict=True) if not match]
    return {(match[1], match[2]): float(match[3]) for match in found if match}


async def measured(net: Network) -> tuple[Context, Source, Receiver]:
    """Send messages, and return the context that is measured, their source and their receiver."""
    store = await net.store()
    context = await net.context(metrics=True)
    source = await context.source("orders", stores=[store])
    receiver = context.receiver("orders", session_id=9)
    await until(lambda: receiver._sessions)
    await send(source, COUNT)
    return context, source, receiver


async def test_messages_and_the_loop_are_timed(net: Network) -> None:
    context, source, receiver = await measured(net)
    await take(receiver, COUNT)
    assert context.times is not None
    times = context.times
    await until(lambda: times.topics["orders"].delivery.view().count)
    await until(lambda: times.lag.view().count)
    text = context.metrics()
    found = samples(text)
    assert METRICS_TYPE.startswith("application/openmetrics-text")
    for name in ("stable", "delivery"):
        key = f"stablecast_client_{name}_seconds"
        count = found[f"{key}_count", 'topic="orders"']
        assert 1 <= count <= COUNT
        assert found[f"{key}_bucket", 'topic="orders",le="+Inf"'] == count
        assert found[f"{key}_sum", 'topic="orders"'] > 0
    stable = [match[4] for line in text.splitlines() if "client_stable" in line and (match := SAMPLE.fullmatch(line))]
    (example,) = {one for one in stable if one}
    assert example == f'topic="orders",number="{source.next_number - 1}"'
    assert found["stablecast_client_unstable_messages", 'topic="orders"'] == 0
    assert found["stablecast_client_waiting_messages", 'topic="orders"'] == 0
    assert any(name == "stablecast_client_loop_lag_seconds_count" for name, _ in found)


async def test_messages_that_wait_are_counted(net: Network) -> None:
    context, _, receiver = await measured(net)
    await until(lambda: receiver.unconsumed == COUNT)
    assert samples(context.metrics())["stablecast_client_waiting_messages", 'topic="orders"'] == COUNT


async def test_a_context_that_is_not_asked_runs_the_plain_code(net: Network) -> None:
    """Nobody watches a source or session, so no message costs more."""
    store = await net.store()
    for asked in (False, True):
        context = await net.context(metrics=asked)
        source = await context.source(f"orders{asked}", stores=[store])
        receiver = context.receiver(f"orders{asked}", session_id=9)
        await until(partial(dict.copy, receiver._sessions))
        (session,) = receiver._sessions.values()
        assert bool(source._observers) is asked
        assert bool(session._observers) is asked
        assert (session._give == receiver.deliver) is not asked
        if not asked:
            with pytest.raises(MisuseError, match=r"Context\(metrics=True\)"):
                context.metrics()


def test_the_blocking_client_has_them_too() -> None:
    with BlockingContext(metrics=True) as context:
        assert "stablecast_client_loop_lag_seconds" in context.metrics()


class Emitted:
    """A source as blocks see it."""

    topic = "orders"
    stable_through = -1


def block(first: int, count: int) -> Block:
    return Block(first, count, 0, [])


def test_a_block_is_stable_when_all_of_it_is() -> None:
    source: Any = Emitted()
    times = Durations()
    blocks = TimedBlocks(times, source)
    for first in (0, 5, 10):
        blocks.sent(block(first, 5))
    for through, counted in ((3, 0), (4, 1), (8, 1), (14, 3)):
        source.stable_through = through
        blocks.stable(0, through)
        assert times.view().count == counted


def test_a_block_that_was_reclaimed_has_no_time() -> None:
    source: Any = Emitted()
    times = Durations()
    blocks = TimedBlocks(times, source)
    blocks.sent(block(0, 5))
    blocks.sent(block(5, 5))
    blocks.stable(0, 4)
    source.stable_through = -1
    blocks.reclaimed(5, 9, forced=True)
    assert times.view().count == 0


def test_a_loss_is_timed_until_what_follows_is_delivered() -> None:
    topics = ContextTimes()
    session = TimedSession(topics.of("orders"), "orders")
    session.missing(inputs.Lost(1, 10, 5))
    for first, counted in ((0, 0), (10, 1), (15, 1)):
        batch: Any = type("Batch", (), {"first": first, "count": 5, "arrived_ns": 0})()
        session.delivered(batch)
        assert topics.of("orders").recovery.view().count == counted


async def test_a_context_that_is_closed_measures_no_more() -> None:
    async with Context(metrics=True) as context:
        assert context.times is not None
        timer = context.times._timer
        assert timer is not None
        assert not timer.cancelled()
    assert timer.cancelled()


def test_what_is_timed_at_once_is_bounded() -> None:
    source: Any = Emitted()
    blocks = TimedBlocks(Durations(), source)
    for first in range(MAX_TIMED + 5):
        blocks.sent(block(first, 1))
    assert len(blocks._left) == MAX_TIMED
    times = ContextTimes()
    for number in range(MAX_TOPICS + 5):
        times.of(f"topic {number}")
    assert len(times.topics) == MAX_TOPICS + 1
    assert times.of("one more") is times.topics[OTHER]
