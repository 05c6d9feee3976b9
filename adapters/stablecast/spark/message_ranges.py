"""The ranges of a query, planned at the driver: which numbers of which source each task reads.

An offset names each source, its newest life, and the first number that is not read: `{"7": {"ce2f9b...": 4711}}`. The
number alone decides, because a number that is stable is never used again; the life is for people. A source is known by
its session id, or without one by its first life.
"""

from collections.abc import Iterator, Mapping

import attrs

from stablecast.archive.message_columns import chosen_by, name_of
from stablecast.client import Context
from stablecast.client.range_bounds import ReadBounds
from stablecast.client.range_contents import SourceContents
from stablecast.client.range_reader import SourceRange
from stablecast.core.errors import StablecastError
from stablecast.runtime.event_loop import run_loop
from stablecast.spark.message_options import ReadTerms, interface_to

Offset = dict[str, dict[str, int]]
"""Source, life, and the first number that is not read."""


class TopicError(StablecastError):
    """The topic cannot be read as the query wants it. The text names the reason."""


@attrs.frozen
class TopicPiece:
    """Numbers [first, stop) of one source, which one task reads from the stores, or from the archive of the query."""

    source: str
    first: int
    stop: int
    archived: bool = False

    @property
    def chosen(self) -> int:
        """Return the session id or the life by which a reader chooses the source."""
        return chosen_by(self.source)


@attrs.frozen
class SourceSpan:
    """A source as the stores show it now: it may be read from `first` on, and is stable below `stop`.

    `remembered`: the stores know from the session of the query that it continues at `first`.
    """

    name: str
    life: str
    first: int
    stop: int
    average_bytes: int
    remembered: bool = False


def ranges(terms: ReadTerms, start: str, end: str) -> list[SourceSpan]:
    """Return the range of each source between two bounds, as users write them. Raises ReadFailed, BoundError."""
    return run_loop(_ranges(attrs.evolve(terms, start=start, end=end)))


async def _ranges(terms: ReadTerms) -> list[SourceSpan]:
    since, until = terms.bounds()
    ReadBounds.of(since, until)
    async with Context(interface=interface_to(terms.stores, terms.interface)) as context:
        return spans(await planned(context, terms))


async def planned(context: Context, terms: ReadTerms) -> list[tuple[SourceContents, SourceRange]]:
    """Return the sources with the ranges that a query would read now. Raises ReadFailed, BoundError."""
    since, until = terms.bounds()
    reader = context.reader(
        terms.topic,
        stores=terms.stores,
        sources=terms.sources,
        since=since,
        until=until,
        patience=terms.patience,
        quorum=terms.quorum,
        new=True,
    )
    return await reader.plan()


def spans(found: list[tuple[SourceContents, SourceRange]]) -> list[SourceSpan]:
    """Return the planned sources as a query knows them."""
    return [_state(source, one) for source, one in found]


def _state(source: SourceContents, one: SourceRange) -> SourceSpan:
    newest = source.newest
    kept = sum(stop - first for first, stop in newest.ranges)
    average = newest.stored_bytes // kept if kept else 0
    return SourceSpan(name_of(source), f"{source.incarnation:016x}", one.first, one.stop, max(1, average))


def number_of(offset: Mapping[str, Mapping[str, int]], source: str) -> int | None:
    """Return the first number of a source that is not read, None if the offset does not name the source."""
    return max(offset[source].values(), default=None) if source in offset else None


def pieces(start: Offset, end: Offset, messages: int) -> list[TopicPiece]:
    """Return the pieces of at most so many messages between two offsets."""
    found = []
    for source, lives in end.items():
        stop = max(lives.values(), default=0)
        first = number_of(start, source) or 0
        found += [TopicPiece(source, at, min(stop, at + messages)) for at in range(first, stop, messages)]
    return found


def limited(
    start: Offset, states: list[SourceSpan], rows: int | None, size: int | None
) -> Iterator[tuple[SourceSpan, int, int]]:
    """Yield each source with the range to read next, in its share of a limit on rows and bytes."""
    open_ranges = []
    for state in states:
        known = number_of(start, state.name)
        first = state.first if known is None else known
        open_ranges.append((state, first, max(first, state.stop)))
    total = sum(stop - first for _, first, stop in open_ranges)
    volume = sum((stop - first) * state.average_bytes for state, first, stop in open_ranges)
    share = min(
        1.0,
        rows / total if rows is not None and total else 1.0,
        size / volume if size is not None and volume else 1.0,
    )
    left = None if rows is None else rows
    for state, first, stop in open_ranges:
        count = stop - first
        if share < 1.0 and count:
            count = min(count, max(1, int(count * share)))
        if left is not None:
            count = min(count, left)
            left -= count
        yield state, first, first + count
