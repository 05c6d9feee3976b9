"""Refill under load: each of three store daemons loses its disk in turn and gets its messages back from the others.

    python -m tools.bench.refill --messages 300000
    python -m tools.bench.refill --budget default --portions 20

The daemons are processes of the shipped command. The source and the receiver are clients in this process. A disk is
lost while the source sends: the daemon is killed, its directory is emptied, and the daemon starts again, not as a new
one. It grants nothing for the activity timeout, which is short here. The source
then begins another life, because only a new life announces what a store lacks below its beginning. The next store is
wiped once the former one lacks nothing.

The figures are printed as JSON: messages lost, the refill of each store in messages a second beside the catch-up of one
receiver in the same run, and the peak memory of the daemon. Live throughput is that during a refill beside that right
before and after it. Another process sends 500 messages a second to a live receiver (`refill_probe`). The 99th
percentile of its latency during the refills stands beside that before and after them, under the same load.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.client import Context, Source
from tests.support.tree import PYTHON_PATH
from tools.bench import processes, refill_probe
from tools.bench.pipeline import payload

TOPIC: Final = "refill"
SESSION_ID: Final = 7
STORES: Final = 3
BATCH: Final = 256
WINDOW: Final = 5_000
"""Outstanding requested messages of the receiver, as in the benchmark of recovery."""
LOOK_S: Final = 0.05
LOOKS_S: Final = {"off": 0.05, "default": 1.0}
"""Seconds between two looks at a refill: without a budget it ends in a second, and each look costs live messages."""
SILENCE_MS: Final = 3000
"""Activity timeouts, for which a store that lost its disk grants nothing."""
PORTION: Final = 20_000
"""Messages whose rate is measured at one time."""
PAUSES_S: Final = {"off": 0.2, "default": 1.0}
"""Seconds after each portion, so that the portions spread over the refill. With a budget it takes minutes."""
LIVE_SHARE: Final = 0.5
"""Most of the messages of a part that are sent in portions during a refill, and before and after it."""
BUDGETS: Final = {"off": {"refill-message-rate": "0", "refill-byte-rate": "0"}, "default": dict[str, str]()}

CONFIG: Final = """
[daemon]
log = "{directory}/log"
web-monitor = "127.0.0.1:{monitor}"
[[store]]
name = "s{index}"
port = {port}
interface = "127.0.0.1"
options = {{ disk-cache-directory = "{directory}/cache", disk-state-directory = "{directory}/state"{more} }}
[[store.topic]]
pattern = "."
type = "PCRE"

