"""`stablecast store`: run a daemon, or do something to its files; and `stablecast check`.

The first word decides: a command of the group, or else what `run` is given, so `stablecast store CONFIG` runs a daemon.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from stablecast.cli.group import Group
from stablecast.config.option_names import PROFILES, SAFE

RUN = "run"


class RunByDefault(Group):
    """A group whose first word may be the argument of its command `run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command there that is left out."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [RUN, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=RunByDefault,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Run a store daemon, `stablecast store CONFIG` or `stablecast store DIRECTORY`; see also `run --help`.",
)


Where = Annotated[
    Path | None, typer.Argument(help="A configuration file (XML or TOML), or the directory of one store's journal.")
]
Listen = Annotated[str, typer.Option(help="With a directory: ip:port to listen at; port 0: any.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="With a directory: name=value of an option; several times.")
]
New = Annotated[bool, typer.Option("--new", help="An empty directory is that of a new store: serve at once.")]
Resolvers = Annotated[
    list[str] | None, typer.Option("--resolver", help="With a directory: ip:port of an lbmrd relay; several times.")
]
Services = Annotated[
    list[str] | None, typer.Option("--resolver-service", help="With a directory: host:port of an SRS; several times.")
]
Profile = Annotated[str, typer.Option("--profile", help=f"Defaults of the options: {', '.join(PROFILES)}.")]
Trace = Annotated[Path | None, typer.Option("--trace", help="Directory for traces.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@app.command(RUN)
def run_command(
    where: Where = None,
    dump_dtd: Annotated[bool, typer.Option("--dump-dtd", "-d", help="Print the document type and exit.")] = False,
    validate: Annotated[bool, typer.Option("--validate", "-v", help="Only check the configuration file.")] = False,
    detach: Annotated[bool, typer.Option("--detach", "-f", help="Go on in a process without a terminal.")] = False,
    listen: Listen = "127.0.0.1:14567",
    option: Options = None,
    new: New = False,
    resolver: Resolvers = None,
    service: Services = None,
    profile: Profile = SAFE,
    trace: Trace = None,
    as_json: Json = False,
) -> None:
    """Run until interrupted; a second interrupt ends it at once."""
    from stablecast.cli import daemons

    if dump_dtd:
        raise typer.Exit(daemons.dump())
    if where is None:
        raise typer.BadParameter("give a configuration file, or the directory of a store")
    if validate:
        raise typer.Exit(daemons.validate(where, profile, as_json))
    if where.is_file() or where.suffix in (".xml", ".toml"):
        raise typer.Exit(daemons.run_daemon(daemons.DaemonJob(where, profile, detach, new, trace, as_json)))
    job = daemons.StoreJob(where, listen, option or [], new, resolver or [], service or [], profile, trace, as_json)
    raise typer.Exit(daemons.run_store(job))


def check_command(
    files: Annotated[
        list[Path], typer.Argument(help="Configurations of store daemons (XML, TOML) and option files of clients.")
    ],
    profile: Profile = SAFE,
    as_json: Json = False,
) -> None:
    """Explain what in configurations does not go together, alone and with each other."""
    from stablecast.cli import check

    raise typer.Exit(check.run(files, profile, as_json))
