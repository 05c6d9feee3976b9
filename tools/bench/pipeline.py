"""The data path of stablecast: the public client and the store daemon, each in a process of its own.

The receiver reads every payload, checks that every number arrives once and in order, and compares the first and the
last payload of every run with the sent ones.
"""

import asyncio
import gc
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial

import uvloop

from stablecast.client import Context, Message, Receiver, Source
from stablecast.core.protocol.events import Event, RegistrationComplete
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig
from stablecast.store.journal.disk import Disk
from stablecast.store.store import Store, StoreSettings
from tools.bench.roles import BenchError, Wire, Work

DISK_BYTES = 4 << 30
"""Limit of a store per source. It is never reached, because the baseline keeps everything as well."""

KEPT_BYTES = 24 << 20
"""Least bytes that a source keeps for retransmission, which is the default."""

Send = Callable[[Source, list[bytes]], Awaitable[object]]

TOPIC = "bench"
SESSION_ID = 42
KINDS = 251
"""Number of different payloads. It is a prime, so that no block or buffer is a multiple of it."""

AT_A_TIME = 1024
"""Number of messages in one call of `send_many`."""


def payload(number: int, size: int) -> bytes:
    return (b"%d " % (number % KINDS) * size)[:size]


async def _source(work: Work, wire: Wire, send: Send) -> None:
    batch = [payload(number, work.size) for number in range(KINDS)] * (AT_A_TIME // KINDS + 2)
    async with Context(resolver=near(wire), session_id=SESSION_ID, trace=work.trace) as context:
        kept = max(KEPT_BYTES, 2 * work.flight * work.size)  # otherwise retention limits the flight
        options = {"ume_flight_size": work.flight, "ume_flight_size_bytes": 0, "retransmit_retention_size_limit": kept}
        source = await context.source(TOPIC, stores=wire.named("store"), options=options)
        await asyncio.to_thread(wire.ready, source.config.transport)
        started = time.perf_counter()
        for number in range(0, work.messages, AT_A_TIME):
            start = number % KINDS
            await send(source, batch[start : start + min(AT_A_TIME, work.messages - number)])
        source.flush()
        await source.wait_stable_through(work.messages - 1)
        per_s = work.messages / (time.perf_counter() - started)
        await asyncio.to_thread(wire.done, per_s=per_s)


async def _send_each(source: Source, payloads: list[bytes]) -> None:
    for content in payloads:
        while source.try_send(content) is None:
            await source.room(len(content))
    await asyncio.sleep(0)


def near(wire: Wire) -> list[str]:
    """Return the relay of the source's domain, if any."""
    return wire.named("relay")[:1]


def far(wire: Wire) -> list[str]:
    """Return the relay of the receiver's domain, if any."""
    return wire.named("relay")[-1:]


def place(wire: Wire) -> str | None:
    """Return where a receiver joins the source; None: where its relay says, which may be at a router."""
    return None if far(wire) else wire.addresses["source"]


async def registered(
    context: Context, source: str | None, on_message: Callable[[Message], object] | None = None
) -> Receiver:
    """Return a receiver that has registered with the source's stores."""
    complete = asyncio.Event()

    def on_event(event: Event) -> None:
        if isinstance(event, RegistrationComplete):
            complete.set()

    receiver = context.receiver(TOPIC, source=source, on_event=on_event, on_message=on_message)
    await complete.wait()
    return receiver


async def _receiver(work: Work, wire: Wire) -> None:
    payloads = [payload(number, work.size) for number in range(KINDS)]
    async with Context(resolver=far(wire), session_id=SESSION_ID, trace=work.trace) as context:
        receiver = await registered(context, place(wire))
        await asyncio.to_thread(wire.ready)
        number, recovered, started = 0, 0, 0.0
        async for batch in receiver.batches():
            started = started or time.perf_counter()
            contents = batch.payloads()
            if batch.first != number or contents[0] != payloads[number % KINDS]:
                raise BenchError(f"message {batch.first} arrived instead of {number}")
            number += len(contents)
            if contents[-1] != payloads[(number - 1) % KINDS]:
                raise BenchError(f"message {number - 1} does not carry the sent payload")
            recovered += len(contents) if batch.recovered else 0
            if number >= work.messages:
                break
        per_s = work.messages / (time.perf_counter() - started)
        await asyncio.to_thread(wire.done, per_s=per_s, recovered=recovered)


async def _each_receiver(work: Work, wire: Wire) -> None:
    async with Context(session_id=SESSION_ID, trace=work.trace) as context:
        complete = asyncio.Event()
        number, started, wrong = 0, 0.0, ""

        def on_message(message: Message) -> None:
            nonlocal number, started, wrong
            started = started or time.perf_counter()
            if len(message.payload) != work.size or message.sequence_number != number:
                wrong = wrong or f"message {message.sequence_number} arrived instead of {number}"
            number += 1
            if number == work.messages:
                complete.set()

        await registered(context, wire.addresses["source"], on_message)
        await asyncio.to_thread(wire.ready)
        await complete.wait()
        per_s = work.messages / (time.perf_counter() - started)
        if wrong:
            raise BenchError(wrong)
        await asyncio.to_thread(wire.done, per_s=per_s)


async def _store(work: Work, wire: Wire) -> None:
    directory = work.directory / wire.name
    directory.mkdir()
    disk = Disk(sync=partial(slow_sync, work.sync_ns))
    config = StoreConfig("", seed=1, repository=RepositoryConfig(disk_limit=DISK_BYTES))
    where = tuple(near(wire))
    settings = StoreSettings("127.0.0.1:0", directory, config, trace=work.trace, new=True, disk=disk, resolver=where)
    store = Store(settings)
    await store.start()
    await asyncio.to_thread(wire.ready, store.address)
    await asyncio.to_thread(wire.done)
    await store.stop()


def slow_sync(longer_ns: int, descriptor: int) -> None:
    """Flush, and wait `longer_ns` more, because disks in the field are slower."""
    os.fdatasync(descriptor)
    if longer_ns:
        time.sleep(longer_ns / 1e9)


def source(work: Work, wire: Wire) -> None:
    """Send whole lists. Figures: `per_s`, stable messages per second."""
    uvloop.run(_source(work, wire, Source.send_many))


def each_source(work: Work, wire: Wire) -> None:
    """Send with one call per message. Figures: `per_s`, stable messages per second."""
    uvloop.run(_source(work, wire, _send_each))


def receiver(work: Work, wire: Wire) -> None:
    """Receive batches. Figures: `per_s`, delivered messages per second; `recovered`, the messages from the store."""
    uvloop.run(_receiver(work, wire))


def each_receiver(work: Work, wire: Wire) -> None:
    """Receive with one callback per message. Figures: `per_s`, delivered messages per second."""
    uvloop.run(_each_receiver(work, wire))


def store(work: Work, wire: Wire) -> None:
    """Run a store. It freezes its loaded objects, as a daemon does (`run_service`). Figures: none."""
    gc.freeze()
    uvloop.run(_store(work, wire))


ROLES = {"store": store, "source": source, "receiver": receiver}
EACH_ROLES = {"store": store, "source": each_source, "receiver": each_receiver}
THREE_ROLES = {"store": store, "store-2": store, "store-3": store, "source": source, "receiver": receiver}
