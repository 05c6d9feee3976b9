"""The commands of `stablecast store` but `run`, and `stablecast top`; what they do lives in `operations`."""

from pathlib import Path
from typing import Annotated

import typer

Where = Annotated[str, typer.Argument(help="A store's directory, or its monitor: http://ip:port[/stores/N].")]
Token = Annotated[Path | None, typer.Option("--token-file", help="Holds the monitor's token.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Yes = Annotated[bool, typer.Option("--yes", help="It is meant.")]


def attach(store: typer.Typer) -> None:
    """Add the commands to the group of `stablecast store`."""
    for command in (inspect, scrub, export, evict, drain, resume):
        store.command(command.__name__)(command)


def inspect(where: Where, token: Token = None, as_json: Json = False) -> None:
    """Show who is registered and what is held, without a change; a store may be running."""
    from stablecast.cli import store_operations  # noqa: PLC0415 - imported when it is run

    raise typer.Exit(store_operations.inspect(where, token, as_json))


def scrub(where: Where, token: Token = None, as_json: Json = False) -> None:
    """Verify every checksum of the files; 1: something is damaged. A store may be running."""
    from stablecast.cli import store_operations  # noqa: PLC0415

    raise typer.Exit(store_operations.scrub(where, token, as_json))


def export(
    where: Where,
    output: Annotated[str, typer.Option("--output", help="A new .parquet or .jsonl.zst file; -: the latter, printed.")],
    source: Annotated[int | None, typer.Option(help="Only of the source with this RegID.", min=1)] = None,
    first: Annotated[int | None, typer.Option(help="From this number on.", min=0)] = None,
    last: Annotated[int | None, typer.Option(help="Up to this number.", min=0)] = None,
    since: Annotated[str | None, typer.Option(help="Came then or later: 2026-01-31T12:00:00Z, or ns.")] = None,
    until: Annotated[str | None, typer.Option(help="Came before that.")] = None,
    token: Token = None,
) -> None:
    """Write messages to a file, by number or by time; a store may be running."""
    from stablecast.cli import store_operations  # noqa: PLC0415

    wanted = {"source": source, "first": first, "last": last, "since": since, "until": until}
    given = {name: value for name, value in wanted.items() if value is not None}
    raise typer.Exit(store_operations.export(where, output, given, token))


def evict(
    where: Where,
    reg_id: Annotated[int, typer.Argument(help="The RegID of a source or receiver.")],
    before: Annotated[
        int | None, typer.Option(help="Only let the source's messages below this number go; offline.", min=0)
    ] = None,
    yes: Yes = False,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Forget a client as if it had deregistered, a source with its messages and receivers."""
    from stablecast.cli import store_operations  # noqa: PLC0415

    raise typer.Exit(store_operations.evict(where, reg_id, before, yes, token, as_json))


def drain(
    where: Where,
    undo: Annotated[bool, typer.Option("--undo", help="Take new clients again.")] = False,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Take no new clients, and wait until receivers have everything; offline: let go of what they have."""
    from stablecast.cli import store_operations  # noqa: PLC0415

    raise typer.Exit(store_operations.drain(where, undo, token, as_json))


def resume(
    where: Annotated[str, typer.Argument(help="The monitor of a daemon: http://ip:port[/stores/N].")],
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Start a store again that is parked because its disk failed."""
    from stablecast.cli import store_operations  # noqa: PLC0415

    raise typer.Exit(store_operations.resume(where, token, as_json))


def top(
    where: Annotated[str, typer.Argument(help="A monitor: http://ip:port[/stores/N].")] = "http://127.0.0.1:15304",
    order: Annotated[str, typer.Option(help="health, lag, held or topic first.")] = "health",
    rows: Annotated[int, typer.Option(help="Sources shown.", min=1, max=200)] = 20,
    once: Annotated[bool, typer.Option("--once", help="Print it once.")] = False,
    token: Token = None,
) -> None:
    """Watch a running store in the terminal."""
    from stablecast.cli import store_operations  # noqa: PLC0415

    raise typer.Exit(store_operations.top(where, order, rows, once, token))
