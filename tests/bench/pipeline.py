"""The data path of stablecast itself: the public client and the store daemon, each in a process of its own.

Every payload is taken, every number is checked to come once and in order, and the ends of every run are compared with
what was sent.
"""

import asyncio
import time

import uvloop

from stablecast.client import Context
from stablecast.core.events import Event, RegistrationComplete
from stablecast.daemon.store import Store, StoreSettings
from tests.bench.roles import BenchError, Wire, Work

TOPIC = "bench"
SESSION_ID = 42
KINDS = 251
"""Different payloads; a prime, so that no block or buffer is a multiple of it."""

AT_A_TIME = 1024
"""Messages handed to `send_many` in one call."""


def payload(number: int, size: int) -> bytes:
    """What message `number` carries."""
    return (b"%d " % (number % KINDS) * size)[:size]


async def _source(work: Work, wire: Wire) -> None:
    batch = [payload(number, work.size) for number in range(KINDS)] * (AT_A_TIME // KINDS + 2)
    async with Context(session_id=SESSION_ID, trace=work.trace) as context:
        options = {"ume_flight_size": work.flight}
        source = await context.source(TOPIC, stores=[wire.addresses["store"]], options=options)
        await asyncio.to_thread(wire.ready, source.config.transport)
        started = time.perf_counter()
        for number in range(0, work.messages, AT_A_TIME):
            start = number % KINDS
            await source.send_many(batch[start : start + min(AT_A_TIME, work.messages - number)])
        source.flush()
        await source.wait_stable_through(work.messages - 1)
        per_s = work.messages / (time.perf_counter() - started)
        await asyncio.to_thread(wire.done, per_s=per_s)


async def _receiver(work: Work, wire: Wire) -> None:
    registered = asyncio.Event()
    payloads = [payload(number, work.size) for number in range(KINDS)]

    def on_event(event: Event) -> None:
        if isinstance(event, RegistrationComplete):
            registered.set()

    async with Context(session_id=SESSION_ID, trace=work.trace) as context:
        receiver = context.receiver(TOPIC, source=wire.addresses["source"], on_event=on_event)
        await registered.wait()
        await asyncio.to_thread(wire.ready)
        number, recovered, started = 0, 0, 0.0
        async for batch in receiver.batches():
            started = started or time.perf_counter()
            taken = batch.payloads()
            if batch.first != number or taken[0] != payloads[number % KINDS]:
                raise BenchError(f"message {batch.first} came where {number} was due")
            number += len(taken)
            if taken[-1] != payloads[(number - 1) % KINDS]:
                raise BenchError(f"message {number - 1} does not carry what was sent")
            recovered += len(taken) if batch.recovered else 0
            if number >= work.messages:
                break
        per_s = work.messages / (time.perf_counter() - started)
        await asyncio.to_thread(wire.done, per_s=per_s, recovered=recovered)


async def _store(work: Work, wire: Wire) -> None:
    directory = work.directory / "store"
    directory.mkdir()
    store = Store(StoreSettings("127.0.0.1:0", directory, trace=work.trace, new=True))
    await store.start()
    await asyncio.to_thread(wire.ready, store.address)
    await asyncio.to_thread(wire.done)
    await store.stop()


def source(work: Work, wire: Wire) -> None:
    """Figures: `per_s`, messages per second stable."""
    uvloop.run(_source(work, wire))


def receiver(work: Work, wire: Wire) -> None:
    """Figures: `per_s`, messages per second delivered; `recovered`, how many of them came from the store."""
    uvloop.run(_receiver(work, wire))


def store(work: Work, wire: Wire) -> None:
    """No figures but its processor time."""
    uvloop.run(_store(work, wire))


ROLES = {"store": store, "source": source, "receiver": receiver}
