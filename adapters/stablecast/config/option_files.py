"""Option files of clients and daemons: `scope option value` lines (P-850).

`#` begins a comment. Case does not matter in scope and option. Later lines override earlier ones; lines of list options
append.
"""

from pathlib import Path

import attrs

from stablecast.config.findings import ConfigFileError, ConfigPlace, ConfigProblem, read_text

SCOPES = ("context", "source", "receiver", "wildcard_receiver", "event_queue", "hfx")


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

    @property
    def place(self) -> ConfigPlace:
        return ConfigPlace(self.line, self.name, self.path)


@attrs.frozen
class OptionFile:
    """The settings of a file in their order, and a problem for each line that is none."""

    settings: tuple[Setting, ...]
    problems: tuple[ConfigProblem, ...] = ()


def read(path: Path) -> OptionFile:
    """Return the lines of a file. Raises ConfigFileError if it is no text, and OSError if it cannot be read."""
    try:
        return parse(read_text(path), str(path))
    except UnicodeDecodeError:
        text = "this is not a UTF-8 text of scope, option and value lines"
        raise ConfigFileError(str(path), [ConfigProblem(ConfigPlace(), text)]) from None


def parse(text: str, where: str) -> OptionFile:
    """Return the lines of a text; `where` names it in problems. A line without a value sets an empty one."""
    settings, problems = [], []
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.partition("#")[0].split(None, 2)
        if not words:
            continue
        scope, name, value = [*words, "", ""][:3]
        if not name:
            problem = f"'{raw.strip()}' is not a setting: write scope option value"
        elif scope.lower() not in SCOPES:
            problem = f"there is no scope '{scope}': write one of {', '.join(SCOPES)}"
        else:
            settings.append(Setting(scope.lower(), name.lower(), value.strip(), number, where))
            continue
        problems.append(ConfigProblem(ConfigPlace(number, scope, where), problem))
    return OptionFile(tuple(settings), tuple(problems))
