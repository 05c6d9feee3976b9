"""A store is killed under load again and again. It must serve every message that was reported stable.

There are a few runs by default; `make soak` sets STABLECAST_SOAK_RUNS. The seed fixes the instant of each kill as far
as possible. A new life of the source and a new receiver then ask for all messages, because no process but the store
can have the messages of the dead life.
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
"""Number of stable messages after which a kill comes at the latest."""
MOST_SECONDS = 0.02
"""Longest time between the last of these messages and the kill."""
MOST_BYTES = 300


@attrs.define
class Disk:
    """A store's directory and address, and the process that serves it now."""

    directory: Path
    process: ExitStack = attrs.field(factory=ExitStack)
    address: str = "127.0.0.1:0"
    program: Program | None = None

    def serve(self) -> None:
        """Start a process."""
        self.program, self.address = self.process.enter_context(store(self.directory, listen=self.address))

    def crash(self) -> None:
        """Kill the process with SIGKILL."""
        assert self.program is not None
        self.program.process.kill()
        self.process.close()


def payload(run: int, number: int) -> bytes:
    """Return the payload of a message. Lengths differ from one message to the next."""
    return (b"%d %d " % (run, number)).ljust(12 + number * 37 % MOST_BYTES, b".")


async def _load(source: Source, run: int) -> None:
    while True:
        try:
            await source.send(payload(run, source.next_number))
        except NotRegistered:
            return


async def _crash_under_load(disk: Disk, run: int, chance: random.Random) -> set[int]:
    """Run one life of a source until the store crashes; return the numbers that it reported stable."""
    events = Events()
    async with Context(session_id=run + 1) as context:
        options = {"ume_flight_size": FLIGHT}
        source = await context.source(f"run {run}", stores=[disk.address], on_event=events, options=options)
        load = asyncio.create_task(_load(source, run))
        await source.wait_stable_through(chance.randrange(MOST_STABLE))
        await asyncio.sleep(chance.uniform(0, MOST_SECONDS))
        disk.crash()
        await events.first(QuorumLost)  # every acknowledgement that the store sent has arrived before this event
        load.cancel()
    reported = [event for event in events.of(Stable) if event.flags & StableFlag.STABLE]
    return {number for event in reported for number in range(event.first, event.last + 1)}


async def _recover(disk: Disk, run: int, reported: set[int]) -> None:
    """Check that a new receiver gets every reported message and that no number is used again."""
    async with Context(session_id=run + 1) as context, Context(session_id=run + 1) as other:
        source = await context.source(f"run {run}", stores=[disk.address])
        assert source.next_number > max(reported), "the new life would use a stable number again"
        end = (await source.send(b"end")).sequence_number
        recovered = set()
        async for message in other.receiver(f"run {run}", source=source.config.transport):
            if message.sequence_number == end:
                break
            assert message.payload == payload(run, message.sequence_number)
            recovered.add(message.sequence_number)
    assert reported <= recovered, f"reported stable and lost: {sorted(reported - recovered)}"


async def test_stable_messages_survive_crashes_of_the_store(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    disk = Disk(tmp_path / "store")
    disk.serve()
    with disk.process:
        for run in range(RUNS):
            reported = await _crash_under_load(disk, run, chance)
            disk.serve()
            await _recover(disk, run, reported)
