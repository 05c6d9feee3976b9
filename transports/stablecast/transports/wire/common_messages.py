"""The most frequent control messages, which are encoded and decoded in one step.

These are acknowledgements at high rates, and signs of life of thousands of silent sources. A *shape* is a control
message with certain headers of fixed size in a certain order. The bytes that chain them, and other constant bytes,
stand at known positions: one comparison checks them, and one `struct` reads the rest. Another implementation may send
the same message in another form. That form is decoded header by header.
"""

import struct
from itertools import chain

from stablecast.core.machine.records import record
from stablecast.transports.wire.chained_headers import LEAD
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import plain_forms
from stablecast.transports.wire.headers import Ack, Keepalive, RangedAck, StoreId, TopicIdx, UmeSessionId
from stablecast.transports.wire.lbmc import NOTHING_FOLLOWS, PREFIX, Message, MessageKind


class Shape:
    """Control messages with these headers; `same` holds the fields that are constant in all of them, by name."""

    def __init__(
        self, *headers: type[Ack | Keepalive | StoreId | RangedAck | TopicIdx | UmeSessionId], **same: int
    ) -> None:
        fields = [plain_forms(header) for header in headers]
        lengths = [LEAD + struct.calcsize(">" + "".join(forms.values())) for forms in fields]
        self.size = PREFIX.size + sum(lengths)
        mark, marked = PREFIX.pack(MessageKind.CONTROL, headers[0].CODE, self.size), list[tuple[bytes, str]]()
        following = [*(header.CODE for header in headers[1:]), NOTHING_FOLLOWS]
        for forms, code, length in zip(fields, following, lengths, strict=True):
            mark += bytes((code, length))
            for name, form in forms.items():
                if name in same:
                    mark += struct.pack(">" + form, same[name])
                else:
                    marked.append((mark, form))
                    mark = b""
        self._marks = tuple(before for before, _ in marked)
        sizes = [(len(before), form, struct.calcsize(">" + form)) for before, form in marked]
        self._find = struct.Struct(">" + "".join(f"{before}s{size}x" for before, _, size in sizes)).unpack_from
        self._read = struct.Struct(">" + "".join(f"{before}x{form}" for before, form, _ in sizes)).unpack_from
        self._write = struct.Struct(">" + "".join(f"{before}s{form}" for before, form, _ in sizes)).pack

    def unpack(self, octets: bytes, position: int) -> tuple[int, ...] | None:
        """Return the values of the fields, in their order; None unless a whole message of this shape stands there."""
        if len(octets) - position < self.size or self._find(octets, position) != self._marks:
            return None
        return self._read(octets, position)

    def pack(self, *values: int) -> bytes:
        """Return the message with these values. Raises WireError if a value does not fit its field."""
        try:
            return self._write(*chain.from_iterable(zip(self._marks, values, strict=True)))
        except struct.error as error:
            raise WireError(f"{values} do not fit an acknowledgement or a sign of life: {error}") from error


STABLE = Shape(Ack, StoreId, RangedAck, type=Ack.STABLE)
"""A store holds a range, or has lost it."""
CONSUMED = Shape(Ack, TopicIdx, type=Ack.CDELV)
"""A receiver has consumed everything up to a number."""
CONSUMED_BY = Shape(Ack, TopicIdx, UmeSessionId, type=Ack.CDELV)
"""The same, with the session of the receiver."""
CONSUMED_RANGE = Shape(Ack, TopicIdx, RangedAck, UmeSessionId, type=Ack.CDELV)
"""A receiver has consumed a range. The session is 0 if it has none: without that header two shapes would have one size.
"""
ALIVE = Shape(Keepalive, StoreId)
"""A client or a store is alive, or asks the other one for a sign of life."""
ALIVE_ANYWHERE = Shape(Keepalive)
"""The same without the name of a store."""

SHAPES = {shape.size: shape for shape in (STABLE, CONSUMED, CONSUMED_BY, CONSUMED_RANGE, ALIVE, ALIVE_ANYWHERE)}
"""The shapes by their size, which is unique."""
CODES = frozenset({Ack.CODE, Keepalive.CODE})
"""The codes of the first headers of all shapes. A message that begins with another code has no shape."""


@record
class ShapedMessage(Message):
    """A message of a known shape, not split into headers. Its size identifies the shape of the values."""

    size: int = 0
    values: tuple[int, ...] = ()


def shaped(octets: bytes, position: int) -> ShapedMessage | None:
    """Return the message of a known shape that begins at `position`, or None."""
    shape = SHAPES.get(octets[position + PREFIX.size - 1])
    values = None if shape is None else shape.unpack(octets, position)
    if shape is None or values is None:
        return None
    return ShapedMessage(MessageKind.CONTROL, size=shape.size, values=values)
