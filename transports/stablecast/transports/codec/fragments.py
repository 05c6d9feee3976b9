"""Fragments: a message that does not fit a datagram, in pieces that do.

Each piece is a message of its own with the next number of the topic; the number of the first names the whole, and the
number of the last is the number that the application knows (P-129, P-131). Pieces arrive in any order and from
anywhere: the session, a late join, a store.

A piece that cannot become part of a message any more is *passed*: another piece was lost, or its numbers went to other
messages, for the source died before it had sent all; it makes no sense; or too much was incomplete. The application
hears of each that it is lost. If it chose itself to begin amid a message, it does not hear of the pieces of that one.
"""

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.transports.codec.chained_messages import FRAGMENT_LENGTH, ChainedPiece, pieces
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.headers import ApplicationChain, Fragment

FRAGMENT_BYTES = lbmc.DATA_HEADER.size + FRAGMENT_LENGTH
"""Bytes of a piece beside its payload."""

PROPERTIES_BYTES = 12
"""Bytes of the header that says how many of a message are properties."""

MAX_LARGE = 64 * 1024 * 1024
"""Bytes of a message that is put together."""

MAX_PIECES = 2500
"""Pieces of a message that a source sends: half of what a receiver has under way before it asks for no more."""

MAX_PARTIAL_BYTES = 64 * 1024 * 1024
"""Bytes of incomplete messages of a topic; the oldest are given up beyond that."""

PIECE_BYTES = 256
"""What a piece costs besides its payload."""

MAX_DEAD = 1024
"""Ranges of numbers that no message comes of; of one more the oldest is forgotten."""


