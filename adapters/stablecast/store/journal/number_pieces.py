"""The live numbers of one stream, in 28 bytes for each piece.

A *piece* is [start, stop) and the record that shows these numbers. A stream of single messages has one piece for each,
so millions must fit in memory. Pieces are disjoint and ascending. They lie in chunks of at most `CHUNK_PIECES`, as
columns of 32 bits. Nearly all pieces come last and are appended. Another one goes into its chunk, and a full chunk is
halved for it. The pieces of a chunk share few segments and lives, so each (segment, life) is kept once as an *origin*.

Columns of 32 bits are enough. Numbers count from a base 2^31 below the first of their chunk, and a number further away
begins another chunk. A segment is far shorter than 4 GB (`record_format.MAX_BLOCK_BYTES`).
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Set
from operator import add, gt

import attrs

from stablecast.store.journal.segments import JournalSegment, Position, RecordPlace
from stablecast.store.journal.summary import Runs

CHUNK_PIECES = 1024
"""Pieces that one insertion or erasure moves at most, and unused origins that a chunk may keep."""

REACH = 1 << 31
"""Distance of a chunk's numbers from its first one at most."""

_FIELDS = 6
"""Fields beside the start: length, numbers skipped in the record, its count of numbers, offset, size and origin."""

_NOTHING: frozenset[JournalSegment] = frozenset()

Origin = tuple[JournalSegment, int]
"""A segment, and the tag of a life."""

Live = tuple[int, int, RecordPlace]
"""Start, stop, and the record that shows the numbers between."""


@attrs.define(eq=False)
class PieceChunk:
    """Neighbouring pieces: a column of their starts relative to `base`, and their other fields piece after piece."""

    base: int
    origins: list[Origin]
    starts: "array[int]" = attrs.field(factory=lambda: array("I"))
    fields: "array[int]" = attrs.field(factory=lambda: array("I"))

    @property
    def first(self) -> int:
        return self.base + self.starts[0]

    @property
    def stop(self) -> int:
        return self.base + self.starts[-1] + self.fields[-_FIELDS]

    def reaches(self, number: int) -> bool:
        """Return True if a piece that starts here fits the columns."""
        return 0 <= number - self.base < 2 * REACH

    def insert(self, at: int, start: int, stop: int, place: RecordPlace) -> None:
        fields = (
            stop - start,
            start - place.first,
            place.count,
            place.offset,
            place.size,
            self._origin(place.segment, place.tag),
        )
        if at == len(self.starts):
            self.starts.append(start - self.base)
            self.fields.extend(fields)
        else:
            self.starts.insert(at, start - self.base)
            self.fields[_FIELDS * at : _FIELDS * at] = array("I", fields)

    def extend(self, segment: JournalSegment, runs: Runs, low: int, high: int) -> None:
        """Append the records [low, high) of a summary, which are in order and fit."""
        origin = self._origin(segment, runs.tag)
        counts = runs.counts[low:high]
        fields = array("I", bytes(_FIELDS * counts.itemsize * len(counts)))
        fields[0::_FIELDS] = fields[2::_FIELDS] = counts
        fields[3::_FIELDS], fields[4::_FIELDS] = runs.offsets[low:high], runs.sizes[low:high]
        fields[5::_FIELDS] = array("I", [origin]) * len(counts)
        self.starts.extend([first - self.base for first in runs.firsts[low:high]])
        self.fields.extend(fields)

    def piece(self, at: int) -> Live:
        start = self.base + self.starts[at]
        length, skipped, count, offset, size, origin = self.fields[_FIELDS * at : _FIELDS * (at + 1)]
        segment, tag = self.origins[origin]
        return start, start + length, RecordPlace(segment, offset, size, start - skipped, tag, count)

    def pieces(self) -> Iterator[Live]:
        return map(self.piece, range(len(self.starts)))

    def above(self, number: int) -> int:
        """Return the count of pieces that lie wholly below `number`."""
        at = bisect_right(self.starts, number - self.base)
        return at - (at > 0 and self.base + self.starts[at - 1] + self.fields[_FIELDS * (at - 1)] > number)

    def below(self, number: int) -> int:
        return bisect_left(self.starts, number - self.base)

    def halve(self) -> "PieceChunk":
        """Remove the upper half of the pieces and return it as a chunk."""
        half = len(self.starts) // 2
        upper = PieceChunk(self.base, self.origins.copy(), self.starts[half:], self.fields[_FIELDS * half :])
        del self.starts[half:], self.fields[_FIELDS * half :]
        for chunk in (self, upper):
            chunk.tidy()
        return upper

    def tidy(self) -> None:
        """Free the reserve of the columns, and the origins that no piece uses any more."""
        used = sorted(set(self.fields[_FIELDS - 1 :: _FIELDS]))
        if len(used) < len(self.origins):
            renumbered = {old: new for new, old in enumerate(used)}
            self.fields[_FIELDS - 1 :: _FIELDS] = array(
                "I", map(renumbered.__getitem__, self.fields[_FIELDS - 1 :: _FIELDS])
            )
            self.origins = [self.origins[old] for old in used]
        self.starts, self.fields = self.starts[:], self.fields[:]  # A copy has no reserve.

    def drop(self) -> set[JournalSegment]:
        pieces = Counter(self.fields[_FIELDS - 1 :: _FIELDS])
        for origin, count in pieces.items():
            self.origins[origin][0].live -= count
        del self.starts[:], self.fields[:]
        return {self.origins[origin][0] for origin in pieces}

    def written_before(self, as_of: Position) -> bool:
        return all(segment.number < as_of[0] for segment, _ in self.origins)

    def erase(self, start: int, stop: int, as_of: Position | None) -> set[JournalSegment]:
        """Hide [start, stop) in records before `as_of` (None: in all); return the segments of the hidden pieces."""
        # Trimming erases whole chunks, thousands of pieces at a time. Going through them would block the event loop.
        if start <= self.first and self.stop <= stop and (as_of is None or self.written_before(as_of)):
            return self.drop()
        low, high = self.above(start), self.below(stop)
        touched: set[JournalSegment] = set()
        kept: list[Live] = []
        for piece in map(self.piece, range(low, high)):
            begin, end, place = piece
            if as_of is not None and place.position >= as_of:  # written after the erasure
                kept.append(piece)
                continue
            rest = [(a, b, place) for a, b in ((begin, min(end, start)), (max(begin, stop), end)) if a < b]
            place.segment.live += len(rest) - 1
            touched.add(place.segment)
            kept += rest
        del self.starts[low:high], self.fields[_FIELDS * low : _FIELDS * high]
        for at, piece in enumerate(kept, low):
            self.insert(at, *piece)
        return touched

    def _origin(self, segment: JournalSegment, tag: int) -> int:
        origin = (segment, tag)
        if origin not in self.origins:
            if len(self.origins) >= CHUNK_PIECES:
                self.tidy()
            self.origins.append(origin)
        return self.origins.index(origin)