[store.topic.options]
repository-disk-file-size-limit = 8000000000
source-activity-timeout = {silence}
receiver-activity-timeout = {silence}
"""


@attrs.define
class StoreProcess:
    """One store daemon: its index, its directory, its port and that of its monitor; `look_s` are s between looks."""

    directory: Path
    index: int
    port: int
    monitor: int
    options: dict[str, str]
    look_s: float
    path: str = PYTHON_PATH
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    async def start(self, *, new: bool = True) -> None:
        """Start the daemon, as a new one or not, and wait until its monitor answers."""
        for name in ("cache", "state"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        more = "".join(f', {name} = "{value}"' for name, value in self.options.items())
        config = self.directory / "store.toml"
        values = {"directory": self.directory, "port": self.port, "monitor": self.monitor, "index": self.index}
        values["silence"] = SILENCE_MS
        config.write_text(CONFIG.format(more=more, **values), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "stablecast.cli.main",
            "store",
            "run",
            str(config),
            *(["--new"] if new else []),
        ]
        with (self.directory / "output").open("ab") as output:
            environment = {**os.environ, "PYTHONPATH": self.path}
            self.process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)  # noqa: ASYNC220
        while not await self.view():
            if self.process.poll() is not None:
                raise RuntimeError((self.directory / "output").read_text(encoding="utf-8"))
            await asyncio.sleep(LOOK_S)

    def wipe(self) -> None:
        """Kill the daemon, and lose its disk."""
        self.stop(signal.SIGKILL)
        for name in ("cache", "state"):
            shutil.rmtree(self.directory / name)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    async def view(self) -> dict[str, Any]:
        """Return its sources by topic, and a key for the store; empty while nobody answers."""
        try:
            return await asyncio.to_thread(self._view)
        except OSError:
            return {}

    def _view(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        own = [line for line in lines if not line.startswith("#") and ("topic=" not in line or f'"{TOPIC}"' in line)]
        found = {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in own}
        return {"up": 1.0, **found}


@contextmanager
def ports(count: int) -> Iterator[list[int]]:
    """Yield ports of this host that nobody listens at."""
    import socket  # noqa: PLC0415 - only the start needs it

    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    found = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    yield found


@asynccontextmanager
async def daemons(directory: Path, budget: str, old: str) -> AsyncIterator[list[StoreProcess]]:
    """Run the daemons until the end of the body; the first one of an `old` tree, if there is one."""
    options, look_s = BUDGETS[budget], LOOKS_S[budget]
    with ports(2 * STORES) as free:
        stores = [
            StoreProcess(directory / f"s{index}", index, free[2 * index], free[2 * index + 1], options, look_s)
            for index in range(STORES)
        ]
    if old:
        stores[0].path, stores[0].options = old, {}
    try:
        for store in stores:
            await store.start()
        yield stores
    finally:
        for store in stores:
            store.stop()


@attrs.define
class Load:
    """A source that sends in lives; `sent` is the next number. `rates` has messages a second of each `send`."""

    where: list[str]
    size: int
    pause_s: float
    sent: int = 0
    rates: list[float] = attrs.field(factory=list)

    @asynccontextmanager
    async def life(self) -> AsyncIterator[Source]:
        """Begin another life of the source; it ends without deregistration."""
        async with Context(session_id=SESSION_ID) as context:
            options = {"ume_flight_size": 20_000}
            yield await context.source(TOPIC, stores=self.where, options=options)

    async def send(self, source: Source, count: int) -> None:
        """Send messages as fast as the stores make them stable."""
        started = time.perf_counter()
        for first in range(self.sent, self.sent + count, BATCH):
            stop = min(first + BATCH, self.sent + count)
            await source.send_many([payload(number, self.size) for number in range(first, stop)])
        self.sent += count
        await source.wait_stable_through(self.sent - 1)
        self.rates.append(count / (time.perf_counter() - started))

    async def send_while(self, source: Source, portions: int, doing: "asyncio.Task[Any] | None") -> "Live":
        """Send at most this number of portions while a task runs."""
        begin, rates = time.monotonic_ns(), list[float]()
        for _ in range(max(1, portions)):
            if not rates or doing is None or not doing.done():
                await self.send(source, PORTION)
                rates.append(self.rates[-1])
                await asyncio.sleep(self.pause_s)
        return Live(rates, begin, time.monotonic_ns())


@attrs.frozen
class Live:
    """Live portions: their messages a second, and when they began and ended, in ns."""

    rates: list[float]
    begin: int
    end: int

    @property
    def window(self) -> tuple[int, int]:
        """The time in which they were sent."""
        return self.begin, self.end


async def caught_up(where: str, size: int, through: int) -> tuple[float, int]:
    """Let a new receiver get all messages; return messages a second, and how many were wrong or missing."""
    started, number, wrong = time.perf_counter(), 0, 0
    async with Context() as context:
        options = {"retransmit_request_outstanding_maximum": WINDOW}
        receiver = context.receiver(TOPIC, source=where, options=options)
        async for batch in receiver.batches():
            contents = batch.payloads()
            wrong += batch.first - number
            wrong += sum(content != payload(batch.first + at, size) for at, content in enumerate(contents))
            number = batch.first + len(contents)
            if number >= through:
                break
    return number / (time.perf_counter() - started), wrong


async def progress(store: StoreProcess) -> tuple[float, float]:
    """Return the messages that a store got back, and those that it still lacks."""
    view = await store.view()
    lacking = sum(
        view.get(f"stablecast_source_lacking_{cause}_messages", 0.0) for cause in ("away", "empty", "damaged")
    )
    return view.get("stablecast_source_refilled_messages_total", 0.0), lacking


async def refilling(store: StoreProcess) -> float:
    """Wait until a store began to get its messages back; return the last time at which it had not, in s."""
    looked = time.perf_counter()
    while not any(await progress(store)):
        looked = time.perf_counter()
        await asyncio.sleep(LOOK_S)
    return looked


async def filled(store: StoreProcess, started: float) -> tuple[float, float, int]:
    """Wait until a store lacks nothing; return messages a second, messages, and the peak of its memory in bytes."""
    while True:
        gained, lacking = await progress(store)
        if gained and not lacking:
            return gained / (time.perf_counter() - started), gained, processes.peak(store.pid)
        await asyncio.sleep(store.look_s)


@asynccontextmanager
async def watched(store: StoreProcess) -> AsyncIterator[None]:
    """Look at a store as often as while it is refilled: twenty looks a second cost a fifth of the live messages."""

    async def watch() -> None:
        while True:
            await progress(store)
            await asyncio.sleep(store.look_s)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


@attrs.define
class Turn:
    """The turn of one store to lose its disk: the live portions around its refill, and the figures of the refill."""

    before: Live
    during: Live
    after: Live
    figures: dict[str, float]

    @property
    def quiet(self) -> list[float]:
        """The rates of the portions before and after the refill."""
        return self.before.rates + self.after.rates

    def report(self, probe: refill_probe.Probe) -> dict[str, float]:
        during, quiet = statistics.median(self.during.rates), statistics.median(self.quiet)
        p99 = probe.p99_ms([self.during.window])
        p99_quiet = probe.p99_ms([self.before.window, self.after.window])
        live = {"live_per_s": during, "live_quiet_per_s": quiet, "ratio": during / quiet}
        latency = {"p99_ms": p99, "p99_quiet_ms": p99_quiet, "p99_ratio": p99 / p99_quiet}
        return {name: round(value, 3) for name, value in {**self.figures, **live, **latency}.items()}


async def turn(load: Load, store: StoreProcess, part: int, portions: int) -> Turn:
    """Let a store lose its disk and get its messages back, while `part` messages are sent."""
    begun = load.sent
    async with load.life() as source, watched(store):
        before = await load.send_while(source, portions // 2, None)
    store.wipe()
    await store.start(new=False)
    async with load.life() as source:
        filling = asyncio.create_task(filled(store, await refilling(store)))
        during = await load.send_while(source, portions, filling)
        rate, gained, peak = await filling
        held = (await store.view())["stablecast_source_messages"]
        async with watched(store):
            after = await load.send_while(source, len(before.rates), None)
        rest = part - (load.sent - begun)
        if rest > 0:
            await load.send(source, rest)
    return Turn(before, during, after, {"per_s": rate, "messages": gained, "held": held, "peak_mb": peak / 1e6})


async def measured(
    messages: int, size: int, budget: str, directory: Path, old: str, portions: int = 0
) -> dict[str, Any]:
    """Wipe each store of this tree in turn; return the figures. `portions` 0: as many as `LIVE_SHARE` permits."""
    async with daemons(directory, budget, old) as stores:
        load = Load([store.address for store in stores], size, PAUSES_S[budget])
        part = messages // (STORES + 1)
        portions = portions or round(LIVE_SHARE * part) // PORTION
        environment = {**os.environ, "PYTHONPATH": PYTHON_PATH}
        turns: list[Turn] = []
        async with load.life() as source:
            await load.send(source, messages - STORES * part)
        async with refill_probe.running(directory / "probe.json", load.where, environment) as probe:
            turns += [await turn(load, store, part, portions) for store in stores[bool(old) :]]
        async with load.life() as source:
            recovery, wrong = await caught_up(source.config.transport, size, load.sent)
    quiet_p99 = probe.p99_ms(window for one in turns for window in (one.before.window, one.after.window))
    during_p99 = probe.p99_ms(one.during.window for one in turns)
    live, quiet = ([rate for one in turns for rate in rates(one)] for rates in (_during, _quiet))
    return {
        "messages": load.sent,
        "size": size,
        "budget": budget,
        "wrong_or_lost": wrong,
        "refills": [one.report(probe) for one in turns],
        "receiver_per_s": round(recovery),
        "refill_of_recovery": round(min(one.figures["per_s"] for one in turns) / recovery, 3),
        "live_ratio": round(statistics.median(live) / statistics.median(quiet), 3),
        "p99_ms": round(during_p99, 3),
        "p99_quiet_ms": round(quiet_p99, 3),
        "p99_ratio": round(during_p99 / quiet_p99, 3),
    }


def _during(one: Turn) -> list[float]:
    return one.during.rates


def _quiet(one: Turn) -> list[float]:
    return one.quiet


def main() -> None:
    parser = argparse.ArgumentParser(description="Wipe stores in turn, and measure how they are refilled.")
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--budget", choices=sorted(BUDGETS), default="off")
    parser.add_argument("--old", default="", help="PYTHONPATH of an earlier tree, for the first store")
    parser.add_argument("--portions", type=int, default=0, help="live portions during each refill, and beside it")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        found = asyncio.run(measured(asked.messages, asked.size, asked.budget, where, asked.old, asked.portions))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
