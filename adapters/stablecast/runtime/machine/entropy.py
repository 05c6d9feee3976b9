"""Numbers that no peer can guess."""

import os

octets = os.urandom
"""Return a number of random bytes."""


def bits(count: int) -> int:
    """Return a random number of at most `count` bits, without the imports of `secrets`."""
    return int.from_bytes(os.urandom(-(-count // 8)), "little") >> (-count % 8)


def below(limit: int) -> int:
    """Return a random number from 0 to below `limit`."""
    width = (limit - 1).bit_length()
    # A remainder would prefer small numbers, so numbers that are too large are drawn again.
    while (drawn := bits(width)) >= limit:
        pass
    return drawn
