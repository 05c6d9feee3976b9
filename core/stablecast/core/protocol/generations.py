"""Generations of stores: each start and each clean stop of a store begins another one.

A directory that was restored from a backup looks like that of a store that lost nothing. Others notice it by its
generation, if they know a later one. A generation is a number with a random part. A copy counts on from its own number,
so two runs may have the same number. The random part tells them apart.

Grants carry the generation of the store, and what the store learned of others from SRIs. SRIs carry the newest
generation of each store that the source knows. Registrations carry what the client knows of the store that it asks.
"""

from stablecast.core.protocol.messages import Address

MARK_BITS = 32
"""Bits of the random part."""

MAX_COUNT = (1 << 32) - 1
"""The end of the count: a generation has 64 bits on the wire, and one that a peer invented must have a successor."""

NONE = 0
"""The generation of a store that reports none, for example one of an earlier release."""

Known = tuple[int, Address, int]
"""The newest generation known of a store: its index in the configuration of the source, its address, the generation."""


def following(generation: int, mark: int) -> int:
    """Return the generation after this one, with `mark` as its random part, which is never 0."""
    return min((generation >> MARK_BITS) + 1, MAX_COUNT) << MARK_BITS | (mark or 1)


def outdated(generation: int, known: int) -> bool:
    """Return whether somebody knows a generation that this one does not continue.

    >>> outdated(5 << 32 | 7, 5 << 32 | 7), outdated(5 << 32 | 7, 5 << 32 | 8), outdated(5 << 32, 4 << 32 | 9)
    (False, True, False)
    """
    return known not in (generation, NONE) and generation >> MARK_BITS <= known >> MARK_BITS < MAX_COUNT


def newest(one: int, other: int) -> int:
    """Return the later one. Of two with the same number, neither counts: the result outdates both.

    >>> newest(5 << 32 | 7, 6 << 32 | 1) == 6 << 32 | 1, newest(5 << 32 | 7, 5 << 32 | 8) == 5 << 32
    (True, True)
    """
    if one >> MARK_BITS == other >> MARK_BITS and one != other:
        return one >> MARK_BITS << MARK_BITS
    return max(one, other)
