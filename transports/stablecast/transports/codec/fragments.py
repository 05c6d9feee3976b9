"""Fragments: a message that exceeds a datagram is sent in pieces that fit.

Each piece is a message with the next number of the topic. The number of the first piece identifies the whole message,
and the application knows the message by the number of the last piece (P-129, P-131). Pieces arrive in any order from
the session, a late join, or a store.

A piece that can no longer complete a message is *passed*. This happens if another piece is lost, or if the source died
before it had sent all pieces and the numbers were used again. It also happens to malformed pieces, and to the oldest
incomplete messages when there are too many. Passed pieces are reported to the application as lost. An exception is a
message in whose middle the application itself chose to begin.
"""

from functools import lru_cache
from typing import NamedTuple

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.transports.codec.chained_messages import FRAGMENT_LENGTH, KNOWN_CHAINS, ChainedPiece, pieces
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.headers import ApplicationChain, Fragment

FRAGMENT_BYTES = lbmc.DATA_HEADER.size + FRAGMENT_LENGTH
"""Bytes of a piece besides its payload."""

CHAIN_BYTES = 4
"""Bytes of a header with elements, before them."""

ELEMENT_BYTES = 8
"""Bytes of an element: the length of the properties, or the hot-failover number."""

MAX_LARGE = 64 * 1024 * 1024
"""Bytes of the largest message that is reassembled."""

MAX_PIECES = 2500
"""Pieces of a message that a source sends: half of the messages that a receiver requests at the same time."""

MAX_PARTIAL_BYTES = 64 * 1024 * 1024
"""Bytes of a topic's incomplete messages; beyond that the oldest message is given up."""

PIECE_BYTES = 256
"""Bytes of memory that a piece takes besides its payload."""

MAX_DEAD = 1024
"""Ranges of numbers that yield no message; beyond that the oldest range is forgotten."""


