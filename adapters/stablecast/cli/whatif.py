"""`stablecast whatif`: a recorded source under another configuration."""

from pathlib import Path
from typing import Annotated

import typer

Paths = Annotated[list[Path], typer.Argument(help="Traces of sources, directories of traces, or patterns.")]
Set = Annotated[list[str] | None, typer.Option("--set", help="name=value of a source's option; several times.")]
Sweep = Annotated[
    list[str] | None, typer.Option("--sweep", help="name=value,value of a source's option; all combinations are tried.")
]
Master = Annotated[
    str | None, typer.Option(help="Spread a sweep over this Spark: local[*], spark://host:port; default: processes.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def whatif_command(
    paths: Paths, options: Set = None, sweep: Sweep = None, master: Master = None, as_json: Json = False
) -> None:
    """Run recorded sources again under other configurations; compare latency and what is exposed meanwhile."""
    from stablecast.config.options import parse_options
    from stablecast.evidence.whatif import command
    from stablecast.text.console import say

    swept = {name: str(values).split(",") for name, values in parse_options(sweep or []).items()}
    job = command.WhatIfJob(paths, parse_options(options or []), swept, master)
    raise typer.Exit(command.run(job, as_json, say))
