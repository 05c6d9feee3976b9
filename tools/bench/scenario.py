"""The parts of a benchmark: systems that take turns at the same work, their figures, and the ratios between them.

The machine is small, shared and noisy. A rate alone means little; the ratio of two rates of one round means more.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from tools.bench.goals import Goal

Figures = Mapping[str, float]
"""The results of one run of one system, by the name of the figure."""


@attrs.frozen
class Options:
    """The size of the runs.

    Attributes:
        messages: Number of messages in each run of the throughput scenarios. The others scale with it.
        size: Bytes of a payload.
        flight: Largest number of unstable messages.
        rounds: Number of runs of every system.
        directory: A directory on the disk to measure; the temporary folder by default.
        trace: Whether to measure with traces as well.
        sources: Number of sources over sockets in the scenario with very many.
    """

    messages: int = 500_000
    size: int = 100
    flight: int = 20_000
    rounds: int = 3
    directory: Path | None = None
    trace: bool = False
    sources: int = 10_000


Measure = Callable[[Options, Path], Figures]
"""A function that runs a system once in a new empty folder."""


@attrs.frozen
class Scenario:
    """Systems that do the same work side by side.

    Attributes:
        name: Its name on the command line.
        about: The measured work, in one line.
        durability: The meaning of an acknowledgement.
        systems: The measured systems by name, in the order of their turns.
        figures: The label of each figure with its unit, for the rows of a table.
        ratios: The compared systems (over, under) and the figure.
        goals: The goals of the scenario.
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
    """The median, the lowest and the highest of several measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def text(self) -> str:
        return f"{digits(self.median)} ({digits(self.low)}–{digits(self.high)})"


def digits(value: float) -> str:
    """Return a number with three significant digits, or all digits before the point."""
    places = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{places}f}"


@attrs.frozen
class Outcome:
    """A measured scenario: the figures of each round by system."""

    scenario: Scenario
    rounds: Mapping[str, Sequence[Figures]]

    def spread(self, system: str, figure: str) -> Spread | None:
        values = [found[figure] for found in self.rounds[system] if figure in found]
        return Spread.of(values) if values else None

    def ratio(self, over: str, under: str, figure: str) -> Spread:
        """Return one system's figure divided by another's of the same round."""
        pairs = zip(self.rounds[over], self.rounds[under], strict=True)
        return Spread.of([one[figure] / other[figure] for one, other in pairs])

    def as_json(self) -> dict[str, object]:
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
