"""What a benchmark is to show: a value of the same round's figures, and the limit it has to keep."""

from collections.abc import Callable, Mapping, Sequence

import attrs

from tests.bench.scenario import Figures, Spread, digits


@attrs.frozen
class Goal:
    """One thing to be shown.

    Attributes:
        about: What it is, as a person would say it.
        value: Of one round's figures by system; None if the round has not all that it takes.
        limit: What the value may be at most.
        least: The value must be at least the limit instead.
    """

    about: str
    value: Callable[[Mapping[str, Figures]], float | None]
    limit: float
    least: bool = False

    def verdict(self, rounds: Mapping[str, Sequence[Figures]]) -> "Verdict | None":
        """Judge by the median of the rounds; None if there is nothing to judge."""
        turns = zip(*rounds.values(), strict=True)
        values = [self.value(dict(zip(rounds, turn, strict=True))) for turn in turns]
        known = [value for value in values if value is not None]
        return Verdict(self.about, Spread.of(known), self.limit, self.least) if known else None


@attrs.frozen
class Verdict:
    """What came of a goal."""

    about: str
    value: Spread
    limit: float
    least: bool

    @property
    def reached(self) -> bool:
        """Whether the median keeps the limit."""
        return self.value.median >= self.limit if self.least else self.value.median <= self.limit

    def text(self) -> str:
        """One line."""
        word = "reached" if self.reached else "missed"
        return f"{word}: {self.about} {'≥' if self.least else '≤'} {digits(self.limit)}: {self.value.text()}"

    def as_json(self) -> dict[str, object]:
        """Everything, for machines."""
        return attrs.asdict(self) | {"reached": self.reached}


def ratio(over: str, under: str, figure: str) -> Callable[[Mapping[str, Figures]], float | None]:
    """One system's figure over another's."""

    def value(found: Mapping[str, Figures]) -> float | None:
        if any(figure not in found.get(system, {}) for system in (over, under)):
            return None
        return found[over][figure] / found[under][figure]

    return value
