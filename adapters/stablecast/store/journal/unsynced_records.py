"""The records that were appended and are not synced: their bytes, and the highest ticket that is done."""

from collections import deque
from collections.abc import Iterable

from stablecast.core.errors import MisuseError
from stablecast.store.journal.record_format import MESSAGES_HEAD, Block, RecordKind
from stablecast.store.journal.segments import JournalRecord, JournalSegment, Position, RecordPlace


class Pending:
    """The records under way to the disk, in order.

    Attributes:
        size: Their bytes.
        added: Records added so far.
        synced: Records synced so far.
        root: The newest segment with a synced checkpoint.
        done: The highest ticket of which every record is synced.
    """

    def __init__(self, root: int) -> None:
        self.size = 0
        self.added = 0
        self.synced = 0
        self.root = root
        self.done = 0
        self._records: deque[JournalRecord] = deque()
        self._blocks: dict[Position, Block] = {}
        self._issued = 0
        self._seen = (0, 0)  # the two highest tickets of synced records

    def __len__(self) -> int:
        return len(self._records)

    def synced_ends(self, segments: Iterable[JournalSegment]) -> dict[JournalSegment, int]:
        """Return the offset in each segment up to which it is synced."""
        ends = {segment: segment.end for segment in segments}
        for record in self._records:
            ends[record.segment] = min(record.offset, ends.get(record.segment, record.offset))
        return ends

    def issue(self, ticket: int) -> None:
        """Check the ticket of a record before it is appended.

        Raises:
            MisuseError: The ticket is below 1, or below the one before.
        """
        if ticket < self._issued or ticket < 1:
            raise MisuseError(f"ticket {ticket} follows {self._issued}; tickets begin at 1 and never go down")
        self._issued = ticket

    def add(self, record: JournalRecord) -> None:
        self._records.append(record)
        if record.kind is RecordKind.MESSAGES:
            self._blocks[record.segment.number, record.offset] = record.parts[1]
        self.size += record.size
        self.added += 1

    def block(self, place: RecordPlace) -> Block | None:
        """Return the block of a record that is not synced; None if the record is on the disk."""
        return self._blocks.get(place.position)

    def came_at(self) -> int | None:
        """Return when the oldest record was appended, in ns of the epoch; None if it has no messages."""
        record = self._records[0] if self._records else None
        if record is None or record.kind is not RecordKind.MESSAGES:
            return None
        came_at: int = MESSAGES_HEAD.unpack(record.parts[0])[4]
        return came_at

    def commit(self, count: int) -> None:
        """Note that the next `count` records are synced, and drop their bodies."""
        before, last = self._seen
        for _ in range(count):
            record = self._records.popleft()
            self.size -= record.size
            if record.kind is RecordKind.MESSAGES:
                del self._blocks[record.segment.number, record.offset]
            if record.ticket > last:
                before, last = last, record.ticket
            if record.kind is RecordKind.CHECKPOINT:
                self.root = record.segment.number
        self.synced += count
        self._seen = before, last
        self.done = last
        for record in self._records:
            if record.ticket:
                # Several records may share a ticket. It is done only when the last of them is synced.
                if record.ticket == last:
                    self.done = before
                break
