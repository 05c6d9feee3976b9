"""Lines, tables and progress on the terminal: standard error is for people, standard output for programs."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from stablecast.runtime import machine

if TYPE_CHECKING:
    from rich.console import Console

FILE_COLUMNS = 160
"""Width of a table in a file or a pipe, in columns, unless COLUMNS is set."""


def say(line: object) -> None:
    """Print one line on standard output and flush it: text as it is, other objects as JSON."""
    _print_whole(line if isinstance(line, str) else json.dumps(line), machine.process.output())


def show(value: object, lines: Iterable[str], as_json: bool) -> None:
    """Print an object as JSON for machines, or else its lines for people."""
    for line in [value] if as_json else lines:
        say(line)


def note(line: str) -> None:
    """Print one line for people on standard error and flush it."""
    _print_whole(line, machine.process.errors())


def _print_whole(line: str, stream: TextIO) -> None:
    """Print text and newline in one write: under PYTHONUNBUFFERED another thread's line would come between two."""
    stream.write(line + "\n")
    stream.flush()


def printer() -> "Console":
    """Return a console for tables: as wide as the terminal, or `FILE_COLUMNS` wide without one."""
    from rich.console import Console  # noqa: PLC0415 - slow to import, and few commands need it

    return Console(
        width=None if machine.process.output().isatty() or "COLUMNS" in machine.process.environment else FILE_COLUMNS
    )


@contextmanager
def spinning(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show a progress line on the terminal while the body runs; the body gets a function that sets its text.

    Nothing is shown if `quiet` is true or standard error is no terminal.
    """
    from rich.console import Console  # noqa: PLC0415 - slow to import, and few commands take long
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as shown:
        task = shown.add_task("", total=None)
        yield lambda text: shown.update(task, description=text)
