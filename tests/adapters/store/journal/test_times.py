"""The search by time: the first number that came at a time or later, in few reads, whatever the pieces are."""

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.store.journal.number_pieces import Live, Pieces
from stablecast.store.journal.segments import JournalSegment, RecordPlace, segment_path
from stablecast.store.journal.times import TimeSearch

SEGMENT = JournalSegment(1, 0, segment_path(Path("d"), 1))


def search(runs: Sequence[tuple[int, int, int | None]]) -> tuple[TimeSearch, list[int]]:
    """Return a search over runs (first, count, time), and the sizes of its reads."""
    pieces = Pieces()
    times: dict[int, int | None] = {}
    for offset, (first, count, time) in enumerate(runs):
        pieces.add(RecordPlace(SEGMENT, offset, 100, first, 1, count))
        times[offset] = time
    reads: list[int] = []

    async def read(records: list[RecordPlace]) -> list[int | None]:
        reads.append(len(records))
        return [times[record.offset] for record in records]

    return TimeSearch(pieces.following, read), reads


RUNS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=40)


@settings(deadline=None)
@given(RUNS, st.integers(-5, 400), st.integers(0, 60))
async def test_the_first_number_since_a_time(steps: list[tuple[int, int, int]], at: int, low: int) -> None:
    runs, number, time = [], 0, 0
    for gap, count, later in steps:
        number, time = number + gap, time + later
        runs.append((number, count, time))
        number += count
    found, _ = search(runs)
    came = [(one, when) for first, count, when in runs for one in range(first, first + count) if one >= low]
    expected = next((one for one, when in came if when >= at), number)
    assert await found.first_since(low, max(low, number), at) == max(expected, low)
    times, reach = await found.times(low, number, 10_000)
    assert reach == max(low, number) or low >= number
    assert times == [(max(first, low), when) for first, count, when in runs if first + count > low]


@given(st.integers(0, 99_999))
@settings(max_examples=20, deadline=None)
async def test_a_search_among_many_reads_few_records(wanted: int) -> None:
    found, reads = search([(10 * run, 10, 1000 * run) for run in range(2000)])
    times = [1000 * run for run in range(2000)]
    place = bisect_left(times, 20 * wanted)
    assert await found.first_since(0, 20_000, 20 * wanted) == 10 * place
    assert len(reads) <= 16


async def test_records_without_a_time_are_older_than_any() -> None:
    found, _ = search([(0, 10, None), (10, 10, 50), (20, 10, 60)])
    assert await found.first_since(0, 30, 0) == 10
    assert await found.first_since(0, 30, 55) == 20
    assert await found.first_since(0, 30, 99) == 30
    assert await found.ends(0, 30) == (None, 60)
    assert [await found.ends(*part) for part in ((25, 40), (30, 40), (5, 5))] == [(None, None)] * 3
    assert (await found.times(0, 30, 1))[1] == 10
    assert await found.times(0, 20, 9) == ([(10, 50)], 20)


def test_the_piece_that_follows_a_number() -> None:
    pieces = Pieces()
    for first in range(10, 30_000, 10):
        pieces.add(RecordPlace(SEGMENT, first, 100, first, 1, 5))

    def start(number: int) -> int | None:
        found: Live | None = pieces.following(number)
        return None if found is None else found[0]

    assert [start(number) for number in (0, 10, 14, 15, 19, 20, 10_235, 29_990, 29_995)] == [
        10, 10, 10, 20, 20, 20, 10_240, 29_990, None,
    ]  # fmt: skip
