"""Declare the options that several commands share, and the group class that prints whole summaries."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from stablecast.cli.examples import EXAMPLES
from stablecast.config.option_names import PROFILES

SUMMARY_CHARACTERS = 1_000
"""Longest summary of a command in help, in characters; typer would cut it at the width of the terminal."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Profile = Annotated[str, typer.Option("--profile", help=f"Profile that sets default values: {', '.join(PROFILES)}.")]
Trace = Annotated[Path | None, typer.Option("--trace", help="Write traces to this directory.")]
TracePaths = Annotated[list[Path], typer.Argument(help="Traces, directories of traces, or patterns.")]


class CommandGroup(TyperGroup):
    """Print the whole summary of every command, and an example of each."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name, with its example below its help; None if there is none."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and not command.epilog:
            names, at = [cmd_name], ctx
            while at.parent is not None:  # The program itself may have any name.
                names.insert(0, at.info_name)
                at = at.parent
            shown = EXAMPLES.get(" ".join(names), "")
            # The first character keeps the line as it is: click would fill it.
            command.epilog = f"\b\nExample:\n  {shown}" if shown else None
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        names = self.list_commands(ctx)
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands[name].get_short_help_str(SUMMARY_CHARACTERS)) for name in names])
