"""How records share datagrams."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from stablecast.transports.wire import lbmr

DATAGRAM_LIMIT = 1_400
"""Bytes of a datagram that several records share: one Ethernet frame. `lbmr.MAX_DATAGRAM` would be cut up by IP, and
one lost piece loses the whole. A record longer than this travels alone."""

HEADER_BYTES = 4
TRAILER_BYTES = 36
ROOM = DATAGRAM_LIMIT - HEADER_BYTES - TRAILER_BYTES
"""Bytes for records in a shared datagram, beside header and standard options."""

RecordT = TypeVar("RecordT")


def size(tir: lbmr.Advertisement) -> int:
    """Bytes of an advertisement on the wire."""
    return len(lbmr.encode(lbmr.Packet(lbmr.PacketKind.NORMAL, advertisements=(tir,)))) - HEADER_BYTES


def share(records: Iterable[tuple[RecordT, int]], most: int = lbmr.MAX_QUERIES) -> Iterator[tuple[RecordT, ...]]:
    """Splits (record, its size in bytes) into groups of one datagram each, in order, at most `most` in a group.

    >>> list(share([("a", 900), ("b", 400), ("c", 100)]))
    [('a', 'b'), ('c',)]
    """
    group: list[RecordT] = []
    used = 0
    for record, octets in records:
        if group and (used + octets > ROOM or len(group) == most):
            yield tuple(group)
            group, used = [], 0
        group.append(record)
        used += octets
    if group:
        yield tuple(group)
