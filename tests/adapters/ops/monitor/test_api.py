"""The figures of the pages as JSON."""

import json
import time

import attrs

from stablecast.ops.monitor import api
from stablecast.ops.monitor.board import STALE_NS, Board, Spans
from tests.adapters.ops.monitor.samples import RECEIVER, SOURCE
from tests.adapters.ops.monitor.staged_store import busy


async def swept() -> Board:
    board = Board([busy().watched()])
    await board.sweep()
    return board


async def test_everything_is_json() -> None:
    board = await swept()
    source = attrs.evolve(SOURCE, holes=3, receivers=(attrs.evolve(RECEIVER, active=False),))
    spans = Spans(5, 6, 7, ((1, 2),), ())
    told = [api.daemon(board), api.condition(board), api.store(board.stores[0]), api.source(source)]
    told += [api.source(source, spans), api.receiver(source.receivers[0], source)]
    for one in told:
        assert json.loads(json.dumps(one))
    assert "topics" not in told[2]
    assert (told[3]["level"], told[3]["findings"][0]["code"]) == ("WARNING", "under-replicated")
    assert told[3]["receivers"][0]["findings"][0]["code"] == told[5]["findings"][0]["code"] == "receiver-silent"
    assert "spans" not in told[3]
    assert told[4]["spans"]["holes"] == ((1, 2),)


async def test_a_look_that_is_old_is_not_fresh() -> None:
    board = Board([])
    assert not api.condition(board)["fresh"]
    board = await swept()
    old = attrs.evolve(board.stores[0].view, taken_ns=time.time_ns() - STALE_NS)
    board.stores[0] = attrs.evolve(board.stores[0], view=old)
    assert not api.condition(board)["fresh"]
