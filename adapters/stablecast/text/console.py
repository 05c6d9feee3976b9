"""Lines, tables and progress on the terminal; people read standard error, programs standard output."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

FILE_COLUMNS = 160
"""Width of tables in a file or a pipe, in columns, unless COLUMNS is set."""


def say(line: object) -> None:
    """One line on standard output, at once: a text as it is, anything else as JSON."""
    print(line if isinstance(line, str) else json.dumps(line), flush=True)


def note(line: str) -> None:
    """One line for people on standard error."""
    print(line, file=sys.stderr, flush=True)


def printer() -> "Console":
    """What prints tables, as wide as the terminal."""
    from rich.console import Console  # noqa: PLC0415 - slow to import, and few commands need it

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else FILE_COLUMNS)


@contextmanager
def spinning(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line on the terminal that says what goes on, as long as it does; none where there is no terminal."""
    from rich.console import Console  # noqa: PLC0415 - slow to import, and few commands take long
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as shown:
        task = shown.add_task("", total=None)
        yield lambda text: shown.update(task, description=text)
