"""What a benchmark is made of: systems that take turns at the same work, and the ratios that count.

The machine is small, shared and noisy: a rate alone says little, a ratio of two rates of the same round says more.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from tests.bench.goals import Goal

Figures = Mapping[str, float]
"""What one run of one system came to, by the name of the figure."""


@attrs.frozen
class Options:
    """How large the runs are.

    Attributes:
        messages: In each run of the scenarios of throughput; the others scale by it.
        size: Bytes of a payload.
        flight: Messages that may be unstable.
        rounds: Turns that every system gets.
        directory: Where the disk to measure is; the temporary folder by default.
        trace: Measure with traces as well.
        sources: Over sockets, in the scenario that has very many.
    """

    messages: int = 500_000
    size: int = 100
    flight: int = 20_000
    rounds: int = 3
    directory: Path | None = None
    trace: bool = False
    sources: int = 10_000


Measure = Callable[[Options, Path], Figures]
"""Run once, in a new empty folder."""


@attrs.frozen
class Scenario:
    """Systems side by side.

    Attributes:
        name: How it is asked for.
        about: What is measured, one line.
        durability: What an acknowledged message has come through.
        systems: By name, in the order of the turns.
        figures: What they measure, with the unit; each in the form of a table's row.
        ratios: Which system is compared to which, and in which figure.
        goals: What is to be shown.
    """

    name: str
    about: str
    durability: str
    systems: Mapping[str, Measure]
    figures: Mapping[str, str]
    ratios: Sequence[tuple[str, str, str]] = ()
    goals: Sequence["Goal"] = ()


@attrs.frozen
class Spread:
    """The middle of several measurements and how far they lie apart."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def text(self) -> str:
        """For a table: three digits that count."""
        return f"{digits(self.median)} ({digits(self.low)}–{digits(self.high)})"


def digits(value: float) -> str:
    """Three digits that count, or all before the point."""
    places = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{places}f}"


@attrs.frozen
class Outcome:
    """A scenario that was measured: the figures of each round by system."""

    scenario: Scenario
    rounds: Mapping[str, Sequence[Figures]]

    def spread(self, system: str, figure: str) -> Spread | None:
        """A figure of a system; None if it has none of this name."""
        values = [found[figure] for found in self.rounds[system] if figure in found]
        return Spread.of(values) if values else None

    def ratio(self, over: str, under: str, figure: str) -> Spread:
        """One system's figure over another's of the same round."""
        pairs = zip(self.rounds[over], self.rounds[under], strict=True)
        return Spread.of([one[figure] / other[figure] for one, other in pairs])

    def as_json(self) -> dict[str, object]:
        """Everything, for machines."""
        return {
            "about": self.scenario.about,
            "durability": self.scenario.durability,
            "rounds": {name: [dict(found) for found in rounds] for name, rounds in self.rounds.items()},
            "medians": {
                name: {figure: attrs.asdict(spread) for figure in rounds[0] if (spread := self.spread(name, figure))}
                for name, rounds in self.rounds.items()
            },
            "ratios": {
                f"{over} / {under}, {figure}": attrs.asdict(self.ratio(over, under, figure))
                for over, under, figure in self.scenario.ratios
            },
            "goals": [
                verdict.as_json() for goal in self.scenario.goals if (verdict := goal.verdict(self.rounds)) is not None
            ],
        }
