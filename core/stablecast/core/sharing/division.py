"""The division of a topic into shares, and of the shares among the members of a group.

A topic has a fixed number of *shares*. The key of a message decides its share, or its number if there is no key. Each
share is a durable receiver with a session id of its own, which follows from the group's name, the number of shares and
the share. So stores keep the place of each share, and let one member at a time hold it.

`owners` is a function of the members alone. Members that know the same members therefore agree without a vote. Each
share prefers the members in an order of its own (rendezvous hashing), and no member gets more than its part. So few
shares move when a member comes or goes.
"""

from collections.abc import Iterable
from zlib import crc32

from stablecast.core.machine.seeded import U64, Seeded

DEFAULT_SHARES = 16
"""Shares of a topic by default: more members than that wait."""

MAX_SHARES = 256
"""Shares that a topic may have: each is a registration at each store."""

_PRIME = 0x100_0000_01B3
_BASIS = 0xCBF2_9CE4_8422_2325


def share_of_key(key: bytes, shares: int) -> int:
    """Return the share of a key: the same for all members, in all processes.

    >>> [share_of_key(key, 16) for key in (b"alice", b"bob", b"carol")]
    [7, 0, 3]
    """
    return crc32(key) % shares


def share_of_number(number: int, shares: int) -> int:
    """Return the share of an extended sequence number."""
    return number % shares


def session_id(group: str, shares: int, share: int) -> int:
    """Return the session id (64 bits, never 0) of a share."""
    digest = _BASIS
    for octet in f"{group}\0{shares}\0{share}".encode():
        digest = (digest ^ octet) * _PRIME % U64  # FNV-1a
    return Seeded(digest).next_u64() or 1


def owners(members: Iterable[int], shares: int) -> list[int]:
    """Return the member that should hold each share, by share; `members` are distinct ids of 64 bits, at least one.

    Each member gets `shares / members` of them, rounded up or down.

    >>> owners([1, 2], 4)
    [2, 1, 1, 2]
    >>> owners([2], 4)
    [2, 2, 2, 2]
    """
    known = sorted(members)
    least, larger = divmod(shares, len(known))
    counts = dict.fromkeys(known, 0)
    chosen = []
    for share in range(shares):
        member = max(
            (one for one in known if counts[one] < least or (larger and counts[one] == least)),
            key=lambda one: Seeded(one ^ Seeded(share).next_u64()).next_u64(),
        )
        larger -= counts[member] == least
        counts[member] += 1
        chosen.append(member)
    return chosen