def count(size: int, properties: int, room: int) -> int:
    """Of how many messages of up to `room` bytes one of `size` bytes is, `properties` of them properties.

    >>> count(516, 0, 528), count(1000, 0, 528), count(516, 4, 528)
    (1, 2, 2)
    """
    lead = PROPERTIES_BYTES if properties else 0
    if lbmc.DATA_HEADER.size + lead + size <= room:
        return 1
    return -(-size // (room - FRAGMENT_BYTES - lead))


def cut(topic: int, number: int, payload: bytes, room: int, properties: int = 0) -> list[bytes]:
    """The encoded pieces of a message; it is one message where that fits `room` bytes. `number` is extended.

    The last `properties` bytes of the payload are properties.

    >>> [len(piece) for piece in cut(1, 0, bytes(1000), 528)]
    [528, 528]
    """
    element = bytes((ApplicationChain.NONE, 8, 0, 0)) + properties.to_bytes(4)
    told = (ApplicationChain(first=ApplicationChain.PROPERTIES, chain=element),) if properties else ()
    if count(len(payload), properties, room) == 1:
        return [lbmc.encode(lbmc.Message(lbmc.MessageKind.DATA, topic, serial.wire(number), told, payload))]
    step = room - FRAGMENT_BYTES - (PROPERTIES_BYTES if properties else 0)
    first = serial.wire(number)
    return [
        lbmc.encode(
            lbmc.Message(
                lbmc.MessageKind.DATA,
                topic,
                serial.wire(number + place),
                (Fragment(first_sqn=first, offset=offset, len=len(payload)), *told),
                payload[offset : offset + step],
            )
        )
        for place, offset in enumerate(range(0, len(payload), step))
    ]


@attrs.frozen
class WholeMessage:
    """A message that is complete.

    Attributes:
        first: Its first (extended) number,
        last: and its last.
        payload: What the application sent, without the properties.
        properties: The block of properties; empty: it has none.
        recovered: Whether some of it was sent again.
    """

    first: int
    last: int
    payload: bytes
    properties: bytes = b""
    recovered: bool = False

    @classmethod
    def of(cls, first: int, last: int, payload: bytes, properties: int, recovered: bool) -> "WholeMessage":
        """With what is properties cut off; a message that cannot have so many has none."""
        at = len(payload) - properties if properties <= len(payload) else len(payload)
        return cls(first, last, payload[:at], payload[at:], recovered)


@attrs.define
class PartialMessage:
    """A message of which pieces are missing: its bytes, and how many pieces it has.

    Attributes:
        pieces: What came, by offset: number and payload.
        held: Bytes of that.
    """

    size: int
    count: int
    pieces: dict[int, tuple[int, bytes]] = attrs.field(factory=dict)
    held: int = 0
    properties: int = 0
    recovered: bool = False

    @property
    def cost(self) -> int:
        """Bytes that it takes."""
        return self.held + PIECE_BYTES * len(self.pieces)

    def whole(self, first: int) -> WholeMessage | None:
        """All the pieces, joined; None if they do not join, in the order of their numbers."""
        at = 0
        parts = []
        for place, (offset, (number, payload)) in enumerate(sorted(self.pieces.items())):
            if offset != at or number != first + place:
                return None
            parts.append(payload)
            at += len(payload)
        return WholeMessage.of(first, first + len(parts) - 1, b"".join(parts), self.properties, self.recovered)


@attrs.define
class FragmentReassembly:
    """The incomplete messages of one topic, by the extended number of the first piece.

    Attributes:
        floor: The number where the application began.
        owed: Whether it did not choose so, but stores had let go of what is below. Then it hears of a message that they
            had let go of in part.
        held: Bytes that all of them take.
        dead: First numbers of messages that will not be complete.
        missing: Numbers that will not come.
        passed: Numbers that came and are of no use; whoever takes them clears them.
        lost: Those of them that the application is to hear of.
    """

    floor: int = 0
    owed: bool = False
    partials: dict[int, PartialMessage] = attrs.field(factory=dict)
    held: int = 0
    dead: RangeSet = attrs.field(factory=RangeSet)
    missing: RangeSet = attrs.field(factory=RangeSet)
    passed: RangeSet = attrs.field(factory=RangeSet)
    lost: RangeSet = attrs.field(factory=RangeSet)

    def take(
        self, block: bytes | memoryview, skip: int, count: int, first: int, recovered: bool = False
    ) -> list[WholeMessage]:
        """Takes `count` messages of a chained run from the `skip`th on, with extended number `first`.

        Returns the messages that they complete.
        """
        found = (self.add(number, piece, recovered) for number, piece in enumerate(pieces(block, skip, count), first))
        return [whole for whole in found if whole is not None]

    def add(self, number: int, piece: ChainedPiece, recovered: bool = False) -> WholeMessage | None:
        """Takes a message of a chained run with its extended number; returns the message that it completes."""
        if piece.fragment is None:
            self.settle(number, number + 1)
            return WholeMessage.of(number, number, piece.payload, piece.properties, recovered)
        fragment = piece.fragment
        first = serial.extend(fragment.first_sqn, number)
        count = _count(number - first, fragment, piece.payload)
        if first < self.floor <= number and not self.owed:
            self.passed.add(number, number + 1)
            return None
        partial = self.partials.get(first)
        if first < self.floor:
            count = 0  # Its first pieces are gone.
        if partial is None and count and first not in self.dead and not self.missing.within(first, first + count):
            self.settle(first, first + count)
            partial = self.partials[first] = PartialMessage(fragment.len, count, properties=piece.properties)
        if partial is None or not count or partial.size != fragment.len or fragment.offset in partial.pieces:
            self._pass(number, number + 1)
            return None
        return self._take(first, partial, number, piece, fragment.offset, recovered)

    def lose(self, first: int, stop: int) -> None:
        """Numbers from `first` to below `stop` will not come: neither will the messages that they are part of."""
        _note(self.missing, first, stop)
        self.settle(first, stop)

    def settle(self, first: int, stop: int) -> None:
        """These numbers are those of other messages: what was begun with them is over."""
        for start, partial in list(self.partials.items()):
            if start < stop and first < start + partial.count:
                self._give_up(start)

    def incomplete(self, number: int) -> bool:
        """Whether the number is that of a message of which pieces are missing."""
        return any(first <= number < first + partial.count for first, partial in self.partials.items())

    def take_passed(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """What was passed since the last call as [first, stop): all of it, and what the application is to hear of."""
        passed, lost = self.passed, self.lost
        self.passed, self.lost = RangeSet(), RangeSet()
        return (list(passed), list(lost))

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests)."""
        assert self.held == sum(partial.cost for partial in self.partials.values())
        assert self.held <= MAX_PARTIAL_BYTES or len(self.partials) == 1
        assert all(partial.held < partial.size <= MAX_LARGE for partial in self.partials.values())
        assert len(self.dead) <= MAX_DEAD >= len(self.missing)
        for first, partial in self.partials.items():
            assert partial.pieces
            assert first not in self.dead
            assert not self.missing.within(first, first + partial.count)

    def _take(
        self, first: int, partial: PartialMessage, number: int, piece: ChainedPiece, offset: int, recovered: bool
    ) -> WholeMessage | None:
        self.held -= partial.cost
        partial.pieces[offset] = (number, piece.payload)
        partial.held += len(piece.payload)
        partial.recovered |= recovered
        self.held += partial.cost
        if partial.held < partial.size:
            while self.held > MAX_PARTIAL_BYTES and len(self.partials) > 1:
                self._give_up(next(iter(self.partials)))
            return None
        whole = partial.whole(first)
        if whole is None:
            self._give_up(first)
        else:
            self._forget(first)
        return whole

    def _give_up(self, first: int) -> None:
        partial = self._forget(first)
        _note(self.dead, first, first + 1)
        for number, _ in partial.pieces.values():
            self._pass(number, number + 1)

    def _pass(self, first: int, stop: int) -> None:
        self.passed.add(first, stop)
        self.lost.add(first, stop)

    def _forget(self, first: int) -> PartialMessage:
        partial = self.partials.pop(first)
        self.held -= partial.cost
        return partial


def _note(numbers: RangeSet, first: int, stop: int) -> None:
    numbers.add(first, stop)
    if len(numbers) > MAX_DEAD:
        numbers.forget(numbers.ranges[1][0])


def _count(place: int, fragment: Fragment, payload: bytes) -> int:
    """Of how many pieces the message is, judged by the `place`th one; 0 if that cannot be one."""
    step = fragment.offset // place if place > 0 else len(payload)
    fits = fragment.offset + len(payload) <= fragment.len <= MAX_LARGE
    if place < 0 or not step or not payload or not fits or (place == 0 and fragment.offset):
        return 0
    return -(-fragment.len // step)
