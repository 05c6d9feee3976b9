"""What a person sees of the demo, and what a machine reads."""

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from stablecast.core.errors import StablecastError
from stablecast.lab.demo.outcome import Outcome
from stablecast.lab.demo.run import Demo, DemoError
from stablecast.runtime.event_loop import on_ending
from stablecast.text import plural
from stablecast.text.console import say

REFRESHES = 10
"""Pictures per second."""

MAX_PROBLEMS = 5
"""Problems that are listed for people; the JSON object has all."""


def run(messages: int, seconds: float, seed: int, keep: Path | None, as_json: bool) -> int:
    """Run the demo, show its progress on standard error, its result on standard output; returns the exit status.

    Raises:
        DemoError, ChildError: It did not come to a good end; the message says what is wrong and what it left where.
    """
    console = Console(stderr=True, highlight=False, quiet=as_json and not sys.stderr.isatty())
    with workplace(keep) as directory:
        started = time.monotonic()
        demo = Demo(messages, seconds, seed, directory, lambda text: console.print(_when(started), text))
        with Live(View(demo, started), console=console, refresh_per_second=REFRESHES, transient=True):
            _run(demo)
            outcome = demo.judge()
        if as_json:
            say(attrs.asdict(outcome))
        else:
            Console(highlight=False).print(_table(outcome))
        if not outcome.good:
            raise DemoError("; ".join(outcome.problems[:MAX_PROBLEMS]) or "there is no trace to judge")
    return 0


@contextmanager
def workplace(keep: Path | None) -> Iterator[Path]:
    """A directory that goes away at the end unless somebody wants to look into it: the user, or whoever seeks a fault.

    Raises DemoError if the directory to keep is in use, and with the place added if the body raises a StablecastError.
    """
    place = keep or Path(tempfile.mkdtemp(prefix="stablecast-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise DemoError(f"the directory {place} is not empty: name a new one")
    kept = keep is not None
    try:
        yield place
    except StablecastError as error:
        kept = True
        raise DemoError(f"{error}; stores, traces and logs are in {place}") from error
    finally:
        if not kept:
            shutil.rmtree(place)


def _run(demo: Demo) -> None:
    """Run it to its end. Raises KeyboardInterrupt when it was told to end."""
    try:
        asyncio.run(_interruptible(demo))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _interruptible(demo: Demo) -> None:
    """Run it; whoever hangs up or asks for the end interrupts."""
    running = asyncio.current_task()
    assert running is not None
    on_ending(running.cancel)
    await demo.run()


def _when(started: float) -> str:
    return f"{time.monotonic() - started:6.1f} s "


class View:
    """The state of a demo as a picture, anew whenever it is drawn."""

    def __init__(self, demo: Demo, started: float) -> None:
        """Show a demo that started at this reading of `time.monotonic`."""
        self._demo = demo
        self._started = started

    def __rich__(self) -> Table:
        demo, progress = self._demo, self._demo.progress
        grid = Table.grid(padding=(0, 1))
        grid.add_column(justify="right", min_width=9)
        for name, done in (("sent", progress.sent), ("stable", progress.stable), ("delivered", progress.delivered)):
            grid.add_row(name, ProgressBar(demo.messages, done, width=40), f"{done}/{demo.messages}")
        grid.add_row(_when(self._started), demo.stage)
        return grid


def _table(outcome: Outcome) -> Table:
    table = Table(title="stablecast demo", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    crashes = ", ".join(f"{kind} {count}x" for kind, count in outcome.crashes.items())
    table.add_row("verdict", "[green]every message arrived[/]" if outcome.good else "[red]something is wrong[/]")
    table.add_row("sent", f"{plural(outcome.sent, 'message')} to three stores and one receiver")
    table.add_row("kill -9", crashes)
    table.add_row("delivered", f"{outcome.delivered}, lost {outcome.lost}, processed twice {outcome.duplicates}")
    table.add_row("redelivered", f"{outcome.redelivered} after crashes, told apart by the receiver's own file")
    table.add_row(
        "replayed",
        f"{plural(outcome.records, 'record')}, {plural(len(outcome.traces), 'trace')}, "
        f"{plural(outcome.violations, 'violation')}",
    )
    return table
