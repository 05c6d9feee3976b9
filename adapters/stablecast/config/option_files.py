"""Option files of clients and daemons: `scope option value` lines (P-850).

`#` begins a comment. Scope and option are read in whatever case they are written. Later lines win, but those of lists,
which append.
"""

from collections.abc import Iterator
from pathlib import Path

import attrs

from stablecast.core.errors import StablecastError

SCOPES = ("context", "source", "receiver", "wildcard_receiver", "event_queue", "hfx")


class FlatFileError(StablecastError):
    """A line that is none; the message names file, line and form."""


@attrs.frozen
class Setting:
    """One line: its scope, option and value, and where it stands."""

    scope: str
    name: str
    value: str
    line: int


def read(path: Path) -> tuple[Setting, ...]:
    """The settings of a file, in their order. Raises FlatFileError, and OSError if it cannot be read."""
    try:
        return tuple(parse(path.read_text(encoding="utf-8"), str(path)))
    except UnicodeDecodeError:
        raise FlatFileError(f"{path} is not a text of scope, option and value lines") from None


def parse(text: str, where: str) -> Iterator[Setting]:
    """The settings of a text. Raises FlatFileError."""
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.partition("#")[0].split(None, 2)
        if not words:
            continue
        if len(words) < 3:
            raise FlatFileError(f"{where}:{number}: '{raw.strip()}' is not a setting: write scope option value")
        scope = words[0].lower()
        if scope not in SCOPES:
            raise FlatFileError(f"{where}:{number}: there is no scope '{words[0]}': write one of {', '.join(SCOPES)}")
        yield Setting(scope, words[1].lower(), words[2].strip(), number)
