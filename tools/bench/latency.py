"""Latency of a message to the receiver's callback and to stable, at a rate far below the limit of every part.

The baselines are the same bytes through an asyncio `Protocol` and through asyncio streams. The baseline of throughput
at this rate (`raw`) shows the cost of a third process that syncs. Flushes of the disk alone show the lower bound of the
time to stable.

Each payload begins with the time of its sending, on the clock that all processes of a machine share.
"""

import asyncio
import os
import signal
import struct
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import uvloop

from stablecast.client import Context, Message
from stablecast.core.protocol.events import Event, Stable, StableFlag
from tools.bench import pipeline, raw
from tools.bench.goals import Goal, ratio
from tools.bench.roles import Role, Wire, Work, run
from tools.bench.scenario import Figures, Options, Scenario

PER_S: Final = 2_000
SECONDS: Final = 4
PAUSE_S: Final = 10.0
MESSAGES_A_PAUSED_S: Final = 50_000
"""Messages of a run per second of the store's pause. The fast form stops the store for two seconds."""

FLUSHES: Final = 1_000
FLUSH_PAUSE_S: Final = 0.001
"""Pause between two flushes of the disk alone, as between those of a store at this rate."""

PATIENCE_MS: Final = 60_000
"""Activity timeout of the store. It is longer than the pause, so that the source does not replace the store."""

FLUSHES_TO_STABLE: Final = 3
OVERHEAD_US: Final = 300
"""Limit of the time to stable: this number of flushes of the disk, and this number of microseconds."""

PLAIN_TCP, PLAIN_STREAMS, RAW, DISK = "plain TCP", "uvloop streams", "plain TCP, with a store", "disk"
OURS, NOT_PROMPT, STOPPED = "stablecast", "not prompt", "store stopped"

WARM: Final = PER_S // 4
"""Number of first messages that are not counted, because connections and caches are still cold."""

INSTANT: Final = struct.Struct(">Q")
LENGTH: Final = struct.Struct("<I")
STABLE: Final = int(StableFlag.STABLE)


