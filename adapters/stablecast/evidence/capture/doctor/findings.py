"""A finding of the doctor, and figures in text."""

from collections.abc import Sequence
from typing import Any, Final

import attrs

from stablecast.core.machine.units import MILLISECOND

MAX_FRAMES: Final = 5
"""Packets that a finding names, at most. The first ones are enough to open the capture at the right place."""

HISTOGRAM_MS: Final = (20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Upper bounds of the columns of a histogram of times, in ms. One more column has the rest."""


@attrs.frozen
class CaptureAdvice:
    """Something to change, with its evidence.

    Attributes:
        code: Stable name of the kind of finding, also the name of its threshold.
        whose: The session, receiver or context.
        text: What the packets show.
        remedy: What to change, and to which value.
        value: The measured value.
        threshold: The value from which on this is a finding.
        frames: The first packets behind it.
        figures: Further measured values by name; times are in ms.
    """

    code: str
    whose: str
    text: str
    remedy: str
    value: float
    threshold: float
    frames: tuple[int, ...] = ()
    figures: dict[str, Any] = attrs.field(factory=dict)

    def as_json(self) -> dict[str, Any]:
        return attrs.asdict(self)


def milliseconds(nanoseconds: int) -> float:
    """Return a time in ms, with three digits for short times."""
    value = nanoseconds / MILLISECOND
    return round(value, 3) if value < 1 else round(value, 1)


def percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def quantile(ordered: Sequence[int], share: float) -> int:
    """Return the smallest value that is not exceeded by `share` of the ordered values, which are not empty."""
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def histogram(times_ns: Sequence[int]) -> dict[str, int]:
    """Return how many times are in each column of `HISTOGRAM_MS`."""
    columns = {f"<{bound}": 0 for bound in HISTOGRAM_MS}
    columns["more"] = 0
    for time_ns in times_ns:
        bound = next((bound for bound in HISTOGRAM_MS if time_ns < bound * MILLISECOND), None)
        columns["more" if bound is None else f"<{bound}"] += 1
    return columns
