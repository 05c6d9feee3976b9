"""The index from sequence numbers to records: in memory, rebuilt from the segments at open.

A stream is a sorted list of disjoint *pieces* [start, stop), each with the record that shows its numbers
(`number_pieces`). A newer record or an erasure shortens, splits or removes pieces; records themselves never change.

An erasure is remembered while an older segment still holds records of its stream. Newer segments must repeat it, or
those records would come back to life at the next open (see `record_format`).
"""

import struct
from collections.abc import Iterable, Iterator, Set

import attrs

from stablecast.core.errors import MisuseError
from stablecast.store.journal.number_pieces import Live, Pieces
from stablecast.store.journal.record_format import ERASE_BODY, HIGHEST, LOWEST
from stablecast.store.journal.segments import JournalSegment, Position, RecordPlace
from stablecast.store.journal.summary import SegmentSummary

_NOTHING: frozenset[JournalSegment] = frozenset()


@attrs.frozen
class Erase:
    """An erasure: the numbers start <= n < stop of a stream are dead in every record before `as_of`."""

    stream: int
    start: int
    stop: int
    as_of: Position

    def body(self) -> bytes:
        """Return the body of the ERASE record.

        Raises:
            MisuseError: A number does not fit its field.
        """
        try:
            return ERASE_BODY.pack(self.stream, self.start, self.stop, *self.as_of)
        except struct.error as error:
            raise MisuseError(f"a number of the erasure does not fit its field: {error}") from error

    def covers(self, older: "Erase") -> bool:
        """Return True if this erasure includes `older`."""
        return self.start <= older.start and older.stop <= self.stop and older.as_of <= self.as_of


@attrs.define(eq=False)
class Index:
    """The pieces of all streams, the erasures that still matter, and the erasure that sets each stream's trail."""

    streams: dict[int, Pieces] = attrs.field(factory=dict)
    erases: dict[int, list[Erase]] = attrs.field(factory=dict)
    trails: dict[int, Erase] = attrs.field(factory=dict)

    def add(self, stream: int, place: RecordPlace) -> Set[JournalSegment]:
        """Enter a MESSAGES record; return the segments that lost their last live message."""
        pieces = self.streams.get(stream)
        if pieces is None:
            pieces = self.streams[stream] = Pieces()
        place.segment.streams.add(stream)
        return pieces.add(place)

    def extend(self, segment: JournalSegment, summary: SegmentSummary) -> None:
        """Enter all MESSAGES records of a segment."""
        for stream, runs in summary.by_stream():
            pieces = self.streams.setdefault(stream, Pieces())
            segment.streams.add(stream)
            # Records of one life in ascending order may be entered at once. Otherwise later ones must win, one by one.
            if len(runs) > 1 or not pieces.extend(segment, runs[0]):
                for offset, size, first, tag, count in sorted(record for one in runs for record in one.records()):
                    pieces.add(RecordPlace(segment, offset, size, first, tag, count))

    def erase(self, erase: Erase) -> Set[JournalSegment]:
        """Apply and remember an erasure; return the segments that lost their last live message."""
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

    def prune(self, segments: Iterable[JournalSegment]) -> list[Erase]:
        """Drop the erasures without records to look back on; return the others in order.

        A trail outlives the records that it killed. It is repeated as the last erasure of its stream.
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
        """Set the trail of a stream: the newest trim counts. A stream that is cut below its trail begins at the cut."""
        trail = self.trails.get(erase.stream)
        if erase.start == LOWEST and erase.stop < HIGHEST:
            self.trails[erase.stream] = erase
        elif erase.start == LOWEST:  # The whole stream is forgotten, and its RegID may serve another source.
            self.trails.pop(erase.stream, None)
        elif trail is not None and erase.stop == HIGHEST and erase.start < trail.stop:
            self.trails[erase.stream] = attrs.evolve(trail, stop=erase.start)

    def find(self, stream: int, number: int) -> Live | None:
        """Return start, stop and record of the piece that shows `number`."""
        pieces = self.streams.get(stream)
        return None if pieces is None else pieces.find(number)

    def pieces(self, stream: int) -> Iterator[Live]:
        """Yield start, stop and record of each piece of a stream, ascending."""
        return iter(self.streams.get(stream, ()))

    def places(self, stream: int, segment: JournalSegment) -> Iterator[RecordPlace]:
        """Yield the record of each piece of a stream that lies in one segment."""
        pieces = self.streams.get(stream)
        return iter(()) if pieces is None else pieces.within(segment)

    def extents(self, stream: int) -> list[tuple[int, int, int]]:
        """Return (first, count, tag) of each piece of a stream, ascending."""
        return [(start, stop - start, place.tag) for start, stop, place in self.pieces(stream)]

    def sizes(self, stream: int) -> Iterator[tuple[int, int, int]]:
        """Yield (first, count, bytes) of each piece of a stream; a part of a block has its share of the bytes."""
        for start, stop, place in self.pieces(stream):
            yield start, stop - start, place.block_bytes * (stop - start) // place.count
