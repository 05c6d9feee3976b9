"""Show the demo to people, and print its result."""

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
from stablecast.lab.demo.run import Demo, DemoError, DemoOutcome
from stablecast.runtime.event_loop import on_ending
from stablecast.text import plural
from stablecast.text.console import say

REFRESHES = 10
"""Refreshes per second."""

MAX_PROBLEMS = 5
"""Most problems that are listed for people; JSON has all."""


def run(messages: int, seconds: float, seed: int, keep: Path | None, as_json: bool) -> int:
    """Run the demo, show progress on standard error, print the result on standard output; return the exit status.

    Raises:
        DemoError, ChildError: the demo failed. The message says why and where its files are.
    """
    console = Console(stderr=True, highlight=False, quiet=as_json and not sys.stderr.isatty())
    with workplace(keep) as directory:
        started = time.monotonic()
        demo = Demo(messages, seconds, seed, directory, lambda text: console.print(_when(started), text))
        with Live(DemoView(demo, started), console=console, refresh_per_second=REFRESHES, transient=True):
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
    """Yield a directory that is removed at the end, unless the user keeps it or the demo fails.

    Raises DemoError if the directory to keep is in use. A StablecastError of the body becomes a DemoError that names
    the place.
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
    """Run the demo. Raises KeyboardInterrupt when it was interrupted."""
    try:
        asyncio.run(_interruptible(demo))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _interruptible(demo: Demo) -> None:
    """Run the demo until its end or a signal."""
    running = asyncio.current_task()
    assert running is not None
    on_ending(running.cancel)
    await demo.run()


def _when(started: float) -> str:
    return f"{time.monotonic() - started:6.1f} s "


class DemoView:
    """Draw the state of a demo."""

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


def _table(outcome: DemoOutcome) -> Table:
    table = Table(title="stablecast demo", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    crashes = ", ".join(f"{kind} {count}x" for kind, count in outcome.crashes.items())
    table.add_row("verdict", "[green]every message arrived[/]" if outcome.good else "[red]failed[/]")
    table.add_row("sent", f"{plural(outcome.sent, 'message')} to three stores and one receiver")
    table.add_row("kill -9", crashes)
    table.add_row("delivered", f"{outcome.delivered}, lost {outcome.lost}, processed twice {outcome.duplicates}")
    table.add_row("redelivered", f"{outcome.redelivered} after crashes, recognized in the receiver's own file")
    table.add_row(
        "replayed",
        f"{plural(outcome.records, 'record')}, {plural(len(outcome.traces), 'trace')}, "
        f"{plural(outcome.violations, 'violation')}",
    )
    return table
