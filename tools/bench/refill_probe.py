"""A source and a live receiver in a process of their own, which measure latency beside a refill.

    python -m tools.bench.refill_probe FILE STORE STORE STORE

It sends until it is interrupted, and then writes JSON: the time of each receipt in ns of the clock that all processes
of a machine share, and the latency of the message in ns.
"""

import asyncio
import json
import signal
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import attrs

from stablecast.client import Context, Message, Source

TOPIC: Final = "probe"
INTERVAL_S: Final = 0.002
REST: Final = b"." * 92
INSTANT: Final = struct.Struct(">Q")
LOOK_S: Final = 0.05
END_S: Final = 30
"""Seconds that the process has to end."""


@attrs.define
class Probe:
    """The measurements of a probe: the time of each receipt, and the latency, in ns."""

    found: list[tuple[int, int]]

    def p99_ms(self, windows: Iterable[tuple[int, int]]) -> float:
        """Return the 99th percentile of the latencies of messages received in these windows [begin, end) of time."""
        spans = list(windows)
        known = sorted(latency for at, latency in self.found if any(begin <= at < end for begin, end in spans))
        return known[len(known) * 99 // 100] / 1e6 if known else float("nan")


def ready(path: Path) -> Path:
    """Return the file that a probe makes when it got its first message."""
    return path.with_suffix(".ready")


@asynccontextmanager
async def running(path: Path, stores: list[str], environment: dict[str, str]) -> AsyncIterator[Probe]:
    """Run a probe until the end of the body; then it has its measurements."""
    probe = Probe([])
    command = [sys.executable, "-m", "tools.bench.refill_probe", str(path), *stores]
    process = subprocess.Popen(command, env=environment)  # noqa: ASYNC220
    try:
        while not ready(path).exists() and process.poll() is None:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        yield probe
    finally:
        process.send_signal(signal.SIGINT)
        await asyncio.to_thread(process.wait, END_S)
        if path.exists():  # noqa: ASYNC240 - nothing else runs here
            probe.found = [(at, latency) for at, latency in json.loads(path.read_bytes())]  # noqa: ASYNC240


async def send(source: Source) -> None:
    while True:
        await source.send(INSTANT.pack(time.monotonic_ns()) + REST)
        await asyncio.sleep(INTERVAL_S)


async def measure(path: Path, stores: list[str]) -> None:
    found: list[tuple[int, int]] = []

    def on_message(message: Message) -> None:
        now = time.monotonic_ns()
        if not found:
            ready(path).touch()
        found.append((now, now - INSTANT.unpack_from(message.payload)[0]))

    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stopped.set)
    async with Context() as context:
        source = await context.source(TOPIC, stores=stores, options={"ume_flight_size": 20_000})
        context.receiver(TOPIC, source=source.config.transport, on_message=on_message)
        sending = asyncio.create_task(send(source))
        await stopped.wait()
        sending.cancel()
    path.write_text(json.dumps(found), encoding="utf-8")  # noqa: ASYNC240 - nothing else runs here


if __name__ == "__main__":
    asyncio.run(measure(Path(sys.argv[1]), sys.argv[2:]))