class Latencies:
    """Measured latencies (ns)."""

    def __init__(self) -> None:
        self.all: list[int] = []

    def figures(self, name: str) -> dict[str, float]:
        """Return the median and the 99th percentile, in µs."""
        known = sorted(self.all[WARM:])
        return {f"{name}_p50": known[len(known) // 2] / 1e3, f"{name}_p99": known[len(known) * 99 // 100] / 1e3}


async def paced(work: Work, send: Callable[[bytes], object]) -> None:
    """Send at the work's rate, in steps of 1 ms. Each payload carries its time of sending."""
    rest = b"." * (work.size - INSTANT.size)
    started, number = time.monotonic_ns(), 0
    while number < work.messages:
        due = (time.monotonic_ns() - started) * work.per_s // 1_000_000_000
        for _ in range(min(due, work.messages) - number):
            send(INSTANT.pack(time.monotonic_ns()) + rest)
            number += 1
        await asyncio.sleep(0.001)


def _context(work: Work, resolver: list[str]) -> Context:
    context = Context(resolver=resolver, session_id=pipeline.SESSION_ID)
    context.prompt = work.prompt
    return context


async def _source(work: Work, wire: Wire) -> None:
    stable, sent = Latencies(), list[int]()

    def on_event(event: Event) -> None:
        if isinstance(event, Stable) and int(event.flags) & STABLE:  # an earlier event reports the first store only
            now = time.monotonic_ns()
            stable.all += [now - sent[number] for number in range(event.first, event.last + 1)]

    options = {"ume_flight_size": work.messages, "ume_store_activity_timeout": PATIENCE_MS}
    async with _context(work, pipeline.near(wire)) as context:
        source = await context.source(pipeline.TOPIC, stores=wire.named("store"), options=options, on_event=on_event)

        def send(content: bytes) -> None:
            sent.append(time.monotonic_ns())
            source.try_send(content)

        await asyncio.to_thread(wire.ready, source.config.transport)
        await asyncio.gather(paced(work, send), _pause(work, wire))
        await source.wait_stable_through(work.messages - 1)
        await asyncio.to_thread(wire.done, **stable.figures("stable"))


async def _pause(work: Work, wire: Wire) -> None:
    """Stop the store in the middle of the run."""
    if work.pause_s:
        await asyncio.sleep((work.messages / work.per_s - work.pause_s) / 2)
        os.kill(wire.pids["store"], signal.SIGSTOP)
        await asyncio.sleep(work.pause_s)
        os.kill(wire.pids["store"], signal.SIGCONT)


async def _receiver(work: Work, wire: Wire) -> None:
    latencies = Latencies()
    async with _context(work, pipeline.far(wire)) as context:
        complete = asyncio.Event()

        def on_message(message: Message) -> None:
            latencies.all.append(time.monotonic_ns() - INSTANT.unpack_from(message.payload)[0])
            if len(latencies.all) == work.messages:
                complete.set()

        await pipeline.registered(context, pipeline.place(wire), on_message)
        await asyncio.to_thread(wire.ready)
        await complete.wait()
        await asyncio.to_thread(wire.done, **latencies.figures("delivered"))


async def _streams_source(work: Work, wire: Wire) -> None:
    """Write each message's length and payload to a stream, as a simple program does."""
    joined: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Future()
    server = await asyncio.start_server(lambda *streams: joined.set_result(streams), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.to_thread(wire.ready, f"127.0.0.1:{port}")
    (_reader, writer), prefix = await joined, LENGTH.pack(work.size)  # a stream without a reader is closed
    await paced(work, lambda content: writer.write(prefix + content))
    await asyncio.to_thread(wire.done)


async def _streams_receiver(work: Work, wire: Wire) -> None:
    latencies = Latencies()
    host, _, port = wire.addresses["source"].rpartition(":")
    reader, _writer = await asyncio.open_connection(host, int(port))
    await asyncio.to_thread(wire.ready)
    for _ in range(work.messages):
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        content = await reader.readexactly(length)
        latencies.all.append(time.monotonic_ns() - INSTANT.unpack_from(content)[0])
    await asyncio.to_thread(wire.done, **latencies.figures("delivered"))


class _PlainConnection(asyncio.Protocol):
    """A connection that measures the messages of a plain stream."""

    def __init__(self, work: Work, latencies: Latencies, complete: asyncio.Event) -> None:
        self._work, self._latencies, self._complete = work, latencies, complete
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        now, data = time.monotonic_ns(), self._rest + data
        whole = len(data) - len(data) % self._work.size
        for place in range(0, whole, self._work.size):
            self._latencies.all.append(now - INSTANT.unpack_from(data, place)[0])
        self._rest = data[whole:]
        if len(self._latencies.all) >= self._work.messages:
            self._complete.set()


async def _plain_source(work: Work, wire: Wire) -> None:
    joined: asyncio.Future[asyncio.Transport] = asyncio.get_running_loop().create_future()

    class Peer(asyncio.Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
            joined.set_result(transport)

    server = await asyncio.get_running_loop().create_server(Peer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.to_thread(wire.ready, f"127.0.0.1:{port}")
    transport = await joined
    await paced(work, transport.write)
    await asyncio.to_thread(wire.done)


async def _plain_receiver(work: Work, wire: Wire) -> None:
    latencies, complete = Latencies(), asyncio.Event()
    host, _, port = wire.addresses["source"].rpartition(":")
    loop = asyncio.get_running_loop()
    await loop.create_connection(lambda: _PlainConnection(work, latencies, complete), host, int(port))
    await asyncio.to_thread(wire.ready)
    await complete.wait()
    await asyncio.to_thread(wire.done, **latencies.figures("delivered"))


async def _raw_source(work: Work, wire: Wire) -> None:
    """Write each message to the receiver, then to the store, which answers when it has synced."""
    peers, sent, stable, complete = list[asyncio.Transport](), list[int](), Latencies(), asyncio.Event()

    def answered(number: int) -> None:
        now = time.monotonic_ns()
        stable.all += [now - instant for instant in sent[len(stable.all) : number]]
        if number == work.messages:
            complete.set()

    def send(content: bytes) -> None:
        sent.append(time.monotonic_ns())
        block = raw.HEADER.pack(0, 0, raw.HEADER.size + work.size, 7, len(sent) - 1) + content
        for peer in reversed(peers):
            peer.write(block)

    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: raw.Subscriber(peers.append, answered), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.to_thread(wire.ready, f"127.0.0.1:{port}")
    await paced(work, send)
    await complete.wait()
    await asyncio.to_thread(wire.done, **stable.figures("stable"))


async def _raw_receiver(work: Work, wire: Wire) -> None:
    latencies, complete, length = Latencies(), asyncio.Event(), raw.HEADER.size + work.size

    def received(data: bytes, number: int) -> None:
        now = time.monotonic_ns()
        for place in range(raw.HEADER.size, len(data), length):
            latencies.all.append(now - INSTANT.unpack_from(data, place)[0])
        if number == work.messages:
            complete.set()

    await raw.join(wire, raw.CheckedConnection(received))
    await asyncio.to_thread(wire.ready)
    await complete.wait()
    await asyncio.to_thread(wire.done, **latencies.figures("delivered"))


def source(work: Work, wire: Wire) -> None:
    """Send and measure. Figures: `stable_p50`, `stable_p99`, from the call to the event, in µs."""
    uvloop.run(_source(work, wire))


def receiver(work: Work, wire: Wire) -> None:
    """Receive with callbacks. Figures: `delivered_p50`, `delivered_p99`, from the call to the callback, in µs."""
    uvloop.run(_receiver(work, wire))


def plain_source(work: Work, wire: Wire) -> None:
    """Write only the payloads to a TCP connection."""
    uvloop.run(_plain_source(work, wire))


def plain_receiver(work: Work, wire: Wire) -> None:
    """Receive and measure. Figures: `delivered_p50`, `delivered_p99`, in µs."""
    uvloop.run(_plain_receiver(work, wire))


def raw_source(work: Work, wire: Wire) -> None:
    """Write to a receiver and a store. Figures: `stable_p50`, `stable_p99`, in µs."""
    uvloop.run(_raw_source(work, wire))


def raw_receiver(work: Work, wire: Wire) -> None:
    """Receive and measure. Figures: `delivered_p50`, `delivered_p99`, in µs."""
    uvloop.run(_raw_receiver(work, wire))


def streams_source(work: Work, wire: Wire) -> None:
    """Write lengths and payloads to a `StreamWriter`."""
    uvloop.run(_streams_source(work, wire))


def streams_receiver(work: Work, wire: Wire) -> None:
    """Receive and measure. Figures: `delivered_p50`, `delivered_p99`, in µs."""
    uvloop.run(_streams_receiver(work, wire))


ROLES = {"store": pipeline.store, "source": source, "receiver": receiver}
PLAIN = {"source": plain_source, "receiver": plain_receiver}
STREAMS = {"source": streams_source, "receiver": streams_receiver}
KEPT = {"source": raw_source, "store": raw.store, "receiver": raw_receiver}


def measured(
    roles: Mapping[str, Role], pause_s: float, options: Options, directory: Path, prompt: bool = True
) -> Figures:
    """Run the roles once, long enough for the pause."""
    pause_s = min(pause_s, options.messages / MESSAGES_A_PAUSED_S)
    seconds = min(SECONDS, options.messages / PER_S) + pause_s
    work = Work(
        int(PER_S * seconds), options.size, options.flight, directory, per_s=PER_S, pause_s=pause_s, prompt=prompt
    )
    found = run(roles, work)
    return {name: value for figures in found.values() for name, value in figures.items() if name != "cpu_us"}


def disk(options: Options, directory: Path) -> Figures:
    """Flush two messages at a time into allocated space, as a store does; return the median in µs."""
    block, took = bytes(2 * options.size), list[int]()
    descriptor = os.open(directory / "plain", os.O_CREAT | os.O_WRONLY, 0o600)
    os.posix_fallocate(descriptor, 0, FLUSHES * len(block))
    for number in range(min(FLUSHES, options.messages)):
        os.pwrite(descriptor, block, number * len(block))
        began = time.monotonic_ns()
        os.fdatasync(descriptor)
        took.append(time.monotonic_ns() - began)
        time.sleep(FLUSH_PAUSE_S)
    os.close(descriptor)
    return {"sync_p50": sorted(took)[len(took) // 2] / 1e3}


def _of_flushes(found: Mapping[str, Figures]) -> float:
    return found[OURS]["stable_p50"] / (FLUSHES_TO_STABLE * found[DISK]["sync_p50"] + OVERHEAD_US)


def latency(_: Options) -> Scenario:
    """Return the scenario at 2,000 messages a second."""
    delivered = ("delivered_p50", "delivered_p99")
    pairs = (
        (OURS, PLAIN_STREAMS),
        (NOT_PROMPT, PLAIN_STREAMS),
        (RAW, PLAIN_STREAMS),
        (OURS, RAW),
        (NOT_PROMPT, RAW),
        (STOPPED, OURS),
    )
    return Scenario(
        "latency",
        f"{PER_S:,} messages a second, measured from the call; the store is stopped for {PAUSE_S:g} s (--fast: 2)",
        "stable = fdatasync returned; delivery waits for no store; not prompt: the option of contexts is off",
        {
            PLAIN_TCP: partial(measured, PLAIN, 0.0),
            PLAIN_STREAMS: partial(measured, STREAMS, 0.0),
            RAW: partial(measured, KEPT, 0.0),
            OURS: partial(measured, ROLES, 0.0),
            NOT_PROMPT: partial(measured, ROLES, 0.0, prompt=False),
            STOPPED: partial(measured, ROLES, PAUSE_S),
            DISK: disk,
        },
        {
            "delivered_p50": "to the receiver, median µs",
            "delivered_p99": "to the receiver, 99 % µs",
            "stable_p50": "to stable, median µs",
            "stable_p99": "to stable, 99 % µs",
            "sync_p50": "fdatasync, median µs",
        },
        [
            *((over, under, figure) for over, under in pairs for figure in delivered),
            *((over, RAW, "stable_p50") for over in (OURS, NOT_PROMPT)),
        ],
        [
            Goal("median delivery / that of plain streams", ratio(OURS, PLAIN_STREAMS, "delivered_p50"), 1.3),
            Goal(f"median time to stable / {FLUSHES_TO_STABLE} fdatasync + 0.3 ms", _of_flushes, 1.0),
            Goal("median delivery, store stopped / running", ratio(STOPPED, OURS, "delivered_p50"), 1.1),
        ],
    )
