"""`stablecast prove`: what an operator's configuration can come to."""

from pathlib import Path
from typing import Annotated

import typer

from stablecast.config.names import PROFILES, SAFE
from stablecast.prove.bounds import MAX_STATES

Configs = Annotated[list[Path] | None, typer.Argument(help="Files of `scope option value` lines; later ones override.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="name=value of a source's option; several times.")
]
Profile = Annotated[str, typer.Option("--profile", help=f"Defaults of the options: {', '.join(PROFILES)}.")]
Messages = Annotated[
    int, typer.Option("--messages", help="Messages sent; 0: two, or one with more than three stores.", min=0, max=4)
]
Restarts = Annotated[int, typer.Option("--restarts", help="Restarts of the source.", min=0, max=4)]
Wipes = Annotated[int, typer.Option("--wipes", help="Disks that are lost.", min=0, max=8)]
Bound = Annotated[int, typer.Option("--bound", help="States to look at.", min=1)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def prove_command(
    configs: Configs = None,
    option: Options = None,
    profile: Profile = SAFE,
    messages: Messages = 0,
    restarts: Restarts = 1,
    wipes: Wipes = 0,
    bound: Bound = MAX_STATES,
    as_json: Json = False,
) -> None:
    """Look for the shortest run in which a source of this configuration loses a stable message, or stalls."""
    from stablecast.cli.common import note, say
    from stablecast.prove import command
    from stablecast.prove.instance import Bounds

    bounds = Bounds(messages, restarts, wipes, bound)
    raise typer.Exit(command.run(command.Job(configs or [], option or [], profile, bounds, as_json), say, note))
