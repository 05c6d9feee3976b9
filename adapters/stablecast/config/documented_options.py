"""The documented options of clients, by scope and name: in effect, without effect, or not here, with the reason.

`documented.txt` is the one table of these names. Files, calls, daemons and `prove` give the same answer from it.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from stablecast.config.option_kinds import plain
from stablecast.runtime import machine
from stablecast.text import nearest

ANY_NAME: Final = "*"
"""The end of a name that stands for a family of names."""
TRANSPORTS: Final = "transport_"
"""The first word of options that sources, receivers and contexts share."""
_SENTENCE = re.compile(r"@(\w+): (.*)")
_ROW = re.compile(r"(?P<scope>\w+) (?P<name>[\w*]+)(?: \[(?P<values>[^\]]*)\])?(?:: (?P<reason>.*))?")


@attrs.frozen
class Documented:
    """One row: `reason` is empty for an option in effect; `values` ask for nothing, None if no value does."""

    reason: str = ""
    values: tuple[str, ...] | None = None

    def refusal(self, name: str, value: object) -> str:
        """Return the sentence that refuses this value; empty: a notice is enough."""
        text = plain(value).strip().lower()
        if self.values is None or not text or text in self.values:
            return ""
        return f"{name} {text} is not here: {self.reason}"

    def notice(self, name: str) -> str:
        """Return the notice about the option; empty if it is in effect."""
        return f"{name} has no effect: {self.reason}" if self.reason else ""


@cache
def documented() -> Mapping[tuple[str, str], Documented]:
    """Return each row of the table by scope and name."""
    lines = machine.installed_file(Path(__file__).with_name("documented.txt")).decode().splitlines()
    sentences = {found[1]: found[2] for line in lines if (found := _SENTENCE.fullmatch(line))}
    rows = {}
    for row in (found for line in lines if (found := _ROW.fullmatch(line))):
        reason = re.sub(r"^@(\w+)", lambda word: sentences[word[1]], row["reason"] or "")
        values = None if row["values"] is None else tuple(row["values"].split("|"))
        rows[row["scope"], row["name"]] = Documented(reason, values)
    return rows


def documented_option(scope: str, name: str) -> Documented | None:
    """Return the row of an option, or that of its family; None: it is not documented in this scope.

    Options of transports are those of sources, receivers and contexts alike.
    """
    scopes = [scope, *(("context", "source", "receiver") if name.startswith(TRANSPORTS) else ())]
    for one in scopes:
        if name != ANY_NAME and (row := documented().get((one, name))) is not None:
            return row
    return next((row for one in scopes for row in _of_family(one, name)), None)


def unknown(scope: str, name: str, followed: Iterable[str]) -> str:
    """Return the sentence about a name that this scope does not have; `followed` are names beside the documented."""
    elsewhere = sorted(other for other, known in documented() if known == name)
    if elsewhere:
        return f"{name} is an option of the scope {elsewhere[0]}, not {scope}"
    known = {known for of_scope, known in documented() if of_scope == scope}.union(followed)
    return f"there is no {scope} option '{name}': {suggestion(name, sorted(known))}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the remedy for an unknown name: the nearest name of its family, or the chapter that lists all names."""
    family = _family(name)
    if family in {_family(one) for _, one in documented()}:
        known = [one for one in known if _family(one) == family]
    return nearest(name, known) or "spec/options.md lists them"


def _family(name: str) -> tuple[str, ...]:
    """Return the words with which a family of names begins: the kind, too, for transports."""
    words = re.split("[_-]", name)
    return tuple(words[: 2 if words[0] == TRANSPORTS.rstrip("_") else 1])


def _of_family(scope: str, name: str) -> Iterable[Documented]:
    return (row for (one, known), row in documented().items() if one == scope and _starts(name, known))


def _starts(name: str, known: str) -> bool:
    return known.endswith(ANY_NAME) and name.startswith(known.removesuffix(ANY_NAME))
