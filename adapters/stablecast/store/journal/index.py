"""Which record holds which sequence number: in memory, rebuilt from the segments at open.

A stream is a sorted list of disjoint *pieces* [start, stop), each pointing to the record whose numbers it shows
(`pieces`). A newer record or an erasure shortens, splits or removes pieces; records themselves never change. An erasure
is remembered for as long as a segment that it looks back on still holds records of its stream: it has to be repeated in
newer segments, or those records would come back to life at the next open (see `format`).
"""

import struct
from collections.abc import Iterable, Iterator, Set

import attrs

from stablecast.core.errors import MisuseError
from stablecast.store.journal.number_pieces import Live, Pieces
from stablecast.store.journal.record_format import ERASE_BODY, HIGHEST, LOWEST
from stablecast.store.journal.segments import Place, Position, Segment
from stablecast.store.journal.summary import Summary

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
class Index:
    """The pieces of all streams, the erasures that still matter, and the one that says where each stream begins."""

    streams: dict[int, Pieces] = attrs.field(factory=dict)
    erases: dict[int, list[Erase]] = attrs.field(factory=dict)
    trails: dict[int, Erase] = attrs.field(factory=dict)

    def add(self, stream: int, place: Place) -> Set[Segment]:
        """Enters a MESSAGES record; returns the segments with nothing live left."""
        pieces = self.streams.get(stream)
        if pieces is None:
            pieces = self.streams[stream] = Pieces()
        place.segment.streams.add(stream)
        return pieces.add(place)

    def extend(self, segment: Segment, summary: Summary) -> None:
        """Enters all MESSAGES records of a segment, in their order where that matters."""
        for stream, runs in summary.by_stream():
            pieces = self.streams.setdefault(stream, Pieces())
            segment.streams.add(stream)
            if len(runs) > 1 or not pieces.extend(segment, runs[0]):
                for offset, size, first, tag, count in sorted(record for one in runs for record in one.records()):
                    pieces.add(Place(segment, offset, size, first, tag, count))

    def erase(self, erase: Erase) -> Set[Segment]:
        """Applies and remembers an erasure; returns the segments with nothing live left."""
        older = self.erases.get(erase.stream, ())
        self.erases[erase.stream] = [known for known in older if not erase.covers(known)] + [erase]
        self._move_trail(erase)
        pieces = self.streams.get(erase.stream)
        if pieces is None:
            return _NOTHING
        emptied = pieces.erase(erase.start, erase.stop, erase.as_of)
        if not pieces:
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

    def find(self, stream: int, number: int) -> Live | None:
        """Returns start, stop and record of the piece that shows `number`."""
        pieces = self.streams.get(stream)
        return None if pieces is None else pieces.find(number)

    def pieces(self, stream: int) -> Iterator[Live]:
        """Yields start, stop and record of each piece of a stream, ascending."""
        return iter(self.streams.get(stream, ()))

    def extents(self, stream: int) -> list[tuple[int, int, int]]:
        """Returns (first, count, tag) of each piece of a stream, ascending."""
        return [(start, stop - start, place.tag) for start, stop, place in self.pieces(stream)]

    def sizes(self, stream: int) -> Iterator[tuple[int, int, int]]:
        """Yields (first, count, bytes) of each piece of a stream; of a part of a block its share of the bytes."""
        for start, stop, place in self.pieces(stream):
            yield start, stop - start, place.block_bytes * (stop - start) // place.count
