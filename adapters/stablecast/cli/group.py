"""How a group of commands shows itself: every summary whole, in the order that somebody new needs them."""

from typing import Any

from typer.core import TyperGroup

WHOLE = 1_000
"""Characters of a summary that are shown: all of them, on as many lines as they take."""


class Group(TyperGroup):
    """A group whose help cuts no summary short."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        names = self.list_commands(ctx)
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands[name].get_short_help_str(WHOLE)) for name in names])
