"""Declare `stablecast store` and its commands, `stablecast check` and `stablecast top`.

A first word that is no command of the group becomes the argument of `run`: `stablecast store CONFIG` runs a daemon.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from stablecast.cli.declarations import CommandGroup, Json, Profile, Trace
from stablecast.config.option_names import SAFE
from stablecast.runtime import machine

RUN = "run"


class RunByDefault(CommandGroup):
    """Run the command `run` if the first word names no command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the omitted command, then parse `args`."""
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

At = Annotated[str, typer.Argument(help="A store's directory, or its monitor: http://ip:port[/stores/N].")]
Token = Annotated[Path | None, typer.Option("--token-file", help="File with the monitor's token.")]
Where = Annotated[
    Path | None, typer.Argument(help="A configuration file (XML or TOML), or the directory of one store's journal.")
]
Listen = Annotated[str, typer.Option(help="With a directory: ip:port to listen at; port 0: any free port.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="With a directory: name=value of an option. Repeatable.")
]
New = Annotated[bool, typer.Option("--new", help="The store is new if its directory is empty: serve at once.")]
Resolvers = Annotated[
    list[str] | None, typer.Option("--resolver", help="With a directory: ip:port of an lbmrd relay. Repeatable.")
]
Services = Annotated[
    list[str] | None, typer.Option("--resolver-service", help="With a directory: host:port of an SRS. Repeatable.")
]


@app.command(RUN)
def run_command(
    where: Where = None,
    dump_dtd: Annotated[bool, typer.Option("--dump-dtd", "-d", help="Print the document type and exit.")] = False,
    validate: Annotated[bool, typer.Option("--validate", "-v", help="Check the configuration file and exit.")] = False,
    detach: Annotated[
        bool, typer.Option("--detach", "-f", help="Run in a background process without a terminal.")
    ] = False,
    listen: Listen = "127.0.0.1:14567",
    option: Options = None,
    new: New = False,
    resolver: Resolvers = None,
    service: Services = None,
    profile: Profile = SAFE,
    trace: Trace = None,
    as_json: Json = False,
) -> None:
    """Run a store until interrupted; a second interrupt ends the process at once."""
    from stablecast.cli import daemons

    if dump_dtd:
        raise typer.Exit(daemons.dump())
    if where is None:
        raise typer.BadParameter("name a configuration file, or the directory of a store")
    if validate:
        raise typer.Exit(daemons.validate(where, profile, as_json))
    if machine.files.is_file(where) or where.suffix in (".xml", ".toml"):
        raise typer.Exit(daemons.run_daemon(daemons.DaemonJob(where, profile, detach, new, trace, as_json)))
    job = daemons.StoreJob(where, listen, option or [], new, resolver or [], service or [], profile, trace, as_json)
    raise typer.Exit(daemons.run_store(job))


def check_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Configurations of stores, relays, services (XML, TOML), files of clients, and policy.toml."
        ),
    ],
    profile: Profile = SAFE,
    application: Annotated[
        str, typer.Option("--application", help="Application of XML files; default: the environment's, else each.")
    ] = "",
    context: Annotated[str, typer.Option("--context", help="Context of that application, likewise.")] = "",
    as_json: Json = False,
) -> None:
    """Report the contradictions in configuration files, in each file and between files."""
    from stablecast.cli import check

    raise typer.Exit(check.run(files, profile, as_json, application, context))


@app.command("inspect")
def inspect_command(where: At, token: Token = None, as_json: Json = False) -> None:
    """Show registered clients and held messages. Nothing is changed; the store may be running."""
    from stablecast.cli import store_operations

    raise typer.Exit(store_operations.inspect(where, token, as_json))


@app.command("scrub")
def scrub_command(where: At, token: Token = None, as_json: Json = False) -> None:
    """Verify every checksum of the files; exit with 1 if one is wrong. The store may be running."""
    from stablecast.cli import store_operations

    raise typer.Exit(store_operations.scrub(where, token, as_json))


@app.command("restore")
def restore_command(
    directory: Annotated[Path, typer.Argument(help="The directory of a store, restored from a backup.")],
    as_json: Json = False,
) -> None:
    """Declare that a directory is an older copy, before its store starts; the store then has no vote at first."""
    from stablecast.cli import store_operations

    raise typer.Exit(store_operations.declare("restore", directory, as_json))


@app.command("replace")
def replace_command(
    directory: Annotated[Path, typer.Argument(help="The empty directory on the new disk of a store that has served.")],
    as_json: Json = False,
) -> None:
    """Declare that an empty directory belongs to a store that has served, whatever `--new` says later."""
    from stablecast.cli import store_operations

    raise typer.Exit(store_operations.declare("replace", directory, as_json))


@app.command("recover")
def recover_command(where: At, token: Token = None, as_json: Json = False) -> None:
    """Report what a store knows, what it lost and what its next start does; at a monitor: what it still lacks."""
    from stablecast.cli import store_operations

    raise typer.Exit(store_operations.recover(where, token, as_json))


@app.command("downgrade-check")
def downgrade_check_command(
    directory: Annotated[Path, typer.Argument(help="The directory of a store's journal.")],
    to: Annotated[str | None, typer.Option(help="Release that is to read the directory, such as 0.1.0.")] = None,
    as_json: Json = False,
) -> None:
    """Report the oldest release that reads a directory; with --to: exit with 1 if that release does not."""
    from stablecast.cli import store_operations

    raise typer.Exit(store_operations.downgrade_check(directory, to, as_json))


@app.command("export")
def export_command(
    where: At,
    output: Annotated[
        str, typer.Option("--output", help="New .parquet or .jsonl.zst file, a folder by day: NAME/, or -.")
    ],
    source: Annotated[int | None, typer.Option(help="RegID of the only source to export.", min=1)] = None,
    first: Annotated[int | None, typer.Option(help="First sequence number.", min=0)] = None,
    last: Annotated[int | None, typer.Option(help="Last sequence number.", min=0)] = None,
    since: Annotated[str | None, typer.Option(help="Earliest arrival: 2026-01-31T12:00:00Z, or ns.")] = None,
    until: Annotated[str | None, typer.Option(help="Arrival before this time.")] = None,
    token: Token = None,
) -> None:
    """Write messages to a file, selected by number or by time. The store may be running."""
    from stablecast.cli import store_operations

    wanted = {"source": source, "first": first, "last": last, "since": since, "until": until}
    given = {name: value for name, value in wanted.items() if value is not None}
    raise typer.Exit(store_operations.export(where, output, given, token))


@app.command("evict")
def evict_command(
    where: At,
    reg_id: Annotated[int, typer.Argument(help="The RegID of a source or receiver.")],
    before: Annotated[
        int | None, typer.Option(help="Delete only the source's messages below this number; offline.", min=0)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm the eviction.")] = False,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Remove a client as if it had deregistered; a source with its messages and receivers."""
    from stablecast.cli import store_operations

    raise typer.Exit(store_operations.evict(where, reg_id, before, yes, token, as_json))


