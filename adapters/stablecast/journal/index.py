"""Which record holds which sequence number: in memory, rebuilt from the segments at open.

A stream is a sorted list of disjoint *pieces* [start, stop), each pointing to the record whose numbers it shows. A
newer record or an erasure shortens, splits or removes pieces; records themselves never change. An erasure is
remembered for as long as a segment that it looks back on still holds records of its stream: it has to be repeated in
newer segments, or those records would come back to life at the next open (see `format`).
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Set

import attrs

from stablecast.core.errors import MisuseError
from stablecast.journal.format import ERASE_BODY, HIGHEST, LOWEST
from stablecast.journal.segments import Position, Record, Segment

_NOTHING: frozenset[Segment] = frozenset()


@attrs.frozen
class Erase:
    """Numbers start <= n < stop of a stream are dead in every record before `as_of`."""

    stream: int
    start: int
    stop: int
    as_of: Position

    def body(self) -> bytes:
        """Returns the body of the ERASE record.

        Raises:
            MisuseError: If a number does not fit its field.
        """
        try:
            return ERASE_BODY.pack(self.stream, self.start, self.stop, *self.as_of)
        except struct.error as error:
            raise MisuseError(f"a number of the erasure does not fit its field: {error}") from error

    def covers(self, older: "Erase") -> bool:
        """Tells whether `older` has nothing to add to this one."""
        return self.start <= older.start and older.stop <= self.stop and older.as_of <= self.as_of


@attrs.define(eq=False)
class Pieces:
    """The live numbers of one stream, as three parallel lists in ascending order."""

    starts: list[int] = attrs.field(factory=list)
    stops: list[int] = attrs.field(factory=list)
    records: list[Record] = attrs.field(factory=list)

    def add(self, start: int, stop: int, record: Record) -> Set[Segment]:
        """Shows [start, stop) in `record`, whatever showed it before; returns the segments with nothing live left."""
        record.segment.live += 1
        if not self.stops or start >= self.stops[-1]:
            self.starts.append(start)
            self.stops.append(stop)
            self.records.append(record)
            return _NOTHING
        emptied = self.erase(start, stop)
        at = bisect_left(self.starts, start)
        self.starts.insert(at, start)
        self.stops.insert(at, stop)
        self.records.insert(at, record)
        return emptied

    def erase(self, start: int, stop: int, as_of: Position | None = None) -> Set[Segment]:
        """Hides [start, stop), if given only in records before `as_of`; returns the segments with nothing live left."""
        low = bisect_right(self.stops, start)
        high = bisect_left(self.starts, stop)
        if low >= high:
            return _NOTHING
        kept: list[tuple[int, int, Record]] = []
        touched: set[Segment] = set()
        for at in range(low, high):
            begin, end, record = self.starts[at], self.stops[at], self.records[at]
            if as_of is not None and record.position >= as_of:
                kept.append((begin, end, record))
                continue
            rest = [(a, b, record) for a, b in ((begin, min(end, start)), (max(begin, stop), end)) if a < b]
            record.segment.live += len(rest) - 1
            touched.add(record.segment)
            kept += rest
        self.starts[low:high] = [piece[0] for piece in kept]
        self.stops[low:high] = [piece[1] for piece in kept]
        self.records[low:high] = [piece[2] for piece in kept]
        return {segment for segment in touched if not segment.live}

    def find(self, number: int) -> tuple[int, Record] | None:
        """Returns the stop of the piece that shows `number` and its record."""
        at = bisect_right(self.starts, number) - 1
        if at < 0 or number >= self.stops[at]:
            return None
        return self.stops[at], self.records[at]


@attrs.define(eq=False)
class Index:
    """The pieces of all streams, the erasures that still matter, and the one that says where each stream begins."""

    streams: dict[int, Pieces] = attrs.field(factory=dict)
    erases: dict[int, list[Erase]] = attrs.field(factory=dict)
    trails: dict[int, Erase] = attrs.field(factory=dict)

    def add(self, stream: int, count: int, record: Record) -> Set[Segment]:
        """Enters a MESSAGES record of `count` numbers; returns the segments with nothing live left."""
        pieces = self.streams.get(stream)
        if pieces is None:
            pieces = self.streams[stream] = Pieces()
        record.segment.streams.add(stream)
        return pieces.add(record.first, record.first + count, record)

    def erase(self, erase: Erase) -> Set[Segment]:
        """Applies and remembers an erasure; returns the segments with nothing live left."""
        older = self.erases.get(erase.stream, ())
        self.erases[erase.stream] = [known for known in older if not erase.covers(known)] + [erase]
        self._move_trail(erase)
        pieces = self.streams.get(erase.stream)
        if pieces is None:
            return _NOTHING
        emptied = pieces.erase(erase.start, erase.stop, erase.as_of)
        if not pieces.starts:
            del self.streams[erase.stream]
        return emptied

    def prune(self, segments: Iterable[Segment]) -> list[Erase]:
        """Drops the erasures that no longer have records to look back on, and returns the others in order.

        Where a stream begins outlives what it killed: it is told again, as the last word on its stream.
        """
        oldest: dict[int, int] = {}
        for segment in segments:
            for stream in segment.streams:
                oldest[stream] = min(oldest.get(stream, segment.number), segment.number)
        for stream, erases in list(self.erases.items()):
            kept = [erase for erase in erases if stream in oldest and oldest[stream] <= erase.as_of[0]]
            if kept:
                self.erases[stream] = kept
            else:
                del self.erases[stream]
        for stream, trail in self.trails.items():
            self.erases[stream] = [erase for erase in self.erases.get(stream, ()) if not trail.covers(erase)] + [trail]
        return [erase for erases in self.erases.values() for erase in erases]

    def _move_trail(self, erase: Erase) -> None:
        """The newest word on where a stream begins counts; what is cut back below its trail begins where it was cut."""
        trail = self.trails.get(erase.stream)
        if erase.start == LOWEST and erase.stop < HIGHEST:
            self.trails[erase.stream] = erase
        elif erase.start == LOWEST:
            self.trails.pop(erase.stream, None)
        elif trail is not None and erase.stop == HIGHEST and erase.start < trail.stop:
            self.trails[erase.stream] = attrs.evolve(trail, stop=erase.start)

    def find(self, stream: int, number: int) -> tuple[int, Record] | None:
        """Returns the stop of the piece that shows `number` and its record."""
        pieces = self.streams.get(stream)
        return None if pieces is None else pieces.find(number)

    def extents(self, stream: int) -> list[tuple[int, int, int]]:
        """Returns (first, count, tag) of each piece of a stream, ascending."""
        pieces = self.streams.get(stream)
        if pieces is None:
            return []
        return [
            (start, stop - start, record.tag)
            for start, stop, record in zip(pieces.starts, pieces.stops, pieces.records, strict=True)
        ]

    def sizes(self, stream: int) -> list[tuple[int, int, int]]:
        """Returns (first, count, bytes) of each piece of a stream; of a part of a block its share of the bytes."""
        pieces = self.streams.get(stream)
        if pieces is None:
            return []
        return [
            (start, stop - start, record.block_bytes * (stop - start) // record.count)
            for start, stop, record in zip(pieces.starts, pieces.stops, pieces.records, strict=True)
        ]

    def records(self) -> Iterator[tuple[int, int, Record]]:
        """Yields (stream, stop of its highest live piece, record) in the order written."""
        highest = {
            record: (stream, stop)
            for stream, pieces in self.streams.items()
            for stop, record in zip(pieces.stops, pieces.records, strict=True)
        }
        for record in sorted(highest, key=lambda known: known.position):
            stream, stop = highest[record]
            yield stream, stop, record
