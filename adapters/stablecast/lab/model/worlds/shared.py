"""Convert constants and numbers for every world."""

from collections.abc import Iterable, Mapping
from typing import Any

from stablecast.lab.model.canonical import Value


def known_constants(constants: Mapping[str, Value]) -> dict[str, Any]:
    """Return a configuration's constants without `Mutant`, which only the model has."""
    return {name: value for name, value in constants.items() if name != "Mutant"}


def numbers_of(ranges: Iterable[tuple[int, int]], shift: int = 0) -> frozenset[Any]:
    """Return the numbers of the ranges [start, stop), moved by `shift`."""
    return frozenset(number + shift for start, stop in ranges for number in range(start, stop))
