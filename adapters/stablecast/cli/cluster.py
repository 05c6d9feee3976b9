"""Run a local cluster in the foreground, for `stablecast up`."""

import asyncio
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from stablecast.lab.demo.processes import Child, ChildError, start_all
from stablecast.runtime.event_loop import on_ending
from stablecast.text.console import note, say


def run(stores: int, directory: Path, as_json: bool) -> int:
    """Run one lbmrd and `stores` stores until interrupted; return the exit status."""
    directory.mkdir(parents=True, exist_ok=True)
    return asyncio.run(_up(stores, directory, as_json))


async def _up(stores: int, directory: Path, as_json: bool) -> int:
    over: asyncio.Future[ChildError | None] = asyncio.get_running_loop().create_future()

    def end(error: ChildError | None) -> None:
        if not over.done():
            over.set_result(error)

    children = [_lbmrd(end), *(_store(index, directory, end) for index in range(stores))]
    on_ending(lambda: end(None))
    try:
        ready = await start_all(children)
        _explain(f"127.0.0.1:{ready[0]['port']}", [report["address"] for report in ready[1:]], as_json)
        error = await over
        if error is not None:
            raise error
        await asyncio.gather(*(child.stop() for child in children))
    finally:
        await asyncio.gather(*(child.kill() for child in children))
    return 0


def _lbmrd(end: Callable[[ChildError], None]) -> Child:
    return Child("lbmrd", ["stablecast.cli.main", "lbmrd", "--listen", "127.0.0.1:0", "--json"], end)


def _store(index: int, directory: Path, end: Callable[[ChildError], None]) -> Child:
    place = directory / f"store-{index}"
    place.mkdir(exist_ok=True)
    arguments = ["stablecast.cli.main", "store", str(place), "--listen", "127.0.0.1:0", "--new", "--json"]
    return Child(f"store {index}", arguments, end)


def _explain(resolver: str, addresses: list[str], as_json: bool) -> None:
    if as_json:
        say({"ready": True, "resolver": resolver, "stores": addresses})
        return
    program = "stablecast" if shutil.which("stablecast") else f"{sys.executable} -m stablecast.cli.main"
    places = " ".join(f"--store {address}" for address in addresses)
    note(f"lbmrd at {resolver}, stores at {', '.join(addresses)}; interrupt to stop.")
    note("Try in two other terminals (each line you type to the second is a message):")
    say(f"{program} receive orders --resolver {resolver} --session-id 1")
    say(f"{program} send orders --resolver {resolver} --session-id 1 {places}")
