"""Sending stored messages again: from memory at once, from the disk when it has answered.

The disk is read in a thread of its own, so live messages never wait for it (P-406). Of one source at most so many
records are read at one time (P-826), and at most a buffer's length in one go (P-829); the rest waits its turn here,
up to a bound. What comes beyond it is dropped and counted: receivers ask again, and other stores. What the disk does
not give back, or gives back changed, is not sent: the store is told, and the rest is served.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import attrs

from stablecast.core.protocol.effects import SendStored
from stablecast.core.protocol.messages import Address, Incarnation
from stablecast.store.journal import Journal, JournalError
from stablecast.store.journal.segments import RecordPlace
from stablecast.store.message_storage import MessagePiece, Shelf, encoded, pieces_of

MAX_WAITING = 262_144
"""Messages that wait to be read, over all sources; a second's worth of the default rate."""

MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""Bytes of the runs that answer one request, or one run: half of what may wait for a slow peer, who asks again."""


@attrs.frozen
class Task:
    """Pieces that are read in one go and sent to `to`."""

    to: Address
    session: Incarnation
    pieces: tuple[MessagePiece, ...]

    @property
    def records(self) -> list[RecordPlace]:
        """What has to be read."""
        return [piece.record for piece in self.pieces if piece.record is not None]

    @property
    def messages(self) -> int:
        """How many messages it is about."""
        return sum(piece.stop - piece.number for piece in self.pieces)


@attrs.define
class Lane:
    """The tasks of one source: those that wait, and how many records are being read."""

    waiting: deque[Task] = attrs.field(factory=deque)
    reading: int = 0


class Retrieval:
    """The retransmission service of a store, behind its machine, which sees to the rate."""

    def __init__(
        self,
        shelf: Shelf,
        journal: Journal,
        limits: tuple[int, int],
        send: Callable[[Address, bytes], None],
        damaged: Callable[[int, MessagePiece, JournalError], None],
        oddities: Counter[str],
    ) -> None:
        """Serves what is in memory or on the disk.

        Args:
            shelf: The memory.
            journal: The disk.
            limits: Records of one source, and bytes, that are read at one time.
            send: Sends.
            damaged: Told the source, and the piece that cannot be read, and why.
            oddities: Counts what is dropped.
        """
        self.waiting = 0
        self._limit, self._buffer_bytes = limits
        self._shelf = shelf
        self._journal = journal
        self._send = send
        self._damaged = damaged
        self._oddities = oddities
        self._lanes: dict[int, Lane] = {}

    def reading(self, source_reg_id: int) -> int:
        """Records of this source that are being read."""
        lane = self._lanes.get(source_reg_id)
        return 0 if lane is None else lane.reading

    def serve(self, effect: SendStored) -> None:
        """Read and send; what is not here any more is left out."""
        for pieces in self._portions(_within(MAX_ANSWER_BYTES, pieces_of(effect, self._piece))):
            task = Task(effect.to, effect.session, tuple(pieces))
            if not task.records:
                self._send(task.to, encoded(task.session, task.pieces))
            elif self.waiting + task.messages > MAX_WAITING:
                self._oddities["reads-dropped"] += task.messages
            else:
                self.waiting += task.messages
                self._lanes.setdefault(effect.source_reg_id, Lane()).waiting.append(task)
        self._pump(effect.source_reg_id)

    def _piece(self, source: int, number: int) -> MessagePiece | None:
        kept = self._shelf.cached(source, number)
        if kept is not None:
            first, count, tag, block = kept
            return MessagePiece(number, first + count, first, tag, block)
        run = self._journal.find(source, number)
        if run is None:
            return None
        stop = run.first + run.count
        if run.block is None:
            return MessagePiece(number, stop, run.first, run.tag, b"", run.record)
        return MessagePiece(number, stop, run.first, run.tag, run.block)

    def _portions(self, pieces: Iterable[MessagePiece]) -> list[list[MessagePiece]]:
        """The pieces as they are read: so many records, so many bytes."""
        portions: list[list[MessagePiece]] = []
        records = size = 0
        for piece in pieces:
            length = 0 if piece.record is None else piece.record.size
            full = length and (records + 1 > self._limit or size + length > self._buffer_bytes)
            if not portions or (full and records):
                portions.append([])
                records = size = 0
            portions[-1].append(piece)
            records, size = records + bool(length), size + length
        return portions

    def _pump(self, source_reg_id: int) -> None:
        lane = self._lanes.get(source_reg_id)
        while lane is not None and lane.waiting:
            records = lane.waiting[0].records
            if lane.reading and lane.reading + len(records) > self._limit:
                return
            task = lane.waiting.popleft()
            lane.reading += len(records)
            self._journal.fetch(records, partial(self._fetched, source_reg_id, task))

    def _fetched(self, source_reg_id: int, task: Task, found: list[bytes | JournalError]) -> None:
        lane = self._lanes[source_reg_id]
        lane.reading -= len(task.records)
        self.waiting -= task.messages
        blocks = iter(found)
        read: list[MessagePiece] = []
        for piece in task.pieces:
            block = piece.block if piece.record is None else next(blocks)
            if isinstance(block, JournalError):
                self._damaged(source_reg_id, piece, block)
            else:
                read.append(attrs.evolve(piece, block=block, record=None))
        if read:
            self._send(task.to, encoded(task.session, read))
        self._pump(source_reg_id)
        if not lane.reading:
            del self._lanes[source_reg_id]


def _within(room: int, pieces: Iterable[MessagePiece]) -> Iterator[MessagePiece]:
    """As many as there is room for, at least one."""
    for piece in pieces:
        yield piece
        room -= len(piece.block) if piece.record is None else piece.record.size
        if room <= 0:
            return
