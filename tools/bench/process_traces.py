"""Traces of real processes: a source, a receiver and a disk store over sockets, first under load and then idle.

    python -m tools.bench.process_traces DIRECTORY --messages 100000 --idle 20

The source sends one message in each turn of its loop. The store then holds as many runs as messages, so its snapshots
are as large as possible. `tools.bench.synthetic_traces` writes traces of machines alone, with full frames.
"""

import argparse
import asyncio
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

import uvloop

from stablecast.client import Context
from stablecast.evidence.trace.file_names import traces_in
from stablecast.evidence.trace.frames import unread_frames
from tools.bench import pipeline
from tools.bench.roles import Role, Wire, Work, run

SIZE: Final = 100
"""Size of a message (bytes)."""

FLIGHT: Final = 1000
"""Largest number of unstable messages."""

IDLE_SECONDS: Final = 20.0
"""Time for which all processes stay connected after the load."""


async def _source(idle_s: float, work: Work, wire: Wire) -> None:
    async with Context(session_id=pipeline.SESSION_ID, trace=work.trace) as context:
        stores = wire.named("store")
        source = await context.source(pipeline.TOPIC, stores=stores, options={"ume_flight_size": work.flight})
        await asyncio.to_thread(wire.ready, source.config.transport)
        for number in range(work.messages):
            await source.send(pipeline.payload(number, work.size))
            await asyncio.sleep(0)
        source.flush()
        await source.wait_stable_through(work.messages - 1)
        await asyncio.sleep(idle_s)
        await asyncio.to_thread(wire.done)


def source(idle_s: float, work: Work, wire: Wire) -> None:
    """Send one message a turn of the loop, then stay idle. Figures: none."""
    uvloop.run(_source(idle_s, work, wire))


def write(directory: Path, messages: int, idle_s: float = IDLE_SECONDS) -> int:
    """Write the traces; return the number of records. Raises BenchError, OSError."""
    roles: dict[str, Role] = {"store": pipeline.store, "source": partial(source, idle_s), "receiver": pipeline.receiver}
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        run(roles, Work(messages, SIZE, FLIGHT, Path(scratch), trace=directory))
    return sum(frame.count for path in traces_in(directory) for frame, _ in unread_frames(path))


def main(arguments: list[str]) -> None:
    """Parse the command line and write the traces."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--idle", type=float, default=IDLE_SECONDS)
    given = parser.parse_args(arguments)
    print(f"{write(given.directory, given.messages, given.idle)} records")


if __name__ == "__main__":
    main(sys.argv[1:])
