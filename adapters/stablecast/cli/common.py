"""What several commands share."""

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from stablecast.config.options import OptionError, Value

if TYPE_CHECKING:
    from rich.console import Console

NEW_LOOP: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
try:
    import uvloop
except ImportError:
    pass  # optional at run time
else:
    NEW_LOOP = uvloop.new_event_loop

ResultT = TypeVar("ResultT")

USUAL_YOUNG = 700
"""New objects until a daemon that runs looks for garbage: the interpreter's own default."""


def run_loop(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine, on uvloop where it is installed."""
    with asyncio.Runner(loop_factory=NEW_LOOP) as runner:
        return runner.run(main)


def run_for_good(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run the coroutine of a daemon.

    What was loaded by now is never garbage, and not looked through for any: that would hold up everything for 30 ms.
    """
    gc.freeze()
    gc.set_threshold(USUAL_YOUNG, *gc.get_threshold()[1:])
    return run_loop(main)


def on_ending(callback: Callable[[], object]) -> None:
    """Call back whenever a signal asks the program to end: Ctrl-C, SIGTERM, or the end of its terminal.

    Where a hang-up is ignored (under nohup, in a daemon that is detached) it stays ignored.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, callback)


async def until_interrupted() -> None:
    """Wait until a signal asks for the end."""
    ended = asyncio.Event()
    on_ending(ended.set)
    await ended.wait()


def parse_options(texts: Iterable[str]) -> dict[str, Value]:
    """`name=value` texts as options. Raises OptionError."""
    options: dict[str, Value] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"'{text}' is not an option: write name=value")
        options[name] = value
    return options


def say(line: object) -> None:
    """One line on standard output, at once: a text as it is, anything else as JSON."""
    print(line if isinstance(line, str) else json.dumps(line), flush=True)


def note(line: str) -> None:
    """One line for people on standard error."""
    print(line, file=sys.stderr, flush=True)


FILE_COLUMNS = 160
"""How wide tables are that go to a file or another program, unless COLUMNS says otherwise."""


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
