"""Declare the options that several commands share, and the group class that prints whole summaries."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from stablecast.config.option_names import PROFILES

SUMMARY_CHARACTERS = 1_000
"""Longest summary of a command in help, in characters; typer would cut it at the width of the terminal."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Profile = Annotated[str, typer.Option("--profile", help=f"Profile that sets default values: {', '.join(PROFILES)}.")]
Trace = Annotated[Path | None, typer.Option("--trace", help="Write traces to this directory.")]
TracePaths = Annotated[list[Path], typer.Argument(help="Traces, directories of traces, or patterns.")]


class CommandGroup(TyperGroup):
    """Print the whole summary of every command."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands to `formatter`."""
        names = self.list_commands(ctx)
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands[name].get_short_help_str(SUMMARY_CHARACTERS)) for name in names])
