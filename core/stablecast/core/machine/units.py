"""Units of time. Machines count integer nanoseconds; the wire counts milliseconds."""

MICROSECOND = 1_000
MILLISECOND = 1_000 * MICROSECOND
SECOND = 1_000 * MILLISECOND


def milliseconds(nanoseconds: int) -> int:
    """Whole milliseconds in a span of nanoseconds, rounded up so that a non-zero span never becomes 0 ("not set").

    >>> milliseconds(1)
    1
    """
    return -(-nanoseconds // MILLISECOND)
