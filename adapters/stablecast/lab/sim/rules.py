"""A violation that the simulator's checkers report; `evidence.rules.judges.SIMULATOR` lists their rules."""

import attrs

from stablecast.evidence.rules import RULES


@attrs.frozen
class Violation:
    """A broken rule; `at` in ns since the world began."""

    rule: str
    at: int
    text: str

    @property
    def name(self) -> str:
        """Return id and name of the rule."""
        return RULES[self.rule].title
