"""Declare `stablecast testing`, the tools for tests that run in worlds."""

from pathlib import Path
from typing import Annotated

import typer

from stablecast.cli.declarations import CommandGroup, TracePaths
from stablecast.runtime import machine
from stablecast.text import plural
from stablecast.text.console import say

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, help="Make tests that run in simulated worlds.")

Part = "MODULE:FUNCTION"


@app.command("from-traces")
def from_traces_command(
    paths: TracePaths,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: print it.")] = None,
    application: Annotated[str, typer.Option(metavar=Part, help="Coroutine function of your application.")] = "",
    payload: Annotated[str, typer.Option(metavar=Part, help="Returns the payload of (topic, number, size).")] = "",
    check: Annotated[str, typer.Option(metavar=Part, help="Asserts, given (world, sent payloads).")] = "",
) -> None:
    """Write a test that plays a recorded run of an application again: its messages, crashes and restarts."""
    from stablecast.testing.generated_test import UserParts, text_of
    from stablecast.testing.recorded_run import read_run

    run = read_run(paths)
    text = text_of(run, UserParts(application, payload, check))
    if output is None:
        say(text.removesuffix("\n"))
        return
    machine.files.write_bytes(output, text.encode())
    say(f"{output}: {plural(len(run.messages), 'message')}, {plural(len(run.crashes), 'restart')}")
