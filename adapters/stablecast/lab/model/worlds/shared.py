"""Convert numbers for every world."""

from collections.abc import Iterable
from typing import Any


def numbers_of(ranges: Iterable[tuple[int, int]], shift: int = 0) -> frozenset[Any]:
    """Return the numbers of the ranges [start, stop), moved by `shift`."""
    return frozenset(number + shift for start, stop in ranges for number in range(start, stop))
