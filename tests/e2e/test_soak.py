"""A store killed while it works, again and again: what was reported stable is there when it comes back.

A few runs by default; `make soak` sets STABLECAST_SOAK_RUNS. Each kill comes at an instant that the seed fixes, as far
as an instant can be fixed. A new life of the source and a receiver that knows nothing then ask for everything: no
process but the store can have what the dead life sent.
"""

import asyncio
import os
import random
from contextlib import ExitStack
from pathlib import Path

import attrs

from stablecast.client import Context, NotRegistered, Source
from stablecast.core.protocol.events import QuorumLost, Stable, StableFlag
from tests.support.network import Events
from tests.support.program import Program, store

RUNS = int(os.environ.get("STABLECAST_SOAK_RUNS", "5"))
SEED = 20_090_714
FLIGHT = 500
MOST_STABLE = 2_000
"""A kill comes at the latest soon after so many messages are stable."""
MOST_SECONDS = 0.02
"""How soon."""
MOST_BYTES = 300


@attrs.define
class Disk:
    """One store's directory and address, and the process that serves it now."""

    directory: Path
    process: ExitStack = attrs.field(factory=ExitStack)
    address: str = "127.0.0.1:0"
    program: Program | None = None

    def serve(self) -> None:
        """Starts a process."""
        self.program, self.address = self.process.enter_context(store(self.directory, listen=self.address))

    def crash(self) -> None:
        """kill -9."""
        assert self.program is not None
        self.program.process.kill()
        self.process.close()


def payload(run: int, number: int) -> bytes:
    """What a message says; its length differs from one to the next."""
    return (b"%d %d " % (run, number)).ljust(12 + number * 37 % MOST_BYTES, b".")


async def _load(source: Source, run: int) -> None:
    while True:
        try:
            await source.send(payload(run, source.next_number))
        except NotRegistered:
            return


async def _crash_under_load(disk: Disk, run: int, chance: random.Random) -> set[int]:
    """One life of a source that ends with the store's; returns the numbers that it reported stable."""
    events = Events()
    async with Context(session_id=run + 1) as context:
        options = {"ume_flight_size": FLIGHT}
        source = await context.source(f"run {run}", stores=[disk.address], on_event=events, options=options)
        load = asyncio.create_task(_load(source, run))
        await source.wait_stable_through(chance.randrange(MOST_STABLE))
        await asyncio.sleep(chance.uniform(0, MOST_SECONDS))
        disk.crash()
        await events.first(QuorumLost)  # by then every acknowledgement that the store had sent has arrived
        load.cancel()
    reported = [event for event in events.of(Stable) if event.flags & StableFlag.STABLE]
    return {number for event in reported for number in range(event.first, event.last + 1)}


async def _recover(disk: Disk, run: int, reported: set[int]) -> None:
    """Everything that was reported is served to somebody new, and its number is not used again."""
    async with Context(session_id=run + 1) as context, Context(session_id=run + 1) as other:
        source = await context.source(f"run {run}", stores=[disk.address])
        assert source.next_number > max(reported), "a number that was reported stable would be used again"
        end = (await source.send(b"end")).sequence_number
        recovered = set()
        async for message in other.receiver(f"run {run}", source=source.config.transport):
            if message.sequence_number == end:
                break
            assert message.payload == payload(run, message.sequence_number)
            recovered.add(message.sequence_number)
    assert reported <= recovered, f"reported stable and lost: {sorted(reported - recovered)}"


async def test_what_was_reported_stable_survives_the_store(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    disk = Disk(tmp_path / "store")
    disk.serve()
    with disk.process:
        for run in range(RUNS):
            reported = await _crash_under_load(disk, run, chance)
            disk.serve()
            await _recover(disk, run, reported)
