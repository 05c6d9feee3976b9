"""Declare `stablecast trace`, the tools that show and compare traces."""

from pathlib import Path
from typing import Annotated

import typer

from stablecast.cli.declarations import CommandGroup, Json, TracePaths
from stablecast.core.machine.units import SECOND

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, help="Print, compare, count, prune and step through traces.")

Endpoint = Annotated[str | None, typer.Option(help="Part of the endpoint's role or name.")]
Since = Annotated[float | None, typer.Option(help="Earliest time, in seconds on the endpoint's clock.")]
Until = Annotated[float | None, typer.Option(help="Latest time, in seconds on the endpoint's clock.")]


@app.command("dump")
def dump_command(
    paths: TracePaths,
    endpoint: Endpoint = None,
    kind: Annotated[str | None, typer.Option(help="Part of the name of an input, effect, message or event.")] = None,
    since: Since = None,
    until: Until = None,
    number: Annotated[int | None, typer.Option(help="Sequence number that records must contain.")] = None,
    as_json: Json = False,
) -> None:
    """Print each input and its effects; with --json a line for each record."""
    from stablecast.evidence.trace.tools import command
    from stablecast.evidence.trace.tools.records import RecordFilter

    wanted = RecordFilter(endpoint, _ns(since), _ns(until), kind, number)
    raise typer.Exit(command.run_dump(paths, wanted, as_json))


@app.command("diff")
def diff_command(
    left: Path,
    right: Path,
    times: Annotated[bool, typer.Option("--times", help="Compare the times, too.")] = False,
    as_json: Json = False,
) -> None:
    """Print the first difference of two runs for each endpoint; exit with 1 if there is one."""
    from stablecast.evidence.trace.tools import command

    raise typer.Exit(command.run_diff(left, right, times, as_json))


@app.command("analyze")
def analyze_command(paths: TracePaths, as_json: Json = False) -> None:
    """Print the counts and latencies of each trace."""
    from stablecast.evidence.trace.tools import command

    raise typer.Exit(command.run_analyze(paths, as_json))


@app.command("prune")
def prune_command(
    paths: TracePaths,
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for the copies.")],
    endpoint: Endpoint = None,
    since: Since = None,
    until: Until = None,
    as_json: Json = False,
) -> None:
    """Copy the selected frames to new traces that `verify` accepts."""
    from stablecast.evidence.trace.tools import command
    from stablecast.evidence.trace.tools.records import TraceWindow

    raise typer.Exit(command.run_prune(paths, output, TraceWindow(endpoint, _ns(since), _ns(until)), as_json))


@app.command("why")
def why_command(
    number: Annotated[int, typer.Argument(help="Sequence number of the message.")], paths: TracePaths
) -> None:
    """Follow a message through all traces, from sent to stable to consumed."""
    from stablecast.evidence.trace.tools import command

    raise typer.Exit(command.run_why(paths, number))


@app.command("open")
def open_command(paths: TracePaths) -> None:
    """Step through traces, record by record; read commands from the terminal or from standard input."""
    from stablecast.evidence.trace.tools import command

    raise typer.Exit(command.run_open(paths))


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * SECOND)
