"""`stablecast up`: a local cluster in the foreground."""

import asyncio
import signal
from pathlib import Path

from stablecast.cli.common import note, run_loop, say
from stablecast.demo.processes import Child, ChildError, Report

LIFETIME = "86400000"
"""A day in ms: clients of a cluster for trying things out may be away for a while."""


def run(stores: int, directory: Path, as_json: bool) -> int:
    """Run one lbmrd and some stores until interrupted; returns the exit status."""
    directory.mkdir(parents=True, exist_ok=True)
    return run_loop(_up(stores, directory, as_json))


async def _up(stores: int, directory: Path, as_json: bool) -> int:
    ended = asyncio.Event()
    relay = Child("lbmrd", ["stablecast.cli.main", "lbmrd", "--listen", "127.0.0.1:0", "--json"], _silent)
    children = [relay, *(_store(index, directory) for index in range(stores))]
    try:
        ready = [await child.start() for child in children]
        resolver = f"127.0.0.1:{ready[0]['port']}"
        addresses = [report["address"] for report in ready[1:]]
        if as_json:
            say({"ready": True, "resolver": resolver, "stores": addresses})
        else:
            _explain(resolver, addresses)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        await _until_one_ends(children, ended)
    finally:
        for child in children:
            await child.stop()
    return 0


async def _until_one_ends(children: list[Child], ended: asyncio.Event) -> None:
    """Until an interrupt. Raises ChildError when a child ends by itself."""
    waits = {asyncio.create_task(child.wait()): child for child in children}
    stop = asyncio.create_task(ended.wait())
    done, _ = await asyncio.wait({stop, *waits}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if not ended.is_set():
        names = ", ".join(waits[task].name for task in waits if task in done)
        raise ChildError(f"{names} ended by itself; look at its messages above")


def _store(index: int, directory: Path) -> Child:
    place = directory / f"store-{index}"
    place.mkdir(exist_ok=True)
    options = [
        word
        for name in ("source-state-lifetime", "receiver-state-lifetime")
        for word in ("--option", f"{name}={LIFETIME}")
    ]
    arguments = ["stablecast.cli.main", "store", str(place), "--listen", "127.0.0.1:0", "--json", *options]
    return Child(f"store {index}", arguments, _silent)


def _explain(resolver: str, addresses: list[str]) -> None:
    places = " ".join(f"--store {address}" for address in addresses)
    note(f"lbmrd at {resolver}, stores at {', '.join(addresses)}; interrupt to stop. Try in two other terminals:")
    print(f"stablecast receive orders --resolver {resolver} --session-id 1")
    print(f"stablecast send orders --resolver {resolver} --session-id 1 {places}", flush=True)


def _silent(_name: str, _report: Report) -> None:
    """Reports after the ready line are not shown."""