def count(size: int, properties: int, room: int, hot_number: int | None = None) -> int:
    """Return the number of messages of at most `room` bytes that carry `size` bytes, `properties` of them properties.

    >>> count(516, 0, 528), count(1000, 0, 528), count(516, 4, 528), count(500, 4, 528, 7)
    (1, 2, 2, 2)
    """
    lead = _lead(properties, hot_number)
    if lbmc.DATA_HEADER.size + lead + size <= room:
        return 1
    return -(-size // (room - FRAGMENT_BYTES - lead))


def _lead(properties: int, hot_number: int | None) -> int:
    """Return the bytes of the header with elements, 0 if a message needs none."""
    if hot_number is None:
        return CHAIN_BYTES + ELEMENT_BYTES if properties else 0
    return CHAIN_BYTES + (ELEMENT_BYTES + ELEMENT_BYTES if properties else ELEMENT_BYTES)


def _chain(properties: int, hot_number: int | None) -> tuple[ApplicationChain, ...]:
    """Return the header with the hot-failover number and the length of the properties, if there are any."""
    numbers: tuple[tuple[int, int], ...] = ()
    if hot_number is not None:
        numbers += ((ApplicationChain.HOT_FAILOVER, hot_number),)
    if properties:
        numbers += ((ApplicationChain.PROPERTIES, properties),)
    return (ApplicationChain.of(numbers),) if numbers else ()


@lru_cache(KNOWN_CHAINS)
def _encoded_chain(properties: int, hot_number: int | None) -> tuple[int, bytes]:
    """Return the code and the bytes of that header; messages with properties of one length have the same one."""
    return lbmc.encode_headers(_chain(properties, hot_number))


def encode_pieces(
    topic: int, number: int, payload: bytes, room: int, properties: int = 0, hot_number: int | None = None
) -> list[bytes]:
    """Return the encoded pieces of a message; a single message if it fits `room` bytes.

    `number` is the extended number of the first piece. The last `properties` bytes of the payload are properties. All
    pieces have the `hot_number`, which has 32 bits.

    >>> [len(piece) for piece in encode_pieces(1, 0, bytes(1000), 528)]
    [528, 528]
    """
    if count(len(payload), properties, room, hot_number) == 1:
        code, lead = _encoded_chain(properties, hot_number)
        size = lbmc.DATA_HEADER.size + len(lead) + len(payload)
        return [lbmc.DATA_HEADER.pack(lbmc.MessageKind.DATA, code, size, topic, serial.wire(number)) + lead + payload]
    told = _chain(properties, hot_number)
    step = room - FRAGMENT_BYTES - _lead(properties, hot_number)
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


class WholeMessage(NamedTuple):
    """A complete message.

    Attributes:
        first: Its first (extended) number.
        last: Its last (extended) number.
        payload: The application's data, without the properties.
        properties: The block of properties; may be empty.
        recovered: True if any piece was retransmitted.
        hot_number: The hot-failover number of 32 bits, None if it has none.
    """

    first: int
    last: int
    payload: bytes
    properties: bytes = b""
    recovered: bool = False
    hot_number: int | None = None

    @classmethod
    def of(cls, numbers: tuple[int, int], payload: bytes, piece: ChainedPiece, recovered: bool) -> "WholeMessage":
        """Return the message with these numbers, and with what a piece of it tells.

        Its properties are split off; it has none if their length exceeds the payload.
        """
        at = len(payload) - piece.properties if piece.properties <= len(payload) else len(payload)
        return cls(*numbers, payload[:at], payload[at:], recovered, piece.hot_number)


@attrs.define
class PartialMessage:
    """An incomplete message.

    Attributes:
        size: Bytes of the whole message.
        count: Pieces of the whole message.
        pieces: The received pieces by offset: number and payload.
        held: Bytes of the received pieces.
    """

    size: int
    count: int
    pieces: dict[int, tuple[int, bytes]] = attrs.field(factory=dict)
    held: int = 0
    properties: int = 0
    recovered: bool = False
    hot_number: int | None = None

    @property
    def cost(self) -> int:
        """Bytes of memory that it takes."""
        return self.held + PIECE_BYTES * len(self.pieces)

    def whole(self, first: int) -> WholeMessage | None:
        """Return the message of all pieces; None if they are not contiguous in the order of their numbers."""
        at = 0
        parts = []
        for place, (offset, (number, payload)) in enumerate(sorted(self.pieces.items())):
            if offset != at or number != first + place:
                return None
            parts.append(payload)
            at += len(payload)
        told = ChainedPiece(b"", None, self.properties, self.hot_number)
        return WholeMessage.of((first, first + len(parts) - 1), b"".join(parts), told, self.recovered)


@attrs.define
class FragmentReassembly:
    """The incomplete messages of one topic, by the extended number of the first piece.

    Attributes:
        floor: The number at which the application began.
        owed: True if stores had discarded the numbers below `floor`. Then a message that they discarded in part is
            reported as lost. Otherwise the application chose the floor itself.
        held: Bytes of memory that all of them take.
        dead: First numbers of messages that will not become complete.
        missing: Numbers that will not arrive.
        passed: Numbers that arrived and are of no use, until `take_passed`.
        lost: The passed numbers to report to the application.
    """

    floor: int = 0
    owed: bool = False
    partials: dict[int, PartialMessage] = attrs.field(factory=dict)
    held: int = 0
    dead: RangeSet = attrs.field(factory=RangeSet)
    missing: RangeSet = attrs.field(factory=RangeSet)
    passed: RangeSet = attrs.field(factory=RangeSet)
    lost: RangeSet = attrs.field(factory=RangeSet)

    def add_run(
        self,
        block: bytes | memoryview,
        skip: int,
        count: int,
        first: int,
        recovered: bool = False,
        until: int = serial.FOREVER,
    ) -> list[WholeMessage]:
        """Add `count` messages of a chained run, without the first `skip`; their first extended number is `first`.

        From number `until` on, a later life of the source has other messages.

        Returns:
            The messages that they complete.
        """
        found = (
            self.add(number, piece, recovered, until) for number, piece in enumerate(pieces(block, skip, count), first)
        )
        return [whole for whole in found if whole is not None]

    def add(
        self, number: int, piece: ChainedPiece, recovered: bool = False, until: int = serial.FOREVER
    ) -> WholeMessage | None:
        """Add a message of a chained run with its extended number, and return the message that it completes."""
        if piece.fragment is None:
            self.settle(number, number + 1)
            return WholeMessage.of((number, number), piece.payload, piece, recovered)
        fragment = piece.fragment
        first = serial.extend(fragment.first_sqn, number)
        count = _count(number - first, fragment, piece.payload)
        if first < self.floor <= number and not self.owed:
            self.passed.add(number, number + 1)
            return None
        partial = self.partials.get(first)
        if first < self.floor or first + count > until:
            # Stores have discarded its first pieces, or its source died before it had sent the last ones. It cannot
            # become complete, and must not end the message that has its numbers now and may be here already.
            count = 0
        # A message with a lost piece cannot become complete, so it gets no memory.
        if partial is None and count and first not in self.dead and not self.missing.within(first, first + count):
            self.settle(first, first + count)
            partial = PartialMessage(fragment.len, count, properties=piece.properties, hot_number=piece.hot_number)
            self.partials[first] = partial
        if partial is None or not count or partial.size != fragment.len or fragment.offset in partial.pieces:
            self._pass(number, number + 1)
            return None
        return self._take(first, partial, number, piece, fragment.offset, recovered)

    def lose(self, first: int, stop: int) -> None:
        """Note that the numbers from `first` to below `stop` will not arrive, and give up the messages with them."""
        _add_bounded(self.missing, first, stop)
        self.settle(first, stop)

    def settle(self, first: int, stop: int) -> None:
        """Give up incomplete messages that overlap these numbers, because other messages have the numbers."""
        for start, partial in list(self.partials.items()):
            if start < stop and first < start + partial.count:
                self._give_up(start)

    def incomplete(self, number: int) -> bool:
        return any(first <= number < first + partial.count for first, partial in self.partials.items())

    def take_passed(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the ranges [first, stop) that were passed since the last call, and those of them to report as lost."""
        passed, lost = self.passed, self.lost
        self.passed, self.lost = RangeSet(), RangeSet()
        return (list(passed), list(lost))

    def check_invariants(self) -> None:
        """Assert what must hold between inputs (used by the simulator and tests)."""
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
            # A source that never completes its messages must not fill the memory.
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
        _add_bounded(self.dead, first, first + 1)
        for number, _ in partial.pieces.values():
            self._pass(number, number + 1)

    def _pass(self, first: int, stop: int) -> None:
        self.passed.add(first, stop)
        self.lost.add(first, stop)

    def _forget(self, first: int) -> PartialMessage:
        partial = self.partials.pop(first)
        self.held -= partial.cost
        return partial


def _add_bounded(numbers: RangeSet, first: int, stop: int) -> None:
    numbers.add(first, stop)
    if len(numbers) > MAX_DEAD:
        numbers.forget(numbers.ranges[1][0])


def _count(place: int, fragment: Fragment, payload: bytes) -> int:
    """Return the number of pieces of the message, according to its piece at `place`; 0 if the piece is malformed."""
    step = fragment.offset // place if place > 0 else len(payload)
    fits = fragment.offset + len(payload) <= fragment.len <= MAX_LARGE
    if place < 0 or not step or not payload or not fits or (place == 0 and fragment.offset):
        return 0
    return -(-fragment.len // step)
