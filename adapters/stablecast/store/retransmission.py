"""Retransmission of stored messages: from memory at once, from the disk when the read has ended.

A thread of its own reads the disk, so live messages never wait for it (P-406). The records of one source that are read
at one time are limited (P-826), and so are the bytes of one read (P-829). Other requests wait, up to a bound. Beyond
the bound they are dropped and counted, because receivers ask again, and ask other stores. Records that the disk cannot
read are reported to the store and left out.

All receivers of a context share one connection, and what one of them may ask for nearly fills its queue. So an answer
waits until the peer has read most of those before.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import attrs

from stablecast.core.protocol.effects import SendStored
from stablecast.core.protocol.messages import Address, Incarnation
from stablecast.store.journal import Journal, JournalError
from stablecast.store.journal.segments import RecordPlace
from stablecast.store.message_storage import MessagePiece, MessageStorage, encoded, pieces_of

MAX_WAITING = 262_144
"""Messages of all sources that may wait to be read: one second of the default rate."""

MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""Bytes of the answer to one request, or one run: half of the queue for a slow peer. The peer asks for more."""


@attrs.frozen
class Task:
    """Pieces that are read together and sent to `to`."""

    to: Address
    session: Incarnation
    pieces: tuple[MessagePiece, ...]

    @property
    def records(self) -> list[RecordPlace]:
        return [piece.record for piece in self.pieces if piece.record is not None]

    @property
    def size(self) -> int:
        return sum(record.size for record in self.records)

    @property
    def messages(self) -> int:
        return sum(piece.stop - piece.number for piece in self.pieces)


@attrs.define
class Lane:
    """The tasks of one source that wait, and the number of its records that are being read."""

    waiting: deque[Task] = attrs.field(factory=deque)
    reading: int = 0


@attrs.define(eq=False)
class Retrieval:
    """The retransmission service of a store. The machine limits the rate before.

    Attributes:
        storage: The messages in memory.
        journal: The disk.
        limits: Records of one source, and bytes, that are read at one time.
        send: Sends bytes to an address.
        room: Returns whether an address may get an answer beside so many bytes that are being read for it.
        damaged: Called with the source, the piece that cannot be read, and the reason.
        oddities: Counts the dropped messages.
    """

    _storage: MessageStorage
    _journal: Journal
    _limits: tuple[int, int]
    _send: Callable[[Address, bytes], None]
    _damaged: Callable[[int, MessagePiece, JournalError], None]
    _oddities: Counter[str]
    _room: Callable[[Address, int], bool] = lambda _to, _more: True
    waiting: int = 0
    _held: dict[Address, dict[SendStored, None]] = attrs.field(factory=dict)
    _due: Counter[Address] = attrs.field(factory=Counter)
    _lanes: dict[int, Lane] = attrs.field(factory=dict)

    def reading(self, source_reg_id: int) -> int:
        """Return the number of records of this source that are being read."""
        lane = self._lanes.get(source_reg_id)
        return 0 if lane is None else lane.reading

    def serve(self, effect: SendStored) -> None:
        """Read and send the requested messages when the peer has room; messages that are not stored are left out."""
        count = effect.last + 1 - effect.first
        if self._room(effect.to, self._due[effect.to]):
            self._serve(effect)
        elif effect in (held := self._held.setdefault(effect.to, {})):
            pass  # The peer asked again.
        elif self.waiting + count > MAX_WAITING:
            self._oddities["reads-dropped"] += count
        else:
            held[effect] = None
            self.waiting += count

    def resume(self, to: Address) -> None:
        """Serve what waits for room at a peer."""
        held = self._held.get(to, {})
        while held and self._room(to, self._due[to]):
            effect = next(iter(held))
            del held[effect]
            self.waiting -= effect.last + 1 - effect.first
            self._serve(effect)
        if not held:
            self._held.pop(to, None)

    def forget(self, to: Address) -> None:
        """Drop what waits for room at a peer whose connection is broken: it asks again."""
        self.waiting -= sum(effect.last + 1 - effect.first for effect in self._held.pop(to, {}))

    def _serve(self, effect: SendStored) -> None:
        for pieces in self._portions(_within(MAX_ANSWER_BYTES, pieces_of(effect, self._piece))):
            task = Task(effect.to, effect.session, tuple(pieces))
            if not task.records:
                self._send(task.to, encoded(task.session, task.pieces))
            elif self.waiting + task.messages > MAX_WAITING:
                self._oddities["reads-dropped"] += task.messages
            else:
                self.waiting += task.messages
                self._due[effect.to] += task.size
                self._lanes.setdefault(effect.source_reg_id, Lane()).waiting.append(task)
        self._pump(effect.source_reg_id)

    def _piece(self, source: int, number: int) -> MessagePiece | None:
        kept = self._storage.cached(source, number)
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
        """Return the pieces of each read, within the limits on records and bytes."""
        portions: list[list[MessagePiece]] = []
        records = size = 0
        for piece in pieces:
            length = 0 if piece.record is None else piece.record.size
            full = length and (records + 1 > self._limits[0] or size + length > self._limits[1])
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
            if lane.reading and lane.reading + len(records) > self._limits[0]:
                return
            task = lane.waiting.popleft()
            lane.reading += len(records)
            self._journal.fetch(records, partial(self._fetched, source_reg_id, task))

    def _fetched(self, source_reg_id: int, task: Task, found: list[bytes | JournalError]) -> None:
        lane = self._lanes[source_reg_id]
        lane.reading -= len(task.records)
        self.waiting -= task.messages
        self._due[task.to] -= task.size
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
        if not self._due[task.to]:
            del self._due[task.to]
        self.resume(task.to)


def _within(room: int, pieces: Iterable[MessagePiece]) -> Iterator[MessagePiece]:
    """Yield the pieces that fit into `room` bytes, at least one."""
    for piece in pieces:
        yield piece
        room -= len(piece.block) if piece.record is None else piece.record.size
        if room <= 0:
            return
