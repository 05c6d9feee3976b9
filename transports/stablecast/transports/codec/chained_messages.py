"""Messages with chained headers in a run: pieces of a large message, messages with properties, or both.

FRAG, APPHDR_CHAIN, or one of each stands between the header of such a message and its payload. A message with any other
header is in no run. Only the application's end decodes these headers. Sources, stores and retransmissions keep the
bytes as they came.
"""

from functools import lru_cache
from typing import NamedTuple

from stablecast.transports.wire import lbmc
from stablecast.transports.wire.chained_headers import LEAD, MIN_LENGTH
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import ApplicationChain, Fragment, unpack

FRAGMENT_LENGTH = 16
"""Bytes of FRAG."""

KNOWN_CHAINS = 256
"""Chains of elements that are remembered: runs of messages with properties of one length repeat one of them."""

_LAST = 0xFFFF_FFFF


class ChainedPiece(NamedTuple):
    """A message of a chained run.

    Attributes:
        payload: Its own payload, properties included.
        fragment: Its part of a larger message; None for a whole message.
        properties: Bytes of properties at the end of the whole message.
        hot_number: The hot-failover number of the whole message, None if it has none.
    """

    payload: bytes
    fragment: Fragment | None = None
    properties: int = 0
    hot_number: int | None = None


def payload_at(octets: bytes | memoryview, at: int, end: int) -> int | None:
    """Return the start of the payload of the data message in [at, end); None if a header excludes it from a run."""
    code, at = octets[at + 1], at + lbmc.DATA_HEADER.size
    while code != lbmc.PAYLOAD_FOLLOWS:
        if code not in (Fragment.CODE, ApplicationChain.CODE) or end - at < MIN_LENGTH:
            return None
        length = octets[at + 1]
        if not MIN_LENGTH <= length <= end - at or (code == Fragment.CODE and length != FRAGMENT_LENGTH):
            return None
        code, at = octets[at], at + length
    return at


def run(data: bytes, position: int) -> tuple[int, int, int]:
    """Return count, payload bytes and end of the run of whole chained messages that begins here; the count may be 0."""
    unpack_from, shortest, size = lbmc.DATA_HEADER.unpack_from, lbmc.DATA_HEADER.size, len(data)
    count = payload_bytes = 0
    expected = None
    while size - position >= shortest:
        kind, code, length, *name = unpack_from(data, position)
        if kind or not code or not shortest <= length <= size - position or name != (expected or name):
            break
        end = position + length
        start = payload_at(data, position, end)
        if start is None:
            break
        topic, number = name
        expected = [topic, (number + 1) & _LAST]
        count, payload_bytes, position = count + 1, payload_bytes + end - start, end
    return count, payload_bytes, position


def pieces(block: bytes | memoryview, skip: int, count: int) -> list[ChainedPiece]:
    """Return the messages of a chained run, without the first `skip`."""
    octets, at, found = bytes(block), 0, []
    for place in range(skip + count):
        end = at + int.from_bytes(octets[at + 2 : at + 4])
        if place >= skip:
            found.append(_piece(octets, at, end))
        at = end
    return found


def _piece(octets: bytes, at: int, end: int) -> ChainedPiece:
    code, at = octets[at + 1], at + lbmc.DATA_HEADER.size
    fragment, properties, hot_number = None, 0, None
    while code != lbmc.PAYLOAD_FOLLOWS:
        behind = at + octets[at + 1]
        if code == ApplicationChain.CODE:
            properties, hot_number = _elements(octets[at + LEAD : behind])
        else:
            header = unpack(code, octets[at + LEAD : behind])
            fragment = header if isinstance(header, Fragment) else fragment
        code, at = octets[at], behind
    return ChainedPiece(octets[at:end], fragment, properties, hot_number)


@lru_cache(KNOWN_CHAINS)
def _elements(octets: bytes) -> tuple[int, int | None]:
    """Return the bytes of properties and the hot-failover number of a chain.

    A malformed chain has neither: it then belongs to the application.
    """
    header = unpack(ApplicationChain.CODE, octets)
    assert isinstance(header, ApplicationChain)
    try:
        return header.properties_length(), header.hot_number()
    except WireError:
        return 0, None
