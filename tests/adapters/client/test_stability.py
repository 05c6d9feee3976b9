"""Callers that wait for a message to be stable."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.client import Closed, NotStable
from stablecast.client import stability as module
from stablecast.client.stability import Stability
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.effects import Effect, Notify
from stablecast.core.protocol.events import NotStable as NotStableEvent
from stablecast.core.protocol.events import Reclaimed, Stable, StableFlag
from stablecast.core.protocol.quorum import GroupRules, Quorums
from stablecast.core.protocol.settings import RepositoryType, Retention
from stablecast.core.source.stability import StabilityWindow
from tests.support.network import Events, Network, until

GROUP = Quorums.of(GroupRules((3,)), [0, 0, 0])
"""Three stores, of which two are enough."""

RANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted).map(tuple), max_size=12)


def window() -> StabilityWindow:
    """Return the window of a source that sent messages 0 to 99 to three stores."""
    made = StabilityWindow.create(GROUP, Retention(), 3)
    made.sent(100, 100, [])
    return made


@given(RANGES)
def test_through_is_the_end_of_what_is_stable(ranges: list[tuple[int, int]]) -> None:
    stability, stable = Stability(window()), set[int]()
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


@pytest.mark.parametrize("missing", [None, 0, 1, 2, 3])
async def test_a_cut_message_that_is_reclaimed_without_a_piece_is_not_stable(missing: int | None) -> None:
    """Whoever asks later must not take the piece that two stores have for the message."""
    window = StabilityWindow.create(GROUP, Retention(limit_bytes=1000), 3)
    stability = Stability(window)
    stability.begin(0)
    stability.cut(0, 3)
    window.large.add(0, 3)
    out: list[Effect] = []
    window.sent(4, 400, out)
    for store in 0, 1:
        for piece in sorted({3, 2, 1, 0} - {missing}, reverse=True):
            window.on_acked(store, piece, piece + 1, out)
    window.sent(1, 900, out)
    events = [effect.event for effect in out if isinstance(effect, Notify)]
    assert [event.forced for event in events if isinstance(event, Reclaimed)] == [missing is not None]
    for event in events:
        if isinstance(event, Stable) and event.flags & StableFlag.STABLE:
            stability.on_stable(event.first, event.last)
        elif isinstance(event, Reclaimed):
            stability.on_reclaimed(event.first, event.last)
    if missing is None:
        await stability.wait(3)
    else:
        with pytest.raises(NotStable):
            await stability.wait(3)
    assert not stability._large.firsts


async def test_waiting() -> None:
    stability = Stability(window())
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
    stability = Stability(window())
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
    stability = Stability(window())
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
    stability = Stability(window())
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
    stability = Stability(window())
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


async def test_messages_that_every_store_lost_are_never_stable() -> None:
    stores = window()
    stability = Stability(stores)
    stability.begin(0)
    waits = [asyncio.create_task(stability.wait(number)) for number in (4, 5, 6)]
    await asyncio.sleep(0)
    for store, first, stop in ((0, 3, 8), (1, 5, 6), (2, 0, 7)):
        stores.on_nacked(store, first, stop, [])
        stability.on_lost_at_store(first, stop - 1)
        await asyncio.sleep(0)
    assert [wait.done() for wait in waits] == [False, True, False]
    with pytest.raises(NotStable, match=r"all 3 stores of the source gave up message 5,.* then send it again"):
        await waits[1]
    with pytest.raises(NotStable, match="message 5,"):
        await stability.wait(5)
    assert not stability.check_through(4)
    with pytest.raises(NotStable, match="message 5,"):
        stability.check_through(5)
    stability.on_stable(0, 5)  # A store that registered again accepted what it had lost.
    await stability.wait(5)
    assert stability.check_through(5)
    stability.on_stable(6, 6)
    await waits[2]


async def test_a_message_that_one_store_holds_may_become_stable() -> None:
    """The other stores lost it, and get it from this one."""
    stores = window()
    stability = Stability(stores)
    stability.begin(0)
    wait = asyncio.create_task(stability.wait(0))
    await asyncio.sleep(0)
    stores.on_acked(2, 0, 1, [])
    for store in (0, 1, 2):
        stores.on_nacked(store, 0, 1, [])
        stability.on_lost_at_store(0, 0)
    await asyncio.sleep(0)
    assert not wait.done()
    assert not stability.check_through(0)
    stability.on_stable(0, 0)
    await wait


@pytest.mark.parametrize("stores", [1, 3])
async def test_a_message_that_no_store_has_room_for(net: Network, stores: int) -> None:
    """Its waiters would wait for the lifetime of 20 minutes. Other messages become stable meanwhile."""
    quick = {"give_up_ns": 200 * MILLISECOND, "retry_ns": 50 * MILLISECOND, "check_ns": 20 * MILLISECOND}
    places = [
        await net.store(str(number), changes=quick, kind=RepositoryType.MEMORY, size_limit=1000)
        for number in range(stores)
    ]
    events = Events()
    source = await (await net.context()).source(
        "orders",
        stores=places,
        on_event=events,
        options={"ume_message_stability_timeout": 400, "ume_store_check_interval": 50},
    )
    await (await source.send(b"small")).stable()
    large = await source.send(bytes(2000))
    kept = [next(iter(store.machine.repositories.values())) for store in net.stores.values()]
    await until(lambda: all(repository.dropped for repository in kept))  # A store refuses a run as a whole.
    small = await source.send(b"small")
    waits = [large.stable(), source.wait_stable_through(small.number)]
    await small.stable()
    for result in await asyncio.gather(*waits, return_exceptions=True):
        assert isinstance(result, NotStable)
        assert "gave up message 1," in str(result)
    assert len(events.of(NotStableEvent)) == stores
    assert source.stable_through == 0
