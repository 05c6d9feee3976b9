"""Print a counterexample of the checker as a story for people.

The checker prints every state whole. The story has one entry for each step: the action, the model's comment on it, and
the values that changed:

    11  Sync(1): everything written is durable; grants and acknowledgements that waited for it go
        disk 1: content 1 is 1 (was 0)
"""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import attrs

from stablecast.lab.model.canonical import parse, plain, text
from stablecast.lab.model.catalog import Configuration

_MOMENT = re.compile(r"^State (\d+): (?:<(.+?)(?: line \d.*)?>|(Stuttering))$", re.MULTILINE)
_BACK = re.compile(r"^Back to state (\d+)", re.MULTILINE)
_ENDS = re.compile(r"^(?:\d+ states generated|Finished|Progress|Back to|Error:)", re.MULTILINE)
_COMMENT = r"^{name}(?:\([^)\n]*\))? ==[ \t]*\\\*[ \t]*(.+(?:\n[ \t]*\\\*[ \t].+)*)"
STUTTERING = "Stuttering"


@attrs.frozen
class Change:
    """Describe a value that a step changed: its owner (`store 1`), its name, and its text before and after."""

    of: str
    value: str
    before: str
    after: str

    def sentence(self) -> str:
        return f"{self.value} is {self.after} (was {self.before})".lstrip()


@attrs.frozen
class Moment:
    """Describe a step: the action (empty for the initial state), the model's comment on it, and the changes."""

    action: str
    words: str
    changes: tuple[Change, ...]


@attrs.frozen
class Counterexample:
    """Hold a run that breaks a property. `back` is the step that an endless run continues from."""

    configuration: str
    broken: str
    words: str
    moments: tuple[Moment, ...]
    back: int | None = None

    def story(self) -> Iterator[str]:
        yield f"{self.configuration}: a run that breaks {self.broken}" + (f" ({self.words})" if self.words else "")
        for number, moment in enumerate(self.moments):
            if not moment.action:
                continue
            yield f"{number:>4}  {moment.action}" + (f": {moment.words}" if moment.words else "")
            for of, changes in groupby(moment.changes, lambda change: change.of):
                yield f"      {of}: {', '.join(change.sentence() for change in changes)}"
        if self.back is not None:
            yield f"      and so on for ever, from step {self.back}"


def read(output: str, configuration: Configuration, broken: str) -> Counterexample | None:
    path = configuration.path.parent / f"{configuration.model}.tla"
    model = path.read_text(encoding="utf-8") if path.exists() else ""
    found = list(_MOMENT.finditer(output))
    moments: list[Moment] = []
    before: dict[str, Any] = {}
    for at, one in enumerate(found):
        end = found[at + 1].start() if at + 1 < len(found) else len(output)
        if one[3]:
            moments.append(Moment(STUTTERING, "no action follows, although one is enabled", ()))
            continue
        after = _state(output[one.end() : end])
        initial = at == 0
        action = "" if initial else one[2]
        changes = () if initial else tuple(_changes((), before, after))
        moments.append(Moment(action, _comment(model, action.partition("(")[0]) if action else "", changes))
        before = after
    back = _BACK.search(output)
    if not moments:
        return None
    return Counterexample(
        configuration.name, broken, _comment(model, broken), tuple(moments), int(back[1]) - 1 if back else None
    )


def _comment(model: str, name: str) -> str:
    """Return the comment after a definition of a model; empty if it has none."""
    found = re.search(_COMMENT.format(name=re.escape(name)), model, re.MULTILINE)
    return "" if found is None else re.sub(r"\s*\n[ \t]*\\\*[ \t]*", " ", found[1]).strip()


def _state(source: str) -> dict[str, Any]:
    r"""Return the variables of a state as the checker prints it, a `/\ x = 1` for each."""
    ends = _ENDS.search(source)
    parts = (source[: ends.start()] if ends else source).split("\n/\\ ")[1:]
    pairs = (part.partition(" = ") for part in parts)
    return {name.strip(): plain(text(parse(value.strip()))) for name, _, value in pairs}


def _changes(where: tuple[str, ...], before: Any, after: Any) -> Iterator[Change]:
    """Yield the differences, value by value."""
    if before == after:
        return
    inner = _inner(before), _inner(after)
    if inner[0] is None or inner[1] is None or (where and inner[0].keys() != inner[1].keys()):
        yield Change(*_named(where), _shown(before), _shown(after))
        return
    for key in inner[1]:
        yield from _changes((*where, str(key)), inner[0].get(key), inner[1][key])


def _named(where: tuple[str, ...]) -> tuple[str, str]:
    """Return the owner of a value and the rest of its path. A variable may have one part for each of many owners."""
    parts = 2 if len(where) > 1 and where[1].isdigit() else 1
    return " ".join(where[:parts]), " ".join(where[parts:])


def _inner(value: Any) -> dict[Any, Any] | None:
    """Return the parts of a record, function or sequence."""
    if isinstance(value, tuple):
        return dict(enumerate(value, 1))
    return value if isinstance(value, dict) else None


def _shown(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return "(" + ", ".join(f"{key} {_shown(of)}" for key, of in value.items()) + ")"
        case tuple():
            return "[" + ", ".join(map(_shown, value)) + "]"
        case frozenset():
            return "{" + ", ".join(sorted(map(_shown, value))) + "}"
        case _:
            return str(value)
