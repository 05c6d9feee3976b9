"""The evidence of the models as chapters show it: actions, properties, and the bounds within which they are checked.

A block below a guarantee is rendered from the configurations. `STABLECAST_REWRITE=1 pytest tests/models` renders all.

    <!-- within: Stability.StableByQuorum Rpp.SyncedFirst -->
    ...
    <!-- end -->
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from stablecast.lab.model.catalog import Configuration, RecordedGraph, configurations, load

MODELS = (
    "ProxyElection",
    "ReceiverVotes",
    "Recovery",
    "Refill",
    "Registration",
    "ResolutionPhases",
    "Router",
    "Rpp",
    "SrsLifetime",
    "Stability",
    "Subscription",
    "WorkSharing",
)

BLOCK = re.compile(r"(<!-- within: ([\w. ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_DEFINED = re.compile(r"^(\w+)(?:\([^)]*\))? ==", re.MULTILINE)
_NEXT = re.compile(r"^Next ==\n((?:[ \t]+\S.*\n)+)", re.MULTILINE)
_STEP = re.compile(r"(?:\\/|:)\s*([A-Z]\w*)")
_NUMBER = re.compile(r"-?\d+")
_MEMBER = re.compile(r"\"[^\"]+\"|\d+")


@attrs.frozen
class Model:
    """The names that a model's module defines, and the actions of its `Next`."""

    defined: frozenset[str]
    actions: frozenset[str]

    @classmethod
    def read(cls, path: Path) -> "Model":
        """Parse the module in a file."""
        source = re.sub(r"\\\*.*", "", path.read_text(encoding="utf-8"))
        steps = _NEXT.search(source)
        assert steps is not None, f"{path} has no Next"
        return cls(frozenset(_DEFINED.findall(source)), frozenset(_STEP.findall(steps[1])))


def section(chapter: str, heading: str) -> str:
    """Return the text below a heading, up to the next heading of any level."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", chapter, re.MULTILINE | re.DOTALL)
    assert found is not None, f"there is no '{heading}'"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """Return the cells of the first table in a text, row by row, without its head."""
    found = re.search(r"(?:^\|[^\n]*\n)+", text, re.MULTILINE)
    assert found is not None, "there is no table"
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[0].splitlines()[2:]]


@attrs.frozen
class Evidence:
    """The configurations of all models, and the recorded digests of their graphs."""

    every: list[Configuration]
    known: dict[str, RecordedGraph]

    @classmethod
    def read(cls, models: Path) -> "Evidence":
        return cls(configurations(models), load(models))

    def holds(self, stated: str) -> list[Configuration]:
        """Return the configurations in which a property, `Model.Name`, must hold."""
        return [one for one in self._of(stated) if one.expected == "ok"]

    def fails(self, stated: str) -> list[Configuration]:
        """Return the configurations in which this property, and no other, must fail."""
        return [one for one in self._of(stated) if one.expected == f"violates {stated.partition('.')[2]}"]

    def _of(self, stated: str) -> Iterator[Configuration]:
        model, _, name = stated.partition(".")
        return (one for one in self.every if one.model == model and name in (*one.invariants, *one.properties))

    def properties(self) -> set[str]:
        """Return the names of all checked properties."""
        return {f"{one.model}.{name}" for one in self.every for name in (*one.invariants, *one.properties)}

    def rendered(self, chapter: str) -> str:
        """Return the chapter with its blocks rendered from the configurations."""
        return BLOCK.sub(lambda block: f"{block[1]}\n{self.table(block[2].split())}\n{block[3]}", chapter)

    def table(self, properties: list[str]) -> str:
        """Render a table of properties.

        A row shows where a property holds, how many of these graphs are equal to the core's, the bounds, and where the
        property must fail. Properties with the same bounds share one row.
        """
        alike: dict[str, list[str]] = {}
        for stated in properties:
            alike.setdefault(self._bounds(stated), []).append(stated)
        lines = [
            "| property | holds in | of these, the core's own graph | constants | must fail in |",
            "|---" * 5 + "|",
        ]
        for bounds, names in alike.items():
            failing = dict.fromkeys(one.path.stem for stated in names for one in self.fails(stated))
            called = ", ".join(f"`{name}`" for name in names)
            lines.append(f"| {called} | {bounds} | {', '.join(failing) or 'none'} |")
        return "\n".join([*lines, ""])

    def _bounds(self, stated: str) -> str:
        holding = self.holds(stated)
        states = sorted(self.known[one.name].digests.nodes for one in holding if one.name in self.known)
        graphs = f"{len(states)} of {states[0]:,} to {states[-1]:,} states" if states else "none"
        names = ", ".join(one.path.stem for one in holding)
        return f"{names} | {graphs} | {spans(one.sources for one in holding)}"


def spans(constants: Iterable[dict[str, str]]) -> str:
    """Return the values of each constant over several configurations; for sets, their possible members."""
    values: dict[str, list[str]] = {}
    for sources in constants:
        for name, value in sources.items():
            if name != "Mutant":
                values.setdefault(name, []).append(value)
    return "; ".join(f"{name} {_span(found)}" for name, found in values.items())


def _span(values: list[str]) -> str:
    if all(_NUMBER.fullmatch(value) for value in values):
        numbers = sorted({int(value) for value in values})
        return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    if values[0].startswith("{"):
        members = sorted({member.strip('"') for value in values for member in _MEMBER.findall(value)})
        among = "" if len(set(values)) == 1 else "within "
        return f"{among}{{{', '.join(members)}}}"
    return " / ".join(dict.fromkeys(value.strip('"') for value in values))
