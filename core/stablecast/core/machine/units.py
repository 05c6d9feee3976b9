"""Units of time. Machines count integer nanoseconds; the wire counts milliseconds."""

MICROSECOND = 1_000
MILLISECOND = 1_000 * MICROSECOND
SECOND = 1_000 * MILLISECOND


def milliseconds(nanoseconds: int) -> int:
    """Return the milliseconds in a span of ns, rounded up so that a span above 0 never becomes 0 ("not set").

    >>> milliseconds(1)
    1
    """
    return -(-nanoseconds // MILLISECOND)
