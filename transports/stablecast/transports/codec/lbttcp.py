"""The framing of LBT-TCP: a stream is a sequence of LBMC messages, most of which are plain data.

A *plain* message is of kind DATA and has no chained header. Consecutive plain messages of one topic make a `Run`: one
object for all of them, which refers to their bytes in place. Consecutive `chained` messages make a run, too. All other
messages are decoded to a `Message`. The loop of `StreamDecoder` is the hottest loop of a receiver and of a store, so it
creates no object for a message in a run.
"""

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache

import attrs

from stablecast.core.machine.records import record
from stablecast.transports.codec import chained_messages
from stablecast.transports.wire import uniform_runs
from stablecast.transports.wire.common_messages import CODES, shaped
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import Sri
from stablecast.transports.wire.lbmc import DATA_HEADER, MAX_MESSAGE, PREFIX, Message, MessageKind, decode, frame

MAX_PENDING = MAX_MESSAGE
"""Bytes of an incomplete message that a decoder buffers."""

MAX_ANNOUNCEMENTS = 1024
"""Cached announcements of sources. A repeated announcement is not decoded again."""

MAX_ANNOUNCEMENT_BYTES = 1024
"""Larger announcements are not cached, because each of their headers takes some hundred bytes of memory."""

_PLAIN = struct.Struct(">III")
"""The same 12 bytes as `DATA_HEADER`; kind 0 and no header make the first word the length alone."""
_LENGTH = struct.Struct(">2xH")
"""The length of a message, at its start (`PREFIX` without its first half)."""
_LAST = 0xFFFF_FFFF
_HEADER = DATA_HEADER.size
_unpack = _PLAIN.unpack_from
_SHORT = 2048
"""Bytes of a read that are first tried as a single run of plain messages, the usual case at low rates."""
_AGAIN = frozenset({MessageKind.RETRANSMISSION, MessageKind.PROACTIVE})
_AGAIN_HEADERS = 2
"""Headers of a retransmission of a plain message: destination and original sender."""
_PATIENCE = 32
"""Messages to pass before the next search for uniform messages."""


@attrs.define
class Run:
    """Data messages of one topic with consecutive sequence numbers: all plain, or all chained.

    Attributes:
        topic_index: Their topic on the transport, 32 bits.
        first: Sequence number of the first one, 32 bits; numbers wrap inside a run.
        count: Number of messages, at least one.
        payload_bytes: Sum of the sizes of their payloads, properties included.
        block: The messages as received, headers included, back to back.
        chained: True if they have chained headers. Then `chained_messages.pieces` splits them instead of `payloads`.
        kind: Always DATA.
    """

    topic_index: int
    first: int
    count: int
    payload_bytes: int
    block: bytes | memoryview
    chained: bool = False
    kind: int = MessageKind.DATA


@record
class RetransmissionSeries(Message):
    """Retransmissions that are alike and have consecutive numbers: the first of them, and the payloads of all."""

    payloads: Sequence[bytes] = ()


def span(block: bytes | memoryview, skip: int, count: int) -> tuple[int, int]:
    """Return start and end of `count` messages in a block, after the first `skip`."""
    if skip + count >= uniform_runs.MANY and (length := uniform_runs.size(block, skip + count)):
        return skip * length, (skip + count) * length
    length_at = _LENGTH.unpack_from
    start = 0
    for _ in range(skip):
        start += length_at(block, start)[0]
    stop = start
    for _ in range(count):
        stop += length_at(block, stop)[0]
    return start, stop


def payloads(block: bytes | memoryview, skip: int, count: int) -> list[bytes]:
    """Return the payloads of `count` plain messages, after the first `skip`."""
    if count >= uniform_runs.MANY and (length := uniform_runs.size(block, skip + count)):
        return uniform_runs.payloads(block, DATA_HEADER.size, length, skip * length, count)
    octets = bytes(block)  # slicing bytes costs a third of slicing a view and copying
    found: list[bytes] = []
    offset = span(octets, skip, 0)[0] if skip else 0
    for _ in range(count):
        stop = offset + _unpack(octets, offset)[0]
        found.append(octets[offset + _HEADER : stop])
        offset = stop
    return found


def build(topic_index: int, number: int, payloads: Sequence[bytes]) -> bytes:
    """Return the block of plain messages with these payloads, the first with this number. Each must fit a message."""
    header, size = DATA_HEADER.size, len(payloads[0])
    if len(payloads) >= uniform_runs.MANY and set(map(len, payloads)) == {size}:
        return uniform_runs.build(DATA_HEADER.pack(0, 0, header + size, topic_index, 0), number, payloads)
    pack, parts = DATA_HEADER.pack, []
    for payload in payloads:
        parts.append(pack(0, 0, header + len(payload), topic_index, number & _LAST))
        parts.append(payload)
        number += 1
    return b"".join(parts)