@attrs.define(eq=False)
class Pieces:
    chunks: list[PieceChunk] = attrs.field(factory=list)

    def __bool__(self) -> bool:
        return bool(self.chunks)

    def __iter__(self) -> Iterator[Live]:
        """Yield start, stop and record of each piece, ascending."""
        for chunk in self.chunks:
            yield from chunk.pieces()

    def within(self, segment: JournalSegment) -> Iterator[RecordPlace]:
        """Yield the record of each piece that lies in one segment."""
        for chunk in self.chunks:
            if any(origin[0] is segment for origin in chunk.origins):
                yield from (place for _, _, place in chunk.pieces() if place.segment is segment)

    def add(self, place: RecordPlace) -> Set[JournalSegment]:
        """Show the numbers of a record, and hide older pieces with these numbers.

        Returns:
            The segments that lost their last live message.
        """
        start, stop = place.first, place.first + place.count
        place.segment.live += 1
        if not self.chunks or start >= self.chunks[-1].stop:
            chunk = self._last(start, place.segment, place.tag)
            chunk.insert(len(chunk.starts), start, stop, place)
            return _NOTHING
        emptied = self.erase(start, stop)
        self._insert(start, stop, place)
        return emptied

    def extend(self, segment: JournalSegment, runs: Runs) -> bool:
        """Show the numbers of all records of a segment; return False and do nothing if they are not in order."""
        firsts, counts = runs.firsts, runs.counts
        if (self.chunks and firsts[0] < self.chunks[-1].stop) or any(map(gt, map(add, firsts, counts), firsts[1:])):
            return False
        low = 0
        while low < len(firsts):
            chunk = self._last(firsts[low], segment, runs.tag)
            high = min(len(firsts), low + CHUNK_PIECES - len(chunk.starts))
            if not chunk.reaches(firsts[high - 1]):
                high = bisect_left(firsts, chunk.base + 2 * REACH, low, high)
            chunk.extend(segment, runs, low, high)
            low = high
        segment.live += len(firsts)
        return True

    def erase(self, start: int, stop: int, as_of: Position | None = None) -> Set[JournalSegment]:
        """Hide [start, stop) in records before `as_of` (None: in all).

        Return the segments that lost their last live message.
        """
        chunks = self.chunks
        low = max(0, bisect_right(chunks, start, key=_first) - 1)
        high = bisect_left(chunks, stop, low, key=_first)
        touched: set[JournalSegment] = set()
        for chunk in chunks[low:high]:
            touched |= chunk.erase(start, stop, as_of)
        chunks[low:high] = [chunk for chunk in chunks[low:high] if chunk.starts]
        return {segment for segment in touched if not segment.live}

    def find(self, number: int) -> Live | None:
        at = bisect_right(self.chunks, number, key=_first) - 1
        if at < 0:
            return None
        piece = self.chunks[at].piece(self.chunks[at].below(number + 1) - 1)
        return piece if number < piece[1] else None

    def following(self, number: int) -> Live | None:
        """Return the piece that shows `number`, or the next above it."""
        found = self.find(number)
        if found is not None:
            return found
        at = bisect_right(self.chunks, number, key=_first) - 1
        if at >= 0 and number < self.chunks[at].stop:
            return self.chunks[at].piece(self.chunks[at].below(number + 1))
        return self.chunks[at + 1].piece(0) if at + 1 < len(self.chunks) else None

    def _last(self, start: int, segment: JournalSegment, tag: int) -> PieceChunk:
        if self.chunks:
            last = self.chunks[-1]
            if len(last.starts) < CHUNK_PIECES and last.reaches(start):
                return last
            last.tidy()  # It will hardly grow any more.
        self.chunks.append(PieceChunk(start - REACH, [(segment, tag)]))
        return self.chunks[-1]

    def _insert(self, start: int, stop: int, place: RecordPlace) -> None:
        at = max(0, bisect_right(self.chunks, start, key=_first) - 1)
        if at < len(self.chunks) and len(self.chunks[at].starts) >= CHUNK_PIECES:
            self.chunks.insert(at + 1, self.chunks[at].halve())
            at += start >= self.chunks[at + 1].first
        if at == len(self.chunks) or not self.chunks[at].reaches(start):
            at += at < len(self.chunks) and start > self.chunks[at].first
            self.chunks.insert(at, PieceChunk(start - REACH, [(place.segment, place.tag)]))
        chunk = self.chunks[at]
        chunk.insert(chunk.below(start), start, stop, place)


def _first(chunk: PieceChunk) -> int:
    return chunk.base + chunk.starts[0]
