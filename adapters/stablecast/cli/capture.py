"""Declare `stablecast capture`, which decodes and examines captures made by any capture program."""

from pathlib import Path
from typing import Annotated

import typer

from stablecast.cli.declarations import CommandGroup

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, help="Decode and examine captures of network traffic.")


@app.callback()
def captures() -> None:
    """Decode and examine captures of network traffic."""


@app.command("doctor")
def doctor_command(
    files: Annotated[list[Path], typer.Argument(help="Capture files, pcap or pcapng.")],
    port: Annotated[
        list[str] | None, typer.Option("--port", help="kind=port or kind=low-high, as for `decode`. Repeatable.")
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold", help="name=value from which on something is a finding, e.g. loss=0.01. Repeatable."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Find losses, slow recovery, unwanted topics and other troubles, and advise; exit with 1 if there are any."""
    from stablecast.evidence.verification import captures

    raise typer.Exit(captures.run_doctor(files, port or [], threshold or [], as_json))


@app.command("decode")
def decode_command(
    file: Annotated[Path, typer.Argument(help="A capture file, pcap or pcapng.")],
    port: Annotated[
        list[str] | None,
        typer.Option(
            "--port", help="kind=port or kind=low-high; kinds: lbmr, lbtrm, lbtru, lbttcp, store, srs. Repeatable."
        ),
    ] = None,
    roundtrip: Annotated[
        bool, typer.Option("--roundtrip", help="Encode every message again and compare the bytes.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    records: Annotated[
        bool, typer.Option("--records", help="Print each packet as a line of JSON, and the counts at the end.")
    ] = False,
) -> None:
    """Decode every layer and count messages; exit with 0 only if every stablecast packet could be decoded."""
    from stablecast.evidence.capture import command

    raise typer.Exit(command.run_decode(file, port or [], roundtrip, as_json, records))