@app.command("drain")
def drain_command(
    where: At,
    undo: Annotated[bool, typer.Option("--undo", help="Accept new clients again.")] = False,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Refuse new clients and wait until receivers have every message; offline: delete acknowledged messages."""
    from stablecast.cli import store_operations

    raise typer.Exit(store_operations.drain(where, undo, token, as_json))


@app.command("roll")
def roll_command(
    monitors: Annotated[list[str] | None, typer.Argument(help="The monitors of all daemons, in order.")] = None,
    config: Annotated[list[Path] | None, typer.Option(help="A daemon's configuration with a monitor.")] = None,
    command: Annotated[str, typer.Option("--run", help="Replaces the stores of $STABLECAST_MONITOR.")] = "",
    patience: Annotated[float, typer.Option(help="Seconds to wait before each step.", min=0)] = 600.0,
    check: Annotated[bool, typer.Option("--check", help="Only report whether a store may be replaced now.")] = False,
    token: Token = None,
) -> None:
    """Replace all stores one after the other; each waits until the others have every message."""
    from stablecast.cli import roll

    raise typer.Exit(roll.run(roll.RollJob(monitors or [], config or [], command, patience, token, check)))


@app.command("resume")
def resume_command(
    where: Annotated[str, typer.Argument(help="The monitor of a daemon: http://ip:port[/stores/N].")],
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Restart a store that stopped serving because its disk failed."""
    from stablecast.cli import store_operations

    raise typer.Exit(store_operations.resume(where, token, as_json))


def top_command(
    where: Annotated[str, typer.Argument(help="A monitor: http://ip:port[/stores/N].")] = "http://127.0.0.1:15304",
    order: Annotated[str, typer.Option(help="Order of the sources: health, lag, held or topic.")] = "health",
    rows: Annotated[int, typer.Option(help="Number of sources to show.", min=1, max=200)] = 20,
    once: Annotated[bool, typer.Option("--once", help="Print one screen and exit.")] = False,
    token: Token = None,
) -> None:
    """Watch a running store in the terminal."""
    from stablecast.cli import store_operations

    raise typer.Exit(store_operations.top(where, order, rows, once, token))


def fleet_command(
    monitors: Annotated[
        list[str], typer.Argument(help="The monitors of all store daemons: http://ip:port, or ip:port.")
    ],
    rows: Annotated[int, typer.Option(help="Number of sources to show.", min=1, max=1000)] = 20,
    watch: Annotated[bool, typer.Option("--watch", help="Show it until interrupted.")] = False,
    serve: Annotated[
        str | None, typer.Option("--serve", help="Serve it as a page at this port of 127.0.0.1, or at ip:port.")
    ] = None,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Show several stores as one: each source by its quorum, problems first; exit with 1 if one is critical."""
    from stablecast.cli import fleet

    if serve is not None:
        raise typer.Exit(fleet.serve(monitors, serve, token, as_json))
    raise typer.Exit(fleet.run(monitors, rows, watch, token, as_json))