class StreamDecoder:
    """Splits one TCP stream into runs and messages.

    Args:
        series: Return uniform retransmissions as `RetransmissionSeries`, frequent control messages as `ShapedMessage`.
            Request ports use this.
    """

    __slots__ = ("_failed", "_needed", "_other", "_pending")

    def __init__(self, series: bool = False) -> None:
        self._other = retransmissions if series else _other
        self._pending = bytearray()
        self._needed = 0  # bytes at which the pending ones can be decoded further
        self._failed = False

    @property
    def pending(self) -> int:
        """Bytes of the incomplete message at the end, at most `MAX_PENDING`."""
        return len(self._pending)

    def feed(self, data: bytes) -> list[Run | Message]:
        """Feed the next bytes of the stream, and return what they complete, in stream order.

        Runs refer to `data` and keep it alive. Only a message that begins in one call and ends in another is copied.

        Raises:
            WireError: If the stream is broken: at once, at any byte, and at each later call. Messages before that byte
                in the same call are lost. Disconnect the peer; the stream cannot be resumed.
        """
        if self._failed:
            raise WireError("the stream was broken before: close its connection")
        if self._pending:
            if len(self._pending) + len(data) < self._needed:
                self._pending += data
                return []
            data = b"".join((self._pending, data))
        elif (size := len(data)) >= _HEADER and size <= _SHORT:  # at low rates usually a few plain messages
            end, topic, first = _unpack(data)
            count = 1
            while _HEADER <= end <= size - _HEADER:
                length, index, number = _unpack(data, end)
                if index != topic or number != first + count & _LAST or length < _HEADER:
                    break
                end += length
                count += 1
            if end == size:
                return [Run(topic, first, count, size - count * _HEADER, data)]
        try:
            found, end = _split(data, self._other)
            if self._pending or end < len(data):
                self._keep(data, end)
        except WireError:
            self._failed = True
            self._pending = bytearray()
            raise
        return found

    def _keep(self, data: bytes, start: int) -> None:
        self._pending = bytearray(memoryview(data)[start:])
        self._needed = frame(self._pending)[1] if len(self._pending) >= PREFIX.size else PREFIX.size


def _split(
    data: bytes, other: Callable[[bytes, int], tuple[Run | Message | None, int]]
) -> tuple[list[Run | Message], int]:
    """Return the whole messages of `data`, and the start of the incomplete one; `other` decodes the rest."""
    found: list[Run | Message] = []
    position, size = 0, len(data)
    while size - position >= PREFIX.size:
        if data[position] or data[position + 1] or size - position < DATA_HEADER.size:
            item, position = other(data, position)
            if item is None:
                break
            found.append(item)
        else:
            start = position
            topic, first, count, position = plain_run(data, start)
            if not count:
                break
            block = data if position - start == size else memoryview(data)[start:position]
            found.append(Run(topic, first, count, position - start - count * DATA_HEADER.size, block))
    return found, position


def _other(data: bytes, position: int) -> tuple[Run | Message | None, int]:
    """Return a chained run or a message in no run, and its end; None if it is not whole."""
    count, payload_bytes, end = chained_messages.run(data, position)
    if count:
        _, topic, first = _PLAIN.unpack_from(data, position)
        return Run(topic, first, count, payload_bytes, memoryview(data)[position:end], chained=True), end
    kind, length = frame(data, position)
    end = position + length
    if end > len(data):
        return None, position
    if kind is MessageKind.CONTROL and data[position + 1] == Sri.CODE and length <= MAX_ANNOUNCEMENT_BYTES:
        return _announcement(bytes(data[position:end])), end
    return decode(data, position)


@lru_cache(maxsize=MAX_ANNOUNCEMENTS)
def _announcement(octets: bytes) -> Message:
    """Decode the announcement of a source, which repeats it ten times within a second, and later occasionally."""
    return decode(octets)[0]


def retransmissions(data: bytes, position: int) -> tuple[Run | Message | None, int]:
    """Return the message or series that begins here and is not plain, and its end; None if it is not whole.

    Retransmissions of consecutive plain messages, with equal incarnations, make one series. Acknowledgements and signs
    of
    life are not split into headers.

    Raises:
        WireError: If it is malformed.
    """
    if data[position + 1] in CODES and (known := shaped(data, position)) is not None:
        return known, position + known.size
    item, end = _other(data, position)
    if not isinstance(item, Message) or item.kind not in _AGAIN or len(item.headers) != _AGAIN_HEADERS:
        return item, end
    length, head = end - position, end - position - len(item.payload)
    contents = [item.payload]
    if len(data) - position >= uniform_runs.MANY * length and data[end : end + 4] == data[position : position + 4]:
        count = uniform_runs.count(data, position, head)
        contents, end = uniform_runs.payloads(data, head, length, position, count), position + count * length
    end = _extended(data, (position, end, head), contents)
    if len(contents) == 1:
        return item, end
    return RetransmissionSeries(item.kind, item.topic_index, item.sequence, item.headers, item.payload, contents), end


def _extended(data: bytes, place: tuple[int, int, int], contents: list[bytes]) -> int:
    """Add the messages that continue a series, of any length, and return their end; `place`: start, end, head size."""
    start, end, head = place
    unpack, size = struct.Struct(f">HHII{head - DATA_HEADER.size}s").unpack_from, len(data)
    code, _, topic, first, chain = unpack(data, start)
    while size - end >= head:
        its_code, length, its_topic, number, its_chain = unpack(data, end)
        if number != first + len(contents) & _LAST or (its_code, its_topic, its_chain) != (code, topic, chain):
            break
        if not head <= length <= size - end:
            break
        contents.append(data[end + head : end + length])
        end += length
    return end


def plain_run(data: bytes, position: int) -> tuple[int, int, int, int]:
    """Return topic, first number, count and end of the run of whole plain messages here; the count may be 0."""
    unpack, shortest, longest, mask = _PLAIN.unpack_from, DATA_HEADER.size, MAX_MESSAGE, _LAST
    size = len(data)
    last_header = size - shortest
    _, topic, first = unpack(data, position)
    expected = first
    before, look = 0, position
    while position <= last_header:
        length, index, sequence = unpack(data, position)
        # A length out of range is another kind, a chained header, or an error that `frame` finds.
        if sequence != expected or index != topic or not shortest <= length <= longest:
            break
        end = position + length
        if end > size:
            break
        if length != before:
            before = length
        elif position >= look and size - position >= uniform_runs.MANY * length:
            found = uniform_runs.count(data, position, shortest)
            end = position + found * length
            sequence += found - 1
            look = end + _PATIENCE * length
        position = end
        expected = sequence + 1 & mask
    return topic, first, expected - first & mask, position
