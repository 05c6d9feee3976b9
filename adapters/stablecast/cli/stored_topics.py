"""Declare the commands that read from stores without registering: `stablecast read` and `stablecast topics`."""

from pathlib import Path
from typing import Annotated

import typer

from stablecast.cli.declarations import Json

Stores = Annotated[list[str] | None, typer.Option("--store", "-s", help="ip:port of a store. Repeatable: name all.")]
Since = Annotated[
    str,
    typer.Option(
        help="Where to begin: a number, '10 min ago', 2026-01-31T12:00:00Z, 'last 100', latest; default: earliest."
    ),
]
Until = Annotated[
    str, typer.Option(help="Where to end, exclusive: a number, '5 min ago', a time; default: the stable end as of now.")
]
Sources = Annotated[
    list[int] | None, typer.Option("--source", help="Session ID of a source to read; default: all. Repeatable.")
]
Patience = Annotated[float, typer.Option(help="Seconds to wait for stores that are away.", min=0.1)]
Interface = Annotated[str, typer.Option("--interface", "-i", help="Address of this host that the stores connect to.")]
Quorum = Annotated[int | None, typer.Option(help="Stores that must have a message; default: a majority.", min=1)]
New = Annotated[bool, typer.Option("--new", help="The topic may be new: do not fail if no store has it.")]
Configs = Annotated[
    list[Path] | None, typer.Option("--config", "-c", help="Option file, XML or TOML file of a client. Repeatable.")
]


def read_command(
    topic: Annotated[str, typer.Argument(help="The topic.")],
    store: Stores = None,
    since: Since = "",
    until: Until = "",
    source: Sources = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with messages that come later.")] = False,
    count: Annotated[int, typer.Option(help="End after this number of messages; 0: never.", min=0)] = 0,
    patience: Patience = 10.0,
    quorum: Quorum = None,
    new: New = False,
    interface: Interface = "",
    config: Configs = None,
    as_json: Json = False,
) -> None:
    """Print messages that stores hold, of any range, without registering; exit with 1 if some are missing."""
    from stablecast.cli import stored_messages

    place = stored_messages.Place(_named(store), interface, config or [], patience, quorum)
    job = stored_messages.ReadJob(topic, place, since, until, source, follow, count, as_json, new)
    raise typer.Exit(stored_messages.read(job))


def topics_command(
    topic: Annotated[str, typer.Argument(help="Only this topic.")] = "",
    store: Stores = None,
    patience: Patience = 10.0,
    interface: Interface = "",
    config: Configs = None,
    as_json: Json = False,
) -> None:
    """Show what stores hold: topics, sources, lives, ranges, times and bytes."""
    from stablecast.cli import stored_messages

    place = stored_messages.Place(_named(store), interface, config or [], patience)
    raise typer.Exit(stored_messages.topics(topic, place, as_json))


def replay_command(
    topic: Annotated[str, typer.Argument(help="The topic to read.")],
    into: Annotated[str, typer.Option("--into", help="The topic to send to; default: print the messages.")] = "",
    store: Stores = None,
    target: Annotated[
        list[str] | None, typer.Option("--target", "-t", help="ip:port of a store of --into; default: the same stores.")
    ] = None,
    since: Since = "",
    until: Until = "",
    source: Sources = None,
    speed: Annotated[float, typer.Option(help="Times the recorded pace; 0: as fast as possible.", min=0)] = 1.0,
    max_pause: Annotated[float, typer.Option(help="Longest pause between two messages, in seconds.", min=0)] = 60.0,
    resolver: Annotated[
        list[str] | None, typer.Option("--resolver", help="ip:port of an lbmrd relay of --into. Repeatable.")
    ] = None,
    session_id: Annotated[int, typer.Option(help="Session ID of the source of --into.", min=0)] = 0,
    patience: Patience = 10.0,
    interface: Interface = "",
    config: Configs = None,
    as_json: Json = False,
) -> None:
    """Send stored messages again, into another topic, at the recorded pace or N times faster."""
    from stablecast.cli import stored_messages

    place = stored_messages.Place(_named(store), interface, config or [], patience)
    read = stored_messages.ReadJob(topic, place, since, until, source, False, 0, as_json)
    targets = target or (store or [])
    job = stored_messages.ReplayJob(read, into, targets, speed or None, max_pause, resolver or [], session_id)
    raise typer.Exit(stored_messages.replay(job))


def archive_command(
    topic: Annotated[str, typer.Argument(help="The topic.")],
    output: Annotated[Path, typer.Option("--output", help="The folder of the archive.")],
    store: Stores = None,
    every: Annotated[float, typer.Option(help="Seconds between two runs; 0: run once.", min=0)] = 0.0,
    session_id: Annotated[
        int, typer.Option(help="Session ID under which receiver-paced stores keep what is not archived yet.", min=0)
    ] = 0,
    pace: Annotated[str, typer.Option(help="Pace of the stores with --session-id: receivers or source.")] = "receivers",
    patience: Patience = 10.0,
    quorum: Quorum = None,
    new: New = False,
    interface: Interface = "",
    config: Configs = None,
    as_json: Json = False,
) -> None:
    """Append what became stable since the last run to a folder of Parquet files by day; exit with 1 for gaps."""
    from stablecast.cli import stored_messages, topic_archive

    place = stored_messages.Place(_named(store), interface, config or [], patience, quorum)
    raise typer.Exit(topic_archive.run(topic, output, place, every, session_id, pace, as_json=as_json, new=new))


def _named(stores: list[str] | None) -> list[str]:
    """Return the stores of a command. Raises BadParameter if there is none."""
    if not stores:
        raise typer.BadParameter("name the stores of the topic: --store ip:port")
    return stores
