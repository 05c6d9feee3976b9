"""Units: milliseconds of the wire never turn a span into "not set"."""

import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND, milliseconds


@pytest.mark.parametrize(
    ("nanoseconds", "expected"),
    [(0, 0), (1, 1), (MILLISECOND, 1), (MILLISECOND + 1, 2), (30 * SECOND, 30_000)],
)
def test_milliseconds_are_rounded_up(nanoseconds: int, expected: int) -> None:
    assert milliseconds(nanoseconds) == expected
