"""Serial numbers: 32 bits on the wire, unbounded ("extended") ints inside the machines.

A machine that compares, subtracts or stores sequence numbers does so on extended ints, where the wrap does not exist;
it converts with `extend` on the way in and with `wire` on the way out. `before` serves the code that has only wire
numbers. The arithmetic is that of RFC 1982.
"""

MODULUS = 1 << 32
"""Count of distinct wire numbers."""

HALF = 1 << 31
"""Distance in numbers at which "earlier" and "later" are undefined."""

FOREVER = 1 << 63
"""A number above every extended number."""


def wire(number: int) -> int:
    """Return the 32-bit wire form of an extended number.

    >>> wire(MODULUS + 5), wire(-1) == MODULUS - 1
    (5, True)
    """
    return number % MODULUS


def extend(number: int, near: int) -> int:
    """Return the extended number that is congruent to wire `number` and closest to `near`.

    Args:
        number: A wire number, 0 <= number < `MODULUS`.
        near: An extended number known to be at most `HALF` away, e.g. the highest number seen.

    Returns:
        `near` + d with d in [-`HALF`, `HALF`); negative if the number lies before the start of the stream.

    Raises:
        ValueError: If `number` does not fit 32 bits.

    >>> extend(2, near=MODULUS - 1) - MODULUS, extend(MODULUS - 1, near=0)
    (2, -1)
    """
    if not 0 <= number < MODULUS:
        raise ValueError(f"wire number {number} does not fit 32 bits; convert it with wire() first")
    return near + (number - near + HALF) % MODULUS - HALF


def before(a: int, b: int) -> bool:
    """Return whether wire number `a` comes before wire number `b`.

    Numbers exactly `HALF` apart have no order (RFC 1982, 3.2): neither is before the other.

    >>> before(MODULUS - 1, 3), before(3, MODULUS - 1), before(0, HALF), before(HALF, 0)
    (True, False, False, False)
    """
    return 0 < (b - a) % MODULUS < HALF
