"""Goals of benchmarks: a value of one round's figures, and its limit."""

from collections.abc import Callable, Mapping, Sequence

import attrs

from tools.bench.scenario import Figures, Spread, digits


@attrs.frozen
class Goal:
    """One goal of a scenario.

    Attributes:
        about: The name of the value, for people.
        value: Returns the value of one round from its figures by system, or None if a figure is missing.
        limit: The largest permitted value.
        least: Whether the limit is the smallest permitted value instead.
    """

    about: str
    value: Callable[[Mapping[str, Figures]], float | None]
    limit: float
    least: bool = False

    def verdict(self, rounds: Mapping[str, Sequence[Figures]]) -> "Verdict | None":
        """Judge the goal by the median of the rounds; return None if no round has a value."""
        turns = zip(*rounds.values(), strict=True)
        values = [self.value(dict(zip(rounds, turn, strict=True))) for turn in turns]
        known = [value for value in values if value is not None]
        return Verdict(self.about, Spread.of(known), self.limit, self.least) if known else None


@attrs.frozen
class Verdict:
    """The result of a goal: the values of the rounds and the limit."""

    about: str
    value: Spread
    limit: float
    least: bool

    @property
    def reached(self) -> bool:
        """True if the median is within the limit."""
        return self.value.median >= self.limit if self.least else self.value.median <= self.limit

    def text(self) -> str:
        word = "reached" if self.reached else "missed"
        return f"{word}: {self.about} {'≥' if self.least else '≤'} {digits(self.limit)}: {self.value.text()}"

    def as_json(self) -> dict[str, object]:
        return attrs.asdict(self) | {"reached": self.reached}


def ratio(over: str, under: str, figure: str) -> Callable[[Mapping[str, Figures]], float | None]:
    """Return the function that divides one system's figure by another's."""

    def value(found: Mapping[str, Figures]) -> float | None:
        if any(figure not in found.get(system, {}) for system in (over, under)):
            return None
        return found[over][figure] / found[under][figure]

    return value
