"""`stablecast capture`: captures of our traffic, made by any capture program."""

from pathlib import Path
from typing import Annotated

import typer

from stablecast.cli.group import Group

app = typer.Typer(cls=Group, no_args_is_help=True, help="Captures of traffic, decoded to the message.")


@app.callback()
def captures() -> None:
    """Captures of traffic, decoded to the message."""


@app.command("decode")
def decode_command(
    file: Annotated[Path, typer.Argument(help="A capture, pcap or pcapng.")],
    port: Annotated[
        list[str] | None,
        typer.Option(
            "--port", help="kind=port or kind=low-high; kinds: lbmr, lbtrm, lbtru, lbttcp, store, srs; several times."
        ),
    ] = None,
    roundtrip: Annotated[bool, typer.Option("--roundtrip", help="Encode everything again and compare.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON, for machines.")] = False,
    records: Annotated[
        bool, typer.Option("--records", help="Print each packet as JSON, a line each, and the counts at the end.")
    ] = False,
) -> None:
    """Decode every layer and count; ends with 0 only if all that is ours could be decoded."""
    from stablecast.evidence.capture import command  # imported when it is run

    raise typer.Exit(command.run_decode(file, port or [], roundtrip, as_json, records))
