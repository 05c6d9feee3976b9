"""The form of a rule and of a judge in the catalogue."""

from collections.abc import Mapping

import attrs


@attrs.frozen
class InvariantRule:
    """An invariant of the project.

    Attributes:
        id: The id that verdicts, spec and tests use. It is never given to another rule.
        name: The name of the property in the TLA+ models, where a model has one.
        statement: The invariant, one or two sentences.
        needs: The evidence without which no judge can decide it.
        breaks: Faults that break it.
        remedy: The next step of a person who finds it broken.
    """

    id: str
    name: str
    statement: str
    needs: str
    breaks: str
    remedy: str

    @property
    def title(self) -> str:
        """Return id and name, as reports print them."""
        return self.id if self.id == self.name else f"{self.id} {self.name}"


@attrs.frozen
class RuleJudge:
    """An independent implementation that decides rules.

    Attributes:
        name: The judge's name.
        place: The module, or the folder, of the implementation.
        run: The command that runs it.
        checks: The part of each rule that this judge can see, by id.
    """

    name: str
    place: str
    run: str
    checks: Mapping[str, str]


@attrs.frozen
class ModelProperty:
    """A property of a TLA+ model, `Model.Name`, the rule that it states, and the mechanism that keeps it."""

    path: str
    rule: str
    statement: str
    guard: str

    @property
    def name(self) -> str:
        return self.path.partition(".")[2]
