"""The search for messages by the time at which they came.

Each MESSAGES record holds its time (`record_format`), and the index knows the record of each number. So the records
themselves are the index of times: a search divides the numbers of a stream by eight, and reads seven times 56 bytes of
the disk in each step. Halves would need the fewest reads, but a step waits for a thread, which costs more than a read.
It costs no byte of memory or disk for a message, nothing when messages are written, and nothing at an open. Journals of
older releases need no conversion: records before version 3 have no time and count as older than any.

The fetcher's thread reads, so that a slow disk delays no live message. Other records may be written or go meanwhile.
The times of a stream are taken to ascend with its numbers. A message that was recovered late came after its neighbours.
A search that meets it may end below the wanted time, never above it.
"""

from collections.abc import Awaitable, Callable

import attrs

from stablecast.store.journal.number_pieces import Live
from stablecast.store.journal.segments import RecordPlace

PROBES = 7
"""Records that one step of a search reads. They divide the numbers by eight."""

ReadTimes = Callable[[list[RecordPlace]], Awaitable[list[int | None]]]
"""Reads when records came; None for a record without a time."""


@attrs.frozen
class TimeSearch:
    """Searches the times of one stream.

    Attributes:
        following: Returns the piece that shows a number, or the next above it.
        read: Reads the times of records.
    """

    following: Callable[[int], Live | None]
    read: ReadTimes

    async def first_since(self, low: int, stop: int, at: int) -> int:
        """Return the first number in [low, stop) that came at `at` (ns) or later; `stop` if none did."""
        answer = high = stop
        while low < high:
            probes: list[tuple[int, Live]] = []
            for part in range(PROBES):
                asked = low + (high - low) * (2 * part + 1) // (2 * PROBES)
                piece = self.following(asked)
                if piece is None or piece[0] >= high:  # A hole reaches from here to the end.
                    high = asked
                    break
                if not probes or probes[-1][1] != piece:
                    probes.append((asked, piece))
            came = await self.read([place for _, (_, _, place) in probes])
            for (asked, (begin, end, _)), time in zip(probes, came, strict=True):
                if time is not None and time >= at:
                    answer, high = max(begin, low), min(begin, asked)
                    break
                low = max(low, end)
        return answer

    async def times(self, first: int, stop: int, most: int) -> tuple[list[tuple[int, int]], int]:
        """Return (first number, time) of the runs in [first, stop), and the number up to which they are complete."""
        pieces: list[Live] = []
        at = first
        while at < stop and len(pieces) < most:
            piece = self.following(at)
            if piece is None or piece[0] >= stop:
                at = stop
                break
            pieces.append(piece)
            at = piece[1]
        came = await self.read([place for _, _, place in pieces])
        found = [
            (max(first, begin), time) for (begin, _, _), time in zip(pieces, came, strict=True) if time is not None
        ]
        return found, min(at, stop)

    async def ends(self, low: int, stop: int) -> tuple[int | None, int | None]:
        """Return when the first and the last message in [low, stop) came; None: there is none, or it has no time."""
        first, last = self.following(low), self.following(stop - 1)
        if first is None or last is None or low >= stop:
            return None, None
        oldest, newest = await self.read([first[2], last[2]])
        return oldest, newest
