"""Declare `stablecast watch`, which judges running traces and live captures."""

from pathlib import Path
from typing import Annotated

import typer

from stablecast.cli.declarations import Json


def watch_command(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Running traces, or directories they are recorded to.")
    ] = None,
    capture: Annotated[
        list[Path] | None,
        typer.Option("--capture", help="A capture that grows, or a ring of files: directory or pattern. Repeatable."),
    ] = None,
    interface: Annotated[str, typer.Option(help="Capture at this interface, by dumpcap.")] = "",
    filtered: Annotated[str, typer.Option("--filter", help="Filter of that capture, such as 'udp'.")] = "",
    port: Annotated[list[str] | None, typer.Option(help="Port of captures, as in `capture decode`.")] = None,
    threshold: Annotated[
        list[str] | None, typer.Option(help="name=value of an advice, as in `capture doctor`. Repeatable.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Judge traces that are there from their first record, not from now on.")
    ] = False,
    state: Annotated[Path | None, typer.Option(help="Keep the progress in this file; go on from it.")] = None,
    metrics: Annotated[str, typer.Option(help="Serve metrics at [ip:]port.")] = "",
    alert: Annotated[str, typer.Option(help="Run this command for each alarm, with JSON on its standard input.")] = "",
    seconds: Annotated[
        float | None, typer.Option(help="End after this time; 0: after one reading. Default: never.", min=0)
    ] = None,
    master: Annotated[
        str, typer.Option(help="Spark master that judges traces of many hosts: local[*], spark://host:port.")
    ] = "",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Directory for the progress of a watch on Spark; go on from it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge running traces and live captures with the rules of verify; name each violation within seconds."""
    from stablecast.evidence.watch import command

    if not (paths or capture or interface):
        raise typer.BadParameter("there is nothing to watch: give a directory of traces, --capture or --interface")
    places = (capture or [], interface, filtered, port or [], threshold or [], master, checkpoint)
    wanted = command.WatchRequest(paths or [], whole, state, metrics, alert, seconds, as_json, *places)
    raise typer.Exit(command.run(wanted))
