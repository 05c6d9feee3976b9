"""The newest view of every store, and the listeners that wait for it."""

import asyncio
import time

import pytest

from stablecast.core.protocol.events import Farewell
from stablecast.ops.monitor import board as tested
from stablecast.ops.monitor.board import STALE_NS, Board
from stablecast.ops.monitor.health import Urgency
from stablecast.store import observatory
from stablecast.store.observatory import StoreView
from tests.adapters.ops.monitor.staged_store import Staged, busy


@pytest.fixture(autouse=True)
def _always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observatory, "FRESH_NS", 0)


def board_of(*stores: Staged) -> Board:
    return Board([store.watched(index) for index, store in enumerate(stores)])


async def test_a_sweep_looks_at_all_stores() -> None:
    board = board_of(busy(), Staged())
    assert (board.level, board.age_ns, board.sweeps) == (Urgency.OK, 0, 0)
    await board.sweep()
    first, second = board.stores
    assert sorted(first.rows) == [1001, 1002, 1003]
    assert (first.level, second.level, board.level) == (Urgency.WARNING, Urgency.OK, Urgency.WARNING)
    assert 0 <= board.age_ns < STALE_NS


async def test_many_sources_are_judged_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between them the loop turns, so the interpreter is free for the store's thread."""
    monkeypatch.setattr(tested, "CHUNK", 1)
    board = board_of(busy())
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await board.sweep()
    counting.cancel()
    assert turns >= 3
    assert len(board.stores[0].rows) == 3


async def test_a_row_is_the_same_one_sweep_after_sweep() -> None:
    """So nothing new is left for the collector of garbage."""
    staged = busy()
    board = board_of(staged)
    await board.sweep()
    row, rates = board.stores[0].rows[1001], board.stores[0].history.rate
    assert list(rates.values) == []
    staged.data(1001 << 32 | 17, 500, 100)
    await board.sweep()
    assert board.stores[0].rows[1001] is row
    assert row.lead == 599
    assert rates.newest > 0


async def test_a_source_that_went_is_forgotten() -> None:
    staged = busy()
    board = board_of(staged)
    await board.sweep()
    staged.machine.registry.delete(staged.clients.records[1002], 0, staged.machine.outbox, Farewell.EXPIRED)
    await board.sweep()
    assert sorted(board.stores[0].rows) == [1001, 1003]
    reg_ids = [1001, 1002, 1003]
    assert [view.reg_id for view in await tested.look(staged.watched(), reg_ids)] == [1001, 1003]


async def test_two_looks_at_one_instant_have_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    board = board_of(busy())
    await board.sweep()
    view = board.stores[0].view

    async def same() -> StoreView:
        return view

    monkeypatch.setattr(board.watched[0], "view", same)
    await board.sweep()
    assert list(board.stores[0].history.rate.values) == []


async def test_who_waits_for_news_hears_of_a_sweep() -> None:
    board = board_of(Staged())
    waiting = asyncio.create_task(board.news())
    await asyncio.sleep(0)
    assert not waiting.done()
    await board.sweep()
    await waiting


async def test_who_waits_for_news_hears_of_the_end() -> None:
    board = board_of(Staged())
    waiting = asyncio.create_task(board.news())
    await asyncio.sleep(0)
    board.end()
    await waiting
    await board.news()
    assert board.over


async def test_sweeps_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "SWEEP_SECONDS", 0)
    ticks = iter(range(1000))
    board = Board([Staged().watched()], clock=lambda: float(next(ticks) // 1000))
    running = asyncio.create_task(board.run())
    while board.sweeps < 3:
        await board.news()
    running.cancel()
    assert len(board.stores[0].history.lag.values) == board.sweeps
    assert time.time_ns() > board.stores[0].view.taken_ns
