"""Callers that wait for a message to be stable."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.client import Closed, NotStable
from stablecast.client import stability as module
from stablecast.client.stability import Stability

RANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted).map(tuple), max_size=12)


@given(RANGES)
def test_through_is_the_end_of_what_is_stable(ranges: list[tuple[int, int]]) -> None:
    stability, stable = Stability(), set[int]()
    stability.begin(5)
    for first, last in ranges:
        stability.on_stable(first, last)
        stable |= set(range(first, last + 1))
        expected = 4
        while expected + 1 in stable:
            expected += 1
        assert stability.through == expected
        assert stability.check_through(expected)
        assert not stability.check_through(expected + 1)


async def test_waiting() -> None:
    stability = Stability()
    stability.begin(10)
    waits = [asyncio.create_task(stability.wait(number)) for number in (10, 11, 11, 12)]
    await asyncio.sleep(0)
    stability.on_stable(11, 11)
    await asyncio.wait(waits[1:3])
    assert [wait.done() for wait in waits] == [False, True, True, False]
    stability.on_stable(10, 100)
    await asyncio.gather(*waits)
    await stability.wait(50)
    assert not len(stability)


async def test_reclaimed_messages_are_never_stable() -> None:
    stability = Stability()
    stability.begin(0)
    stability.on_stable(0, 1)
    lost = asyncio.create_task(stability.wait(3))
    await asyncio.sleep(0)
    stability.on_reclaimed(0, 3)
    with pytest.raises(NotStable, match="message 3 was reclaimed before it was stable"):
        await lost
    await stability.wait(1)
    for number in (2, 3):
        with pytest.raises(NotStable, match=f"message {number} was"):
            await stability.wait(number)
    assert stability.check_through(1)
    with pytest.raises(NotStable, match="message 2 was"):
        stability.check_through(9)
    stability.on_stable(4, 9)
    await stability.wait(9)


async def test_a_wait_that_was_cancelled_may_be_resolved() -> None:
    """Both in one turn of the loop."""
    stability = Stability()
    waits = [asyncio.create_task(stability.wait(number)) for number in (1, 2, 3)]
    await asyncio.sleep(0)
    for wait in waits:
        wait.cancel()
    stability.on_stable(1, 1)
    stability.on_reclaimed(0, 2)
    stability.close("source 'orders' was closed")
    await asyncio.wait(waits)
    assert all(wait.cancelled() for wait in waits)
    assert not len(stability)


async def test_closing() -> None:
    stability = Stability()
    stability.begin(0)
    stability.on_stable(0, 0)
    wait = asyncio.create_task(stability.wait(1))
    await asyncio.sleep(0)
    stability.close("source 'orders' was closed")
    with pytest.raises(Closed, match="source 'orders' was closed"):
        await wait
    with pytest.raises(Closed):
        await stability.wait(1)
    await stability.wait(0)


async def test_stable_ranges_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather is a stable message called not stable than the other way round."""
    monkeypatch.setattr(module, "MAX_RANGES", 3)
    stability = Stability()
    stability.begin(0)
    for number in range(0, 20, 2):
        stability.on_stable(number, number)
        stability.on_reclaimed(number, number + 1)
        assert len(stability._stable) <= 3
    assert stability.through == 0
    await stability.wait(0)
    await stability.wait(18)
    with pytest.raises(NotStable):
        await stability.wait(4)
