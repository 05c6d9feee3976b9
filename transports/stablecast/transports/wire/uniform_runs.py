"""Runs of uniform messages: consecutive messages of one length, whose headers differ only in their numbers.

Most streams consist of them. They are built, checked and split by columns and not message by message: a column is a
slice whose step is the length of a message. The result equals that of a walk from message to message; tests compare
the two.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from stablecast.transports.wire.lbmc import DATA_HEADER

NUMBER: Final = DATA_HEADER.size - 4
"""Position of the 32-bit sequence number in a message."""

PAGE: Final = 256
"""Numbers that share all bytes but the last."""

AT_ONCE: Final = 16
"""Messages that one call splits."""

MANY: Final = 8
"""Number of messages from which on columns are worth their fixed cost."""

_LOW: Final = bytes(range(PAGE))
_PAGES: Final = tuple([bytes((value,)) * PAGE for value in range(PAGE)])
_HEADER: Final = (3, 2, 0, 1, 4, 5, 6, 7)
"""Positions of the constant bytes. The length comes first, because it is the byte that differs most often."""
_LENGTH: Final = slice(2, 4)
_MASK: Final = 0xFFFF_FFFF


def build(head: bytes, number: int, payloads: Sequence[bytes]) -> bytes:
    """Return the messages of payloads of one size, numbered from `number` on, mod 2^32; `head` is the header of all."""
    size, pages, at = len(head) + len(payloads[0]), [], 0
    before, behind = head[:NUMBER], head[NUMBER + 4 :]
    while at < len(payloads):
        first = number + at
        low = first % PAGE
        page = payloads[at : at + PAGE - low]
        lead = before + (first & _MASK).to_bytes(4) + behind
        octets = bytearray(lead.join((b"", *page)))
        octets[NUMBER + 3 :: size] = _LOW[low : low + len(page)]
        pages.append(octets)
        at += len(page)
    return b"".join(pages)


def count(data: bytes, start: int, head: int) -> int:
    """Return the number of whole messages from `start` on whose first `head` bytes are alike; at least 1.

    The first message must be whole and at least as long as `head`.
    """
    length = int.from_bytes(data[start + 2 : start + 4])
    found = (len(data) - start) // length
    # Only if all lengths are equal, the other slices are columns. So the length is compared first.
    for place in _HEADER if head == DATA_HEADER.size else (*_HEADER, *range(DATA_HEADER.size, head)):
        column = data[start + place : start + found * length : length]
        if column != column[:1] * found:
            found -= len(column.lstrip(column[:1]))
            if found == 1:
                return 1
    return _consecutive(data, start + NUMBER, length, found)


def _consecutive(data: bytes, at: int, length: int, most: int) -> int:
    """Return how many of the numbers at `at`, `at + length`, ... are consecutive."""
    number, found = int.from_bytes(data[at : at + 4]), most
    for place in (3, 2, 1, 0):
        had = data[at + place : at + found * length - NUMBER : length]
        column = _column(number, place, found)
        if had != column:
            found = next(n for n in range(found) if had[n] != column[n])
    return found


def _column(first: int, place: int, messages: int) -> bytes:
    """Return the byte at this place of consecutive numbers."""
    low = first % PAGE
    if place == 3:
        return (_LOW * (messages // PAGE + 2))[low : low + messages]
    if place == 2:
        page = first // PAGE
        pages = [_PAGES[number % PAGE] for number in range(page, page + messages // PAGE + 2)]
        return b"".join(pages)[low : low + messages]
    step, parts = PAGE ** (3 - place), []
    while messages:
        value, gone = divmod(first, step)
        some = min(step - gone, messages)
        parts.append(bytes((value % PAGE,)) * some)
        first += some
        messages -= some
    return b"".join(parts)


def size(block: bytes | memoryview, messages: int) -> int:
    """Return the length that the first messages of a block have in common; 0 if their lengths differ.

    The messages must be present: the caller has already walked the block.
    """
    length = int.from_bytes(block[_LENGTH])
    end = messages * length
    if end > len(block):
        return 0
    for place in (3, 2):
        column = bytes(block[place:end:length])
        if column != column[:1] * messages:
            return 0
    return length


def payloads(block: bytes | memoryview, head: int, length: int, start: int, messages: int) -> list[bytes]:
    """Return the bytes after the first `head` bytes of messages of one length, the first of which begins at `start`."""
    found: list[bytes] = []
    view = memoryview(block)
    middle = start + messages // AT_ONCE * AT_ONCE * length
    for some in _layout(head, length, AT_ONCE).iter_unpack(view[start:middle]):
        found += some
    for one in _layout(head, length, 1).iter_unpack(view[middle : start + messages * length]):
        found += one
    return found


@lru_cache(maxsize=256)
def _layout(head: int, length: int, messages: int) -> struct.Struct:
    return struct.Struct(f"{head}x{length - head}s" * messages)
