"""Declare `stablecast prove`, which searches for a failure of one configuration."""

from pathlib import Path
from typing import Annotated

import typer

from stablecast.cli.declarations import Json, Profile
from stablecast.config.option_names import SAFE
from stablecast.lab.prove.bounds import MAX_STATES, ProofFault

Configs = Annotated[
    list[Path] | None, typer.Argument(help="Option files, XML or TOML files with options; later files override.")
]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="name=value of a source's option. Repeatable.")
]
Messages = Annotated[
    int, typer.Option("--messages", help="Messages to send; 0: two, or one with more than three stores.", min=0, max=4)
]
Restarts = Annotated[int, typer.Option("--restarts", help="Restarts of the source.", min=0, max=4)]
Wipes = Annotated[int, typer.Option("--wipes", help="Number of disks that are lost.", min=0, max=8)]
Faults = Annotated[
    str,
    typer.Option(
        "--faults",
        help="Two live processes with one RegID: rival (one is partitioned), twin (two sources of one context); wipe "
        "(one disk after the other is lost); none, or several with commas. Default: rival,twin, with one message, if "
        "there are at most three stores.",
    ),
]
Application = Annotated[str, typer.Option("--application", help="Application of XML files.")]
ContextName = Annotated[str, typer.Option("--context", help="Context of that application.")]
Topic = Annotated[str, typer.Option("--topic", help="Topic whose section of XML or TOML files counts; default: none.")]
Refill = Annotated[
    bool | None,
    typer.Option("--refill/--no-refill", help="Stores refill from each other after a wipe; default: as the profile."),
]
Bound = Annotated[int, typer.Option("--bound", help="Maximum number of states to explore.", min=1)]


def prove_command(
    configs: Configs = None,
    option: Options = None,
    profile: Profile = SAFE,
    messages: Messages = 0,
    restarts: Restarts = 1,
    wipes: Wipes = 0,
    faults: Faults = "",
    refill: Refill = None,
    bound: Bound = MAX_STATES,
    application: Application = "",
    context: ContextName = "",
    topic: Topic = "",
    as_json: Json = False,
) -> None:
    """Search for the shortest run in which a source with this configuration loses a stable message or stalls."""
    from stablecast.lab.prove import command
    from stablecast.lab.prove.instance import ProofBounds
    from stablecast.text.console import note, say

    bounds = ProofBounds(messages, restarts, wipes, bound, _faults(faults))
    job = command.ProofJob(
        configs or [], option or [], profile, bounds, as_json, (application, context), topic or None, refill
    )
    raise typer.Exit(command.run(job, say, note))


def _faults(words: str) -> tuple[ProofFault, ...] | None:
    if not words:
        return None
    named = [word.strip() for word in words.split(",") if word.strip() != "none"]
    unknown = sorted(set(named) - set(ProofFault))
    if unknown:
        raise typer.BadParameter(
            f"there is no fault {unknown[0]}: write rival, twin, wipe or none", param_hint="--faults"
        )
    return tuple(fault for fault in ProofFault if fault in named)
