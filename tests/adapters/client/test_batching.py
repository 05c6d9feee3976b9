"""When what is sent leaves: at once, in batches that grow or grow old, and in batches that the application ends."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from stablecast.client import Context, Source
from stablecast.config.option_kinds import OptionError
from stablecast.config.options import Value
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.inputs import Departed
from stablecast.core.source.outbox import FLUSH_BYTES, PROMPT_MESSAGES
from tests.support.network import Network, until

HOUR = 3_600_000
MESSAGE = b"x" * 500
WIRE = len(MESSAGE) + 12
KINDS = ("tcp", "lbtrm", "lbtru")


async def watched(
    net: Network, options: dict[str, Value] | None = None, stores: bool = False
) -> tuple[Source, list[int]]:
    """A source, and the sizes of what leaves."""
    context: Context = await net.context()
    source = await context.source("orders", stores=[await net.store()] if stores else [], options=options)
    left: list[int] = []
    assert source.stream is not None
    write: Callable[[bytes], None] = source.stream.write

    def noted(block: bytes) -> None:
        if block[0] == 0:
            left.append(len(block))
        write(block)

    source.stream.write = noted  # type: ignore[method-assign]
    return source, left


def batching(length: int, interval: int) -> dict[str, Value]:
    return {"implicit_batching_minimum_length": length, "implicit_batching_interval": interval}


async def test_by_default_the_first_few_leave_at_once_and_the_others_at_the_end_of_the_turn(net: Network) -> None:
    source, left = await watched(net)
    for turn in (1, 2):
        for _ in range(PROMPT_MESSAGES + 2):
            source.try_send(MESSAGE)
        assert left == [WIRE] * PROMPT_MESSAGES
        await asyncio.sleep(0)
        assert left == [WIRE] * PROMPT_MESSAGES + [2 * WIRE]
        assert source.next_number == turn * (PROMPT_MESSAGES + 2)
        left.clear()


async def test_messages_that_left_at_once_are_reported_before_the_next_input_or_soon(net: Network) -> None:
    source, _ = await watched(net)
    machine = source._machine
    for _ in range(2):
        source.try_send(MESSAGE)
    assert machine.window.next == 0
    await until(lambda: machine.window.next == 2)
    source.try_send(MESSAGE)
    source.receive(Departed(5))
    assert machine.window.next == 3
    source.try_send(MESSAGE)
    source.flush()
    assert machine.window.next == 4
    source.try_send(MESSAGE)
    source._driver._wake()
    assert machine.window.next == 5


async def test_a_source_that_is_recorded_tells_its_machine_at_the_end_of_the_turn(net: Network, tmp_path: Path) -> None:
    context = await net.context(trace=tmp_path)
    source = await context.source("orders")
    for _ in range(2):
        source.try_send(MESSAGE)
    assert source._machine.window.next == 0
    await asyncio.sleep(0)
    assert source._machine.window.next == 2


@pytest.mark.rows("P-959", "M-018")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_batch_leaves_when_it_has_grown_to_the_minimum(net: Network, kind: str) -> None:
    """A message is added first; a floor, not a ceiling, so 2000 + 500 bytes leave together."""
    source, left = await watched(net, {"transport": kind, **batching(2048, HOUR)})
    source.try_send(bytes(1988))
    await asyncio.sleep(0)
    assert left == []
    source.try_send(bytes(488))
    assert left == [2500]
    source.try_send(MESSAGE)
    await asyncio.sleep(0)
    assert left == [2500]
    await source.close()
    assert left == [2500, WIRE], "closing sends what waits"


async def test_a_message_waits_for_the_interval_and_no_longer(net: Network) -> None:
    """It counts from the oldest message: a batch that left in between starts it anew."""
    source, left = await watched(net, batching(2 * WIRE, 3))
    loop = asyncio.get_running_loop()
    source.try_send(MESSAGE)
    before = source._timer
    source.try_send(MESSAGE)
    assert (left, source._timer) == ([2 * WIRE], None)
    source.try_send(MESSAGE)
    assert source._timer is not None is not before
    assert source._timer.when() <= loop.time() + 0.003
    await until(lambda: len(left) == 2)
    assert left == [2 * WIRE, WIRE]


async def test_a_minimum_of_one_byte_is_no_batching(net: Network) -> None:
    source, left = await watched(net, batching(1, HOUR))
    for _ in range(3):
        source.try_send(MESSAGE)
    assert left == [WIRE] * 3


@pytest.mark.parametrize("many", [list, tuple, iter])
async def test_lists_wait_as_single_messages_do(net: Network, many: Callable[[list[bytes]], list[bytes]]) -> None:
    source, left = await watched(net, batching(2 * WIRE, HOUR))
    assert await source.send_many(many([MESSAGE] * 5)) == 4
    assert left == [2 * WIRE, 2 * WIRE]
    source.flush()
    assert left[2:] == [WIRE]


async def test_messages_with_properties_are_batched_too(net: Network) -> None:
    """Beside plain ones, never with them."""
    source, left = await watched(net, batching(32_768, HOUR))
    for place in range(6):
        source.try_send(MESSAGE, {"n": place} if place % 4 < 2 else None)
    assert len(left) == 2
    assert left[1] == 2 * WIRE
    source.flush()
    assert left[0] == left[2]
    assert source.credit > 0


async def test_a_batch_of_the_applications_leaves_when_it_ends(net: Network) -> None:
    source, left = await watched(net)
    with source.batch():
        for _ in range(3):
            await source.send(MESSAGE)
        await asyncio.sleep(0.005)
        with source.batch():
            source.try_send(MESSAGE, {"k": 1})
        assert left == [3 * WIRE], "what is not plain leaves in a block of its own"
        source.try_send(MESSAGE)
    assert len(left) == 3
    source.try_send(MESSAGE)
    assert left[3:] == [WIRE]


async def test_a_batch_that_fails_leaves_all_the_same(net: Network) -> None:
    """Sent messages have numbers and cannot be withdrawn."""
    source, left = await watched(net)
    with pytest.raises(TypeError), source.batch():  # noqa: PT012  # the first succeeds
        source.try_send(MESSAGE)
        source.try_send("text")  # type: ignore[arg-type]
    assert left == [WIRE]


async def test_a_batch_that_grows_leaves_in_blocks(net: Network) -> None:
    """A bound on what waits."""
    source, left = await watched(net)
    with source.batch():
        await source.send_many([MESSAGE] * 200)
        assert left
        assert max(left) < FLUSH_BYTES + WIRE
    assert sum(left) == 200 * WIRE


WAITS: list[Callable[[Source], Awaitable[object]]] = [
    lambda source: source.send(MESSAGE),
    lambda source: source.room(),
    lambda source: source.wait_stable(1),
    lambda source: source.wait_stable_through(1),
]


@pytest.mark.parametrize("wait", WAITS)
async def test_waiting_for_stability_sends_first(net: Network, wait: Callable[[Source], Awaitable[object]]) -> None:
    """T13: a full flight, or somebody who wants stability, ends a batch, be it one of the application's."""
    source, left = await watched(net, {"ume_flight_size": 2, **batching(32_768, HOUR)}, stores=True)
    with source.batch():
        source.try_send(MESSAGE)
        source.try_send(MESSAGE)
        assert left == []
        await wait(source)
        assert left == [2 * WIRE]


@pytest.mark.parametrize("options", [batching(0, 1), batching(1 << 21, 1), batching(1, -1)])
async def test_impossible_batching_is_refused(net: Network, options: dict[str, Value]) -> None:
    with pytest.raises(OptionError, match="implicit_batching"):
        await (await net.context()).source("orders", options=options)


async def test_a_documented_profile_batches_as_documented(net: Network) -> None:
    """2048 bytes and 200 ms, to the letter; what is set explicitly wins."""
    context = await net.context(profile="6.17")
    source = await context.source("orders")
    assert (source._out._least, source._out.span_ns) == (2048, 200 * MILLISECOND)
    other = await context.source("quotes", options={"implicit_batching_interval": 0})
    assert (other._out._least, other._out.span_ns) == (2048, 0)
