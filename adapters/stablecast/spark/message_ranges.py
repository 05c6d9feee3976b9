"""The ranges of a query, planned at the driver: which numbers of which source each task reads.

An offset names each source, its newest life, and the first number that is not read: `{"7": {"ce2f9b...": 4711}}`. The
number alone decides, because a number that is stable is never used again; the life is for people. A source is known by
its session id, or without one by its first life. In a query of several topics its topic comes first: `orders/7`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

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

    def topic(self, terms: ReadTerms) -> str:
        return self.source.rpartition("/")[0] if terms.several else terms.topics[0]

    @property
    def name(self) -> str:
        return self.source.rpartition("/")[2]

    @property
    def chosen(self) -> int:
        """Return the session id or the life by which a reader chooses the source."""
        return chosen_by(self.name)


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


def ranges(terms: ReadTerms) -> list[SourceSpan]:
    """Return the range of each source between the bounds of a query. Raises ReadFailed, BoundError, TopicError."""
    return run_loop(_ranges(terms))


async def _ranges(terms: ReadTerms) -> list[SourceSpan]:
    async with Context(interface=interface_to(terms.stores, terms.interface)) as context:
        return await spans(context, terms)


async def planned(context: Context, terms: ReadTerms) -> list[tuple[SourceContents, SourceRange]]:
    """Return the sources with the ranges that a query would read now. Raises ReadFailed, BoundError, TopicUnknown."""
    since, until = terms.bounds()
    ReadBounds.of(since, until)
    found = []
    for topic in await _topics(context, terms):
        reader = context.reader(
            topic,
            stores=terms.stores,
            sources=terms.sources,
            since=since,
            until=until,
            patience=terms.patience,
            quorum=terms.quorum,
            new=terms.new or terms.archive is not None,
        )
        found += await reader.plan()
    return found


async def _topics(context: Context, terms: ReadTerms) -> list[str]:
    """Return the topics of the query: those that are named, and those that its pattern matches now."""
    if terms.pattern is None:
        return list(terms.topics)
    matches = re.compile(terms.pattern).search
    stored, _ = await context.stored(stores=terms.stores, patience=terms.patience)
    return list(dict.fromkeys([*terms.topics, *sorted({one.topic for one in stored.sources if matches(one.topic)})]))


async def spans(context: Context, terms: ReadTerms) -> list[SourceSpan]:
    """Return the sources as a query would read them now, each between its own bounds if it has some.

    Raises ReadFailed, BoundError, and TopicError for a bound of a source that there is not.
    """
    found = {one.name: one for one in _states(terms, await planned(context, terms))}
    for name in (*terms.starts, *terms.ends):
        if name not in found:
            known = ", ".join(sorted(found)) or "none"
            raise TopicError(f"no store knows source {name!r} of '{terms.topic}', which has a bound: there are {known}")
    for bound in dict.fromkeys(terms.starts.values()):
        for one in _states(terms, await planned(context, attrs.evolve(terms, start=bound))):
            if terms.starts.get(one.name) == bound:
                found[one.name] = attrs.evolve(one, stop=max(one.first, found[one.name].stop))
    for bound in dict.fromkeys(terms.ends.values()):
        for one in _states(terms, await planned(context, attrs.evolve(terms, end=bound))):
            if terms.ends.get(one.name) == bound:
                found[one.name] = attrs.evolve(found[one.name], stop=max(found[one.name].first, one.stop))
    return list(found.values())


def _states(terms: ReadTerms, found: list[tuple[SourceContents, SourceRange]]) -> list[SourceSpan]:
    """Return the planned sources as the query knows them."""
    return [_state(named(terms, source), source, one) for source, one in found]


def named(terms: ReadTerms, source: SourceContents) -> str:
    """Return the name of a source in the offsets of a query."""
    return f"{source.topic}/{name_of(source)}" if terms.several else name_of(source)


def _state(name: str, source: SourceContents, one: SourceRange) -> SourceSpan:
    newest = source.newest
    kept = sum(stop - first for first, stop in newest.ranges)
    average = newest.stored_bytes // kept if kept else 0
    return SourceSpan(name, f"{source.incarnation:016x}", one.first, one.stop, max(1, average))


def number_of(offset: Mapping[str, Mapping[str, int]], source: str) -> int | None:
    """Return the first number of a source that is not read, None if the offset does not name the source."""
    return max(offset[source].values(), default=None) if source in offset else None


@attrs.define
class Wanted:
    """What filters leave of a table: whole topics and sources, and numbers. Spark filters the rows once more.

    Attributes:
        values: The values that the columns `topic` and `source` may have.
        first, stop: The numbers that may be wanted, [first, stop).
    """

    values: dict[str, set[str]] = attrs.field(factory=dict)
    first: int = 0
    stop: int = 1 << 63

    def only(self, column: str, values: Iterable[object]) -> None:
        allowed = {one for one in values if isinstance(one, str)}
        self.values[column] = self.values.get(column, allowed) & allowed

    def numbers(self, first: int, stop: int) -> None:
        """Leave only the numbers [first, stop)."""
        self.first, self.stop = max(self.first, first), min(self.stop, stop)

    def of(self, terms: ReadTerms, piece: TopicPiece) -> Iterator[TopicPiece]:
        """Yield the part of a piece that may have wanted rows, if there is one."""
        has = {"topic": piece.topic(terms), "source": piece.name}
        first, stop = max(piece.first, self.first), min(piece.stop, self.stop)
        if first < stop and all(has[column] in values for column, values in self.values.items()):
            yield attrs.evolve(piece, first=first, stop=stop)


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
