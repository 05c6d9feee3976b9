"""Very many sources in one store over sockets: the time of registration, and the cost while they live.

    python -m tools.bench.source_registration [--sources 10000] [--contexts 1] [--transport tcp] [--seconds 10]

The store is a process of its own. Over TCP each source has its own port, and with its store's connection it needs two
descriptors. The contexts are therefore spread over several processes.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import attrs
import uvloop

from stablecast.client import Context
from tests.support.program import store
from tools.bench import processes
from tools.bench.scenario import Figures

AT_A_TIME: Final = 64
"""Number of sources of a process that register at the same time."""

DESCRIPTORS: Final = 2
"""Descriptors of a source over TCP: its listening socket, and the connection of its store."""

SPARE: Final = 1000
"""Number of descriptors for everything else."""

WITHIN_SECONDS: Final = 120.0
"""Time limit of a registration."""


@attrs.frozen
class Size:
    """The numbers of sources and contexts, the transport, and the seconds of observation after the registration."""

    sources: int = 10_000
    contexts: int = 1
    transport: str = "tcp"
    seconds: float = 10.0

    @property
    def processes(self) -> int:
        """The number of processes that have enough descriptors for the sources."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        return -(-self.sources * DESCRIPTORS // (most - SPARE)) if self.transport == "tcp" else 1


def _shares(total: int, parts: int) -> list[int]:
    return [total * (part + 1) // parts - total * part // parts for part in range(parts)]


async def _registered(contexts: Sequence[int], address: str, transport: str, first: int, wire: Connection) -> None:
    """Register sources in several contexts, send the processor time to the parent, and stay until it answers."""
    options = {"transport": transport}
    places = asyncio.Semaphore(AT_A_TIME)

    async def one(context: Context, number: int) -> None:
        async with places:
            topic = f"topic/{number}"
            source = await context.source(topic, stores=[address], wait=False, options=options)
            await source.registered(WITHIN_SECONDS)

    async with AsyncExitStack() as stack:
        loop = asyncio.get_running_loop()
        joined = [await stack.enter_async_context(Context()) for _ in contexts]
        began = time.process_time()
        async with asyncio.TaskGroup() as group:
            for context, count in zip(joined, contexts, strict=True):
                for _ in range(count):
                    group.create_task(one(context, first))
                    first += 1
        wire.send(time.process_time() - began)
        await loop.run_in_executor(None, wire.recv)
        wire.send(None)
        stack.pop_all()  # the end of the contexts is not measured


def _play(contexts: Sequence[int], address: str, transport: str, first: int, wire: Connection) -> None:
    uvloop.run(_registered(contexts, address, transport, first, wire))


def measured(size: Size, directory: Path) -> Figures:
    """Register the sources; return the cost of the store. `crowd` is the processor time of the sources' processes."""
    spawn = multiprocessing.get_context("spawn")
    parts = size.processes
    with store(directory / "journal") as (program, address):
        pid = program.process.pid
        idle, before, began = processes.resident(pid), processes.cpu(pid), time.monotonic()
        crowd, wires, first = [], [], 0
        try:
            for count, contexts in zip(
                _shares(size.sources, parts), _shares(max(parts, size.contexts), parts), strict=True
            ):
                ours, theirs = spawn.Pipe()
                arguments = (_shares(count, contexts), address, size.transport, first, theirs)
                crowd.append(spawn.Process(target=_play, args=arguments, daemon=True))
                crowd[-1].start()
                wires.append(ours)
                first += count
            spent = sum(wire.recv() for wire in wires)
            seconds, registering = time.monotonic() - began, processes.cpu(pid) - before
            living = [processes.cpu(one.pid or 0) for one in crowd]
            before, began = processes.cpu(pid), time.monotonic()
            time.sleep(size.seconds)
            keeping = (processes.cpu(pid) - before) / (time.monotonic() - began)
            lived = sum(processes.cpu(one.pid or 0) for one in crowd) - sum(living)
            memory = (processes.resident(pid) - idle) / size.sources
        finally:
            for one in crowd:
                one.kill()
                one.join()
    return {
        "seconds": seconds,
        "registration": registering / size.sources * 1e6,
        "crowd": spent / size.sources * 1e6,
        "bytes": memory,
        "living": keeping * 1e2,
        "theirs": lived / size.seconds * 1e2,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser()
    for field in attrs.fields(Size):
        parser.add_argument(f"--{field.name}", type=type(field.default), default=field.default)
    size = Size(**vars(parser.parse_args(arguments)))
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(dict(measured(size, Path(folder))), indent=2))


if __name__ == "__main__":
    main()
