"""Run a local cluster in the foreground, for `stablecast up`."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from stablecast.cli import cluster_ports
from stablecast.config.file_kinds import FileKind, kind_of
from stablecast.lab.demo.processes import Child, ChildError, Report, start_all
from stablecast.runtime.event_loop import on_ending
from stablecast.text.console import note, say

SNIPPET = """
import asyncio

from stablecast.client import Context


async def main() -> None:
    async with Context(resolver=["{resolver}"], session_id=2) as context:
        source = await context.source("orders", stores={stores})
        sent = await source.send(b"apples")
        await sent.stable()
        async for message in context.receiver("orders"):
            print(message)
            break


asyncio.run(main())"""
"""A program that sends and receives at this cluster."""

End = Callable[[ChildError | None], None]
"""Ends the cluster, with the error of the child that ended it."""


@attrs.frozen
class ClusterJob:
    """Hold the arguments of `stablecast up`."""

    stores: int
    directory: Path
    as_json: bool
    files: Sequence[Path] = ()
    application: str = ""
    context: str = ""
    first_port: int = 0


def run(job: ClusterJob) -> int:
    """Run one lbmrd and several stores, or what files name, until interrupted; return the exit status."""
    job.directory.mkdir(parents=True, exist_ok=True)
    return asyncio.run(_configured(job) if job.files else _up(job))


async def _up(job: ClusterJob) -> int:
    first = job.first_port
    ports = cluster_ports.from_first(first, job.stores) if first else cluster_ports.read(job.directory).free()

    def children(end: End) -> list[Child]:
        stores = (_store(index, job.directory, ports.store(index), end) for index in range(job.stores))
        return [_lbmrd(ports.relay, end), *stores]

    def explain(ready: Sequence[Report]) -> None:
        relay, addresses = ready[0]["port"], [report["address"] for report in ready[1:]]
        cluster_ports.write(job.directory, relay, addresses)
        _explain(f"127.0.0.1:{relay}", addresses, job.as_json)

    return await _run(children, explain)


async def _configured(job: ClusterJob) -> int:
    from stablecast.cli.configured_cluster import named_daemons  # noqa: PLC0415 - the usual cluster reads no files

    named = named_daemons(job.files, job.application, job.context, job.directory)

    def children(end: End) -> list[Child]:
        return [Child(one.name, ["stablecast.cli.main", *one.arguments], end) for one in named]

    def explain(ready: Sequence[Report]) -> None:
        stores = [report["address"] for one, report in zip(named, ready, strict=True) if one.kind == "store"]
        if job.as_json:
            say({"ready": True, "daemons": [one.name for one in named], "stores": stores})
            return
        note(f"{', '.join(one.name for one in named)}; interrupt to stop.")
        note("Try in two other terminals (each line you type to the second is a message):")
        files = " ".join(f"--config {path}" for path in job.files if kind_of(path) is FileKind.CLIENT)
        of = f" --application {job.application}" if job.application else ""
        say(f"{_program()} receive orders {files}{of}")
        say(f"{_program()} send orders {files}{of}")

    return await _run(children, explain)


async def _run(make: Callable[[End], list[Child]], explain: Callable[[Sequence[Report]], None]) -> int:
    over: asyncio.Future[ChildError | None] = asyncio.get_running_loop().create_future()

    def end(error: ChildError | None) -> None:
        if not over.done():
            over.set_result(error)

    children = make(end)
    on_ending(lambda: end(None))
    try:
        explain(await start_all(children))
        error = await over
        if error is not None:
            raise error
        await asyncio.gather(*(child.stop() for child in children))
    finally:
        await asyncio.gather(*(child.kill() for child in children))
    return 0


def _program() -> str:
    """Return the words that run this program in a terminal."""
    if shutil.which("stablecast"):
        return "stablecast"
    beside = Path(sys.executable).with_name("stablecast")
    return str(beside) if beside.exists() else f"{sys.executable} -m stablecast.cli.main"


def _lbmrd(port: int, end: Callable[[ChildError], None]) -> Child:
    return Child("lbmrd", ["stablecast.cli.main", "lbmrd", "--listen", f"127.0.0.1:{port}", "--json"], end)


def _store(index: int, directory: Path, port: int, end: Callable[[ChildError], None]) -> Child:
    place = directory / f"store-{index}"
    place.mkdir(exist_ok=True)
    arguments = ["stablecast.cli.main", "store", str(place), "--listen", f"127.0.0.1:{port}", "--new", "--json"]
    return Child(f"store {index}", arguments, end)


def _explain(resolver: str, addresses: list[str], as_json: bool) -> None:
    if as_json:
        say({"ready": True, "resolver": resolver, "stores": addresses})
        return
    program = _program()
    places = " ".join(f"--store {address}" for address in addresses)
    note(f"lbmrd at {resolver}, stores at {', '.join(addresses)}; interrupt to stop.")
    note("Try in two other terminals (each line you type to the second is a message):")
    say(f"{program} receive orders --resolver {resolver} --session-id 1")
    say(f"{program} send orders --resolver {resolver} --session-id 1 {places}")
    note("Or in Python:")
    say(SNIPPET.format(resolver=resolver, stores=addresses))
