"""Write the manual pages of all commands from their help, for `stablecast manual`.

The pages are made from the declarations of the commands when they are asked for, so that they are never out of date.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stablecast.cli.examples import EXAMPLES
from stablecast.runtime import machine
from stablecast.text.console import say

SECTION = 1
"""The section of the manual for commands of users."""

EXIT_STATUS = "0 means success. Any other status means failure; the message names what failed and what to do."


def run(command: Any, directory: Path) -> int:
    """Write the pages of a command and those below it into a directory; return the exit status.

    The directory is made if it is missing.
    """
    machine.files.make_directories(directory)
    written = 0
    for name, text in pages(command):
        machine.files.write_bytes(directory / name, text.encode())
        written += 1
    say(f"{written} manual pages in {directory}; read one with: man {directory / f'stablecast.{SECTION}'}")
    return 0


def pages(command: Any) -> Iterator[tuple[str, str]]:
    """Yield file name and text of each page: the program, its commands, and their commands."""
    yield from _pages(command, ("stablecast",), None)


def _pages(command: Any, path: tuple[str, ...], parent: Any) -> Iterator[tuple[str, str]]:
    with command.make_context(path[-1], [], parent=parent, resilient_parsing=True) as context:
        yield f"{'-'.join(path)}.{SECTION}", _page(command, path, context)
        below = getattr(command, "commands", {})
        for name in command.list_commands(context) if below else ():
            yield from _pages(below[name], (*path, name), context)


def _page(command: Any, path: tuple[str, ...], context: Any) -> str:
    summary = command.get_short_help_str(limit=1_000).rstrip(".")
    lines = [
        f'.TH "{"-".join(path).upper()}" "{SECTION}" "" "stablecast" "stablecast manual"',
        ".SH NAME",
        f"{'-'.join(path)} \\- {_text(summary)}",
        ".SH SYNOPSIS",
        f".B {' '.join(path)}",
        _text(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        _text(command.help or summary),
    ]
    records = [(parameter.param_type_name, parameter.get_help_record(context)) for parameter in _parameters(command)]
    for kind, title in (("argument", "ARGUMENTS"), ("option", "OPTIONS")):
        lines += _section(title, [record for of, record in records if of == kind and record is not None])
    below = getattr(command, "commands", {})
    names = command.list_commands(context) if below else []
    lines += _section("COMMANDS", [(name, below[name].get_short_help_str(1_000)) for name in names])
    if shown := EXAMPLES.get(" ".join(path[1:]), ""):
        lines += [".SH EXAMPLE", ".nf", _text(shown), ".fi"]
    lines += [".SH EXIT STATUS", _text(EXIT_STATUS)]
    lines += _others(path, names)
    return "\n".join(lines) + "\n"


def _parameters(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]


def _section(title: str, records: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a section with a paragraph for each record: its term and its text."""
    for place, (term, text) in enumerate(records):
        if place == 0:
            yield f".SH {title}"
        yield ".TP"
        yield f".B {_text(term)}"
        yield _text(text) or "Required."


def _others(path: tuple[str, ...], names: Iterable[str]) -> list[str]:
    """Return the references to the pages above and below."""
    others = ["-".join((*path, name)) for name in names]
    if len(path) > 1:
        others.insert(0, "-".join(path[:-1]))
    return [".SH SEE ALSO", ", ".join(f"{_text(other)}({SECTION})" for other in others)] if others else []


def _text(text: str) -> str:
    r"""Return plain text for man(7): one paragraph, in which nothing is a request or an escape.

    >>> print(_text(r".a line with a dot, a --flag and a \ in it"))
    \&.a line with a dot, a \-\-flag and a \e in it
    """
    plain = re.sub(r"\s+", " ", text).strip().replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return f"\\&{plain}" if plain[:1] in {".", "'"} else plain
