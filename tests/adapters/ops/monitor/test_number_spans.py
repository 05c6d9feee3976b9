"""The ranges of numbers of a source, and the stores that hold them."""

import pytest

from stablecast.ops.monitor import board as tested
from stablecast.ops.monitor.board import MAX_SPANS, Spans, spans
from tests.adapters.ops.monitor.staged_store import Staged, busy


@pytest.mark.rows("P-909", "P-911")
async def test_holes_are_named() -> None:
    """The page shows the state of the machine."""
    staged = busy()
    assert await spans(staged.watched(), 1002) == Spans(
        newest=3999, acknowledged=1000, in_memory=3955, holes=((1000, 1039), (3040, 3044)), lost=()
    )


async def test_what_was_given_up_is_lost() -> None:
    staged = Staged(burst=10)
    life = staged.source(1001)
    staged.data(life, 0, 5)
    staged.data(life, 100, 5)
    assert await spans(staged.watched(), 1001) == Spans(104, 105, 10, (), ((5, 99),))


async def test_who_is_not_there_has_none() -> None:
    assert await spans(Staged().watched(), 5) is None


async def test_a_source_that_has_said_nothing_has_no_holes() -> None:
    staged = Staged()
    staged.register_source(1001, life=99)
    assert await spans(staged.watched(), 1001) == Spans(-1, 0, 0, (), ())


async def test_the_number_of_spans_is_bounded() -> None:
    staged = Staged()
    life = staged.source(1001)
    for number in range(0, 4 * MAX_SPANS, 2):
        staged.data(life, number, 1)
    found = await spans(staged.watched(), 1001)
    assert found is not None
    assert len(found.holes) == MAX_SPANS
    assert tested.MAX_SPANS == 64
