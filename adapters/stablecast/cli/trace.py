"""`stablecast trace`: tools for people who look into traces."""

from pathlib import Path
from typing import Annotated

import typer

from stablecast.cli.group import Group
from stablecast.core.machine.units import SECOND

app = typer.Typer(
    cls=Group, no_args_is_help=True, help="Look into traces: dump, diff, analyze, prune, travel through time."
)


Paths = Annotated[list[Path], typer.Argument(help="Traces, directories of traces, or patterns.")]
Endpoint = Annotated[str | None, typer.Option(help="Part of the endpoint's role or name.")]
Since = Annotated[float | None, typer.Option(help="From this time on, seconds on the endpoint's clock.")]
Until = Annotated[float | None, typer.Option(help="Up to this time, seconds on the endpoint's clock.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@app.command("dump")
def dump_command(
    paths: Paths,
    endpoint: Endpoint = None,
    kind: Annotated[str | None, typer.Option(help="Part of the name of an input, effect, message or event.")] = None,
    since: Since = None,
    until: Until = None,
    number: Annotated[int | None, typer.Option(help="A sequence number that is named.")] = None,
    as_json: Json = False,
) -> None:
    """Print records: inputs and what came of them; with --json a line each."""
    from stablecast.evidence.trace.tools import command
    from stablecast.evidence.trace.tools.records import RecordFilter
    from stablecast.text.console import say

    wanted = RecordFilter(endpoint, kind, _ns(since), _ns(until), number)
    raise typer.Exit(command.run_dump(paths, wanted, as_json, say))


@app.command("diff")
def diff_command(
    left: Path,
    right: Path,
    times: Annotated[bool, typer.Option("--times", help="Times must be the same, too.")] = False,
    as_json: Json = False,
) -> None:
    """Where two runs part, endpoint by endpoint; exit status 1 if they do."""
    from stablecast.evidence.trace.tools import command
    from stablecast.text.console import say

    raise typer.Exit(command.run_diff(left, right, times, as_json, say))


@app.command("analyze")
def analyze_command(paths: Paths, as_json: Json = False) -> None:
    """Count what happened in each trace, and how long it took."""
    from stablecast.evidence.trace.tools import command
    from stablecast.text.console import say

    raise typer.Exit(command.run_analyze(paths, as_json, say))


@app.command("prune")
def prune_command(
    paths: Paths,
    output: Annotated[Path, typer.Option("--output", "-o", help="A new directory for what is left.")],
    endpoint: Endpoint = None,
    since: Since = None,
    until: Until = None,
    as_json: Json = False,
) -> None:
    """Copy only the frames that matter; the copies can be verified."""
    from stablecast.evidence.trace.tools import command
    from stablecast.evidence.trace.tools.prune import PruneWindow
    from stablecast.text.console import say

    raise typer.Exit(command.run_prune(paths, output, PruneWindow(endpoint, _ns(since), _ns(until)), as_json, say))


@app.command("why")
def why_command(number: Annotated[int, typer.Argument(help="A sequence number.")], paths: Paths) -> None:
    """What became of a message, from sent to stable to consumed, by all traces together."""
    from stablecast.evidence.trace.tools import command
    from stablecast.text.console import say

    raise typer.Exit(command.run_why(paths, number, say))


@app.command("open")
def open_command(paths: Paths) -> None:
    """Travel through time, record by record; takes commands from the terminal or from standard input."""
    from stablecast.evidence.trace.tools import command
    from stablecast.text.console import say

    raise typer.Exit(command.run_open(paths, say))


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * SECOND)
