"""Recovery: a new receiver gets all messages of one store while the source continues to send."""

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Final

import uvloop

from stablecast.client import Context
from tools.bench import pipeline
from tools.bench.roles import BenchError, Wire, Work, run
from tools.bench.scenario import Figures, Options, Scenario

LIVE_PER_S: Final = 10_000
LIVE_SECONDS: Final = 2
WINDOW: Final = 5_000
"""Number of outstanding requested messages. It is as large as the receiver may hold, and larger than the default."""

STEP_S: Final = 0.005


async def _source(work: Work, wire: Wire) -> None:
    async with Context(session_id=pipeline.SESSION_ID) as context:
        options = {"ume_flight_size": work.flight}
        source = await context.source(pipeline.TOPIC, stores=wire.named("store"), options=options)
        for number in range(work.messages):
            await source.send(pipeline.payload(number, work.size))
        await source.wait_stable_through(work.messages - 1)
        await asyncio.to_thread(wire.ready, source.config.transport)
        for number in range(work.messages, work.messages + LIVE_PER_S * LIVE_SECONDS):
            await source.send(pipeline.payload(number, work.size))
            if number % int(LIVE_PER_S * STEP_S) == 0:
                await asyncio.sleep(STEP_S)
        await asyncio.to_thread(wire.done)


async def _receiver(work: Work, wire: Wire) -> None:
    await asyncio.to_thread(wire.ready)
    started, number, recovered = time.perf_counter(), 0, 0
    async with Context(session_id=pipeline.SESSION_ID) as context:
        options = {"retransmit_request_outstanding_maximum": WINDOW}
        receiver = context.receiver(pipeline.TOPIC, source=wire.addresses["source"], options=options)
        async for batch in receiver.batches():
            if batch.first != number or batch.payloads()[0] != pipeline.payload(number, work.size):
                raise BenchError(f"message {batch.first} arrived instead of {number}")
            number += len(batch)
            recovered += len(batch) if batch.recovered else 0
            if number >= work.messages:
                break
        per_s = number / (time.perf_counter() - started)
        await asyncio.to_thread(wire.done, per_s=per_s, recovered=recovered)


def source(work: Work, wire: Wire) -> None:
    """Send all messages before the receiver starts, and continue slowly afterwards."""
    uvloop.run(_source(work, wire))


def receiver(work: Work, wire: Wire) -> None:
    """Figures: `per_s`, messages a second until the last one from before its start; `recovered`, retransmissions."""
    uvloop.run(_receiver(work, wire))


ROLES = {"store": pipeline.store, "source": source, "receiver": receiver}


def measured(options: Options, directory: Path) -> Figures:
    found = run(ROLES, Work(options.messages, options.size, options.flight, directory))
    return {"caught_up": found["receiver"]["per_s"] / 1e3, "recovered": found["receiver"]["recovered"] / 1e3}


def recovery(_: Options) -> Scenario:
    return Scenario(
        "recovery",
        f"a new receiver catches up from one store while the source sends {LIVE_PER_S:,} messages a second",
        "all recovered messages were synced before",
        {"stablecast": partial(measured)},
        {"caught_up": "caught up, 1000/s", "recovered": "of these retransmitted, 1000"},
    )
