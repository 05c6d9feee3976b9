"""Records that share datagrams."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from stablecast.transports.wire import lbmr

HEADER_BYTES = 4
TRAILER_BYTES = 36
OVERHEAD = HEADER_BYTES + TRAILER_BYTES
"""Bytes of a datagram besides its records: header and standard options."""

RecordT = TypeVar("RecordT")


def size(tir: lbmr.Advertisement) -> int:
    return len(lbmr.encode(lbmr.Packet(lbmr.PacketKind.NORMAL, advertisements=(tir,)))) - HEADER_BYTES


def share(
    records: Iterable[tuple[RecordT, int]], limit: int, most: int = lbmr.MAX_QUERIES
) -> Iterator[tuple[RecordT, ...]]:
    """Yield groups of records, one group for each datagram, in order, from pairs of record and size in bytes.

    A datagram has at most `limit` bytes and `most` records. A longer record travels alone.

    >>> list(share([("a", 900), ("b", 400), ("c", 100)], limit=1_400))
    [('a', 'b'), ('c',)]
    """
    group: list[RecordT] = []
    used = 0
    for record, octets in records:
        if group and (used + octets > limit - OVERHEAD or len(group) == most):
            yield tuple(group)
            group, used = [], 0
        group.append(record)
        used += octets
    if group:
        yield tuple(group)
