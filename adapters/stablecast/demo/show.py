"""What a person sees of the demo, and what a machine reads."""

import asyncio
import json
import sys
from pathlib import Path

import attrs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from stablecast.cli.common import run_loop
from stablecast.demo.run import Demo, Outcome, workplace

REFRESH_SECONDS = 0.1


def run(messages: int, seed: int, keep: Path | None, as_json: bool) -> int:
    """Run the demo, show its progress on standard error; returns the exit status."""
    console = Console(stderr=True)
    place = workplace(keep)
    try:
        directory = Path(place.name) if place is not None else keep
        assert directory is not None
        outcome = run_loop(_watch(Demo(messages, seed, directory), console))
    finally:
        if place is not None:
            place.cleanup()
    if as_json:
        print(json.dumps(attrs.asdict(outcome)))
    else:
        Console().print(_table(outcome))
    if not outcome.good:
        print("stablecast: the demo found something wrong; run it with --keep and look at the traces", file=sys.stderr)
    return 0 if outcome.good else 1


async def _watch(demo: Demo, console: Console) -> Outcome:
    columns = (
        TextColumn("{task.description:>9}"),
        BarColumn(bar_width=36),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[stage]}"),
    )
    with Progress(*columns, console=console) as progress:
        bars = {
            name: progress.add_task(name, total=demo.messages, stage="") for name in ("sent", "stable", "delivered")
        }
        running = asyncio.get_running_loop().create_task(demo.run())
        while not running.done():
            for name, bar in bars.items():
                stage = demo.stage if name == "delivered" else ""
                progress.update(bar, completed=getattr(demo.progress, name), stage=stage)
            await asyncio.wait({running}, timeout=REFRESH_SECONDS)
        outcome = await running
        for name, bar in bars.items():
            progress.update(bar, completed=getattr(demo.progress, name), stage="")
        return outcome


def _table(outcome: Outcome) -> Table:
    table = Table(title="stablecast demo", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    verdict = "[green]every message arrived[/]" if outcome.good else "[red]something is wrong[/]"
    crashes = ", ".join(f"{kind} {count}x" for kind, count in outcome.crashes.items())
    table.add_row("verdict", verdict)
    table.add_row("sent", f"{outcome.sent} messages to three stores and one receiver")
    table.add_row("delivered", f"{outcome.delivered}, lost {outcome.lost}, processed twice {outcome.duplicates}")
    table.add_row("redelivered", f"{outcome.redelivered} after crashes, told apart by the receiver's own file")
    table.add_row("kill -9", crashes)
    judged = f"{outcome.records} records in {len(outcome.traces)} traces, {outcome.violations} violations"
    table.add_row("replayed", judged)
    return table
