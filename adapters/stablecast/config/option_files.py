"""Option files of clients and daemons: `scope option value` lines (P-850).

`#` begins a comment. Case does not matter in scope and option. Later lines override earlier ones; lines of list options
append.
"""

from collections.abc import Iterator
from pathlib import Path

import attrs

from stablecast.core.errors import StablecastError
from stablecast.runtime import machine

SCOPES = ("context", "source", "receiver", "wildcard_receiver", "event_queue", "hfx")


class FlatFileError(StablecastError):
    """A malformed line; the message names file, line and the expected form."""


@attrs.frozen
class Setting:
    """One option of a file: scope, option, value, line number, and the name of the file if it matters.

    `hyphens` is true if the file has hyphens for the underscores of the name, as the guide prints some names.
    """

    scope: str
    name: str
    value: str
    line: int
    path: str = attrs.field(default="", eq=False)
    hyphens: bool = attrs.field(default=False, eq=False)


def read(path: Path) -> tuple[Setting, ...]:
    """Return the settings of a file, in their order. Raises FlatFileError, and OSError if it cannot be read."""
    try:
        return tuple(parse(machine.read_text(path), str(path)))
    except UnicodeDecodeError:
        raise FlatFileError(f"{path} is not a UTF-8 text of scope, option and value lines") from None


def parse(text: str, where: str) -> Iterator[Setting]:
    """Yield the settings of a text; `where` names it in errors. Raises FlatFileError."""
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.partition("#")[0].split(None, 2)
        if not words:
            continue
        if len(words) < 3:
            raise FlatFileError(f"{where}:{number}: '{raw.strip()}' is not a setting: write scope option value")
        scope = words[0].lower()
        if scope not in SCOPES:
            raise FlatFileError(f"{where}:{number}: there is no scope '{words[0]}': write one of {', '.join(SCOPES)}")
        yield Setting(scope, words[1].lower(), words[2].strip(), number, where)
