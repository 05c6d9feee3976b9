"""`stablecast verify FILE...`: what it prints and how it ends."""

import json
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from stablecast.trace.reports import FileReport, Summary
from stablecast.trace.verify import verify_paths


def run_verify(paths: list[Path], as_json: bool) -> int:
    """Verifies traces, prints the outcome, and returns the exit status: 0 only if every trace is whole and clean.

    The outcome goes to stdout; a sentence about each file that cannot be read to its end goes to stderr.
    """
    columns = (SpinnerColumn(), TextColumn("{task.completed:.0f} records"), TimeElapsedColumn())
    console = Console(stderr=True)
    quiet = as_json or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as progress:
        task = progress.add_task("verify", total=None)
        summary = verify_paths(paths, lambda count: progress.advance(task, count))
    if as_json:
        typer.echo(json.dumps(summary.as_json()))
    else:
        _print(summary)
    for report in summary.files:
        if report.error is not None:
            typer.echo(report.error, err=True)
    return 0 if summary.clean else 1


def _print(summary: Summary) -> None:
    for report in summary.files:
        typer.echo(_sentence(report))
        for violation in report.violations:
            typer.echo(f"  {violation.rule}: {violation.text}")
    typer.echo(f"{summary.records} records in {len(summary.files)} files, {len(summary.violations)} violations")


def _sentence(report: FileReport) -> str:
    verdict = "unreadable" if report.error is not None else "clean" if report.clean else "VIOLATED"
    notes = [f"{report.records} records"]
    if report.gaps:
        notes.append(f"{report.gaps} dropped by the recorder")
    if report.frames and not report.closed:
        notes.append("not closed, its process was killed")
    who = f"{report.role} {report.endpoint}: " if report.role else ""
    return f"{report.path}: {verdict}: {who}{', '.join(notes)}"
