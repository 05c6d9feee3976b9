"""Run a local cluster in the foreground, for `stablecast up`.

A daemon that somebody kills starts again, as under an init system, so a user can see what the others do meanwhile. A
store that lost its files then gets its messages back. A daemon that ends by itself ends the cluster.
"""

import asyncio
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import attrs

from stablecast.cli import cluster_ports, known_stores
from stablecast.config.file_kinds import FileKind, kind_of
from stablecast.runtime.child_programs import Child, ChildError, Report, start_all
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

MAX_RESTARTS = 20
"""Restarts of killed daemons in one run. With more, something kills them again and again."""

RESTART_SECONDS = 2.0
"""Time until a killed daemon starts again, in seconds. Meanwhile a user may remove the files of a store."""


@attrs.frozen
class ClusterJob:
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
    first, before = job.first_port, cluster_ports.read(job.directory)
    usual = before if before.stores else cluster_ports.HANDBOOK
    ports = cluster_ports.from_first(first, job.stores) if first else usual.free()
    cluster = LocalCluster.create(job.as_json)
    lbmrd = cluster.child("lbmrd", ["lbmrd", "--listen", f"127.0.0.1:{ports.relay}", "--json"])
    stores = []
    for index in range(job.stores):
        place = job.directory / f"store-{index}"
        place.mkdir(exist_ok=True)
        arguments = ["store", str(place), "--listen", f"127.0.0.1:{ports.store(index)}", "--json"]
        # A store of an earlier run whose files are gone is no new one: others know what it has to get back.
        new = ["--new"] if index >= len(before.stores) else []
        stores.append(cluster.child(f"store {index}", arguments + new, place))

    def explain(ready: Sequence[Report]) -> None:
        relay, addresses = ready[0]["port"], [report["address"] for report in ready[1:]]
        for child, address in zip((lbmrd, *stores), (f"127.0.0.1:{relay}", *addresses), strict=True):
            child.listen_at(address)
        cluster_ports.write(job.directory, relay, addresses)
        _explain(f"127.0.0.1:{relay}", addresses, job.as_json)

    return await cluster.run(explain)


async def _configured(job: ClusterJob) -> int:
    from stablecast.cli.configured_cluster import named_daemons  # noqa: PLC0415 - the usual cluster reads no files

    known = known_stores.read(job.directory)
    named = named_daemons(job.files, job.application, job.context, job.directory)
    cluster = LocalCluster.create(job.as_json)
    for one in named:
        new = ["--new"] if one.kind == "store" and one.known_as not in known else []
        cluster.child(one.name, [*one.arguments, *new], one.directory)

    def explain(ready: Sequence[Report]) -> None:
        known_stores.write(job.directory, known | {one.known_as for one in named if one.kind == "store"})
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

    return await cluster.run(explain)


@attrs.define(eq=False)
class LocalCluster:
    """The daemons of one run: `over` has the error that ends the run, or None after an interrupt."""

    _as_json: bool
    _over: "asyncio.Future[ChildError | None]"
    _children: list[Child] = attrs.field(factory=list)
    _restarting: set["asyncio.Task[None]"] = attrs.field(factory=set)
    _restarts: int = 0

    @classmethod
    def create(cls, as_json: bool) -> "LocalCluster":
        """Return a cluster without daemons; `as_json` chooses how it reports restarts."""
        return cls(as_json, asyncio.get_running_loop().create_future())

    def child(self, name: str, arguments: Sequence[str], directory: Path | None = None) -> Child:
        """Add a daemon, which keeps its files in a directory."""
        at = len(self._children)
        command = ["stablecast.cli.main", *arguments]
        self._children.append(Child(name, command, lambda error: self._on_end(at, error), directory=directory))
        return self._children[at]

    async def run(self, explain: Callable[[Sequence[Report]], None]) -> int:
        """Run all daemons until an interrupt, or until one ends by itself. Raises ChildError."""
        on_ending(partial(self._end, None))
        try:
            explain(await start_all(self._children))
            for child in self._children:
                child.return_as_known()
            error = await self._over
            for restart in self._restarting:
                restart.cancel()
            await asyncio.gather(*self._restarting, return_exceptions=True)
            if error is not None:
                raise error
            await asyncio.gather(*(child.stop() for child in self._children))
        finally:
            await asyncio.gather(*(child.kill() for child in self._children))
        return 0

    def _end(self, error: ChildError | None) -> None:
        if not self._over.done():
            self._over.set_result(error)

    def _on_end(self, at: int, error: ChildError) -> None:
        if not error.killed_by or self._restarts == MAX_RESTARTS or self._over.done():
            self._end(error)
            return
        self._restarts += 1
        restart = asyncio.get_running_loop().create_task(self._restart(self._children[at], error.killed_by))
        self._restarting.add(restart)
        restart.add_done_callback(self._restarting.discard)

    async def _restart(self, child: Child, killed_by: int) -> None:
        name = signal.Signals(killed_by).name
        if self._as_json:
            say({"restarted": child.name, "signal": name})
        else:
            note(f"{child.name} was killed by {name}, and starts again in {RESTART_SECONDS:g} s.")
        await asyncio.sleep(RESTART_SECONDS)
        try:
            await child.start()
        except ChildError as error:
            self._end(error)


def _program() -> str:
    """Return the words that run this program in a terminal."""
    if shutil.which("stablecast"):
        return "stablecast"
    beside = Path(sys.executable).with_name("stablecast")
    return str(beside) if beside.exists() else f"{sys.executable} -m stablecast.cli.main"


def _explain(resolver: str, addresses: list[str], as_json: bool) -> None:
    if as_json:
        say({"ready": True, "resolver": resolver, "stores": addresses})
        return
    program = _program()
    places = " ".join(f"--store {address}" for address in addresses)
    note(f"lbmrd at {resolver}, stores at {', '.join(addresses)}; interrupt to stop.")
    note("Kill any of them (kill -9): it starts again, and the others carry on. A store may lose its directory, too.")
    note("Try in two other terminals (each line you type to the second is a message):")
    say(f"{program} receive orders --resolver {resolver} --session-id 1")
    say(f"{program} send orders --resolver {resolver} --session-id 1 {places}")
    note("Or in Python:")
    say(SNIPPET.format(resolver=resolver, stores=addresses))
