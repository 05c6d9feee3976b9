"""Fragments: a message that does not fit a datagram, in pieces that do.

Each piece is a message of its own with the next number of the topic; the number of the first names the whole, and the
number of the last is the number that the application knows (P-129, P-131). Pieces arrive in any order and from
anywhere: the session, a late join, a store.
"""

import attrs

from stablecast.core import serial
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.chains import LEAD
from stablecast.transports.wire.headers import Fragment

FRAGMENT_BYTES = lbmc.DATA_HEADER.size + LEAD + 14
"""Bytes of a piece beside its payload."""

MAX_LARGE = 64 * 1024 * 1024
"""Bytes of a message that is put together."""

MAX_PARTIAL_BYTES = 128 * 1024 * 1024
"""Bytes of incomplete messages of a topic; the oldest are let go beyond that."""


def cut(topic: int, number: int, payload: bytes, room: int) -> list[bytes]:
    """The encoded pieces of a message; it is one plain message where that fits `room` bytes. `number` is extended.

    >>> [len(piece) for piece in cut(1, 0, bytes(1000), 528)]
    [528, 528]
    """
    if lbmc.DATA_HEADER.size + len(payload) <= room:
        whole = lbmc.Message(lbmc.MessageKind.DATA, topic, serial.wire(number), (), payload)
        return [lbmc.encode(whole)]
    step = room - FRAGMENT_BYTES
    first = serial.wire(number)
    return [
        lbmc.encode(
            lbmc.Message(
                lbmc.MessageKind.DATA,
                topic,
                serial.wire(number + place),
                (Fragment(first_sqn=first, offset=offset, len=len(payload)),),
                payload[offset : offset + step],
            )
        )
        for place, offset in enumerate(range(0, len(payload), step))
    ]


@attrs.frozen
class Whole:
    """A message that is complete: its (extended) numbers from first to last, and its payload."""

    first: int
    last: int
    payload: bytes


@attrs.define
class Partial:
    """A message of which pieces are missing: its bytes, and how many pieces it has.

    Attributes:
        pieces: What came, by offset: number and payload.
        held: Bytes of that.
    """

    size: int
    count: int
    pieces: dict[int, tuple[int, bytes]] = attrs.field(factory=dict)
    held: int = 0

    def whole(self) -> bytes:
        """All the pieces, joined; empty if they do not join without gap and overlap."""
        offsets = sorted(self.pieces)
        payload = b"".join(self.pieces[offset][1] for offset in offsets)
        at = 0
        for offset in offsets:
            if offset != at:
                return b""
            at += len(self.pieces[offset][1])
        return payload


@attrs.define
class Reassembly:
    """The incomplete messages of one topic, by the extended number of the first piece.

    Attributes:
        held: Bytes of all of them.
        given_up: Messages that were let go incomplete.
    """

    partials: dict[int, Partial] = attrs.field(factory=dict)
    held: int = 0
    given_up: int = 0

    def add(self, number: int, fragment: Fragment, payload: bytes) -> Whole | None:
        """Takes a piece with its extended number; returns the message that it completes. Nonsense is passed over."""
        first = serial.extend(fragment.first_sqn, number)
        count = _count(number - first, fragment, payload)
        partial = self.partials.get(first)
        if not count or (partial is not None and partial.size != fragment.len):
            return None
        if partial is None:
            partial = self.partials[first] = Partial(fragment.len, count)
        if fragment.offset not in partial.pieces:
            partial.pieces[fragment.offset] = (number, payload)
            partial.held += len(payload)
            self.held += len(payload)
        if partial.held < partial.size:
            self._bound()
            return None
        self._forget(first)
        whole = partial.whole()
        if not whole:
            self.given_up += 1
            return None
        return Whole(first, max(number for number, _ in partial.pieces.values()), whole)

    def lose(self, first: int, stop: int) -> None:
        """Numbers from `first` to below `stop` will not come: neither will the messages that they are part of."""
        for start, partial in list(self.partials.items()):
            if start < stop and first < start + partial.count:
                self._forget(start)
                self.given_up += 1

    def _bound(self) -> None:
        while self.held > MAX_PARTIAL_BYTES and len(self.partials) > 1:
            self._forget(next(iter(self.partials)))
            self.given_up += 1

    def _forget(self, first: int) -> None:
        self.held -= self.partials.pop(first).held


def _count(place: int, fragment: Fragment, payload: bytes) -> int:
    """Of how many pieces the message is, judged by the `place`th one; 0 if that cannot be one."""
    step = fragment.offset // place if place > 0 else len(payload)
    fits = fragment.offset + len(payload) <= fragment.len <= MAX_LARGE
    if place < 0 or not step or not payload or not fits or (place == 0 and fragment.offset):
        return 0
    return -(-fragment.len // step)
