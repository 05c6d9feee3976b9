"""The director: starts everybody, crashes them at seeded instants, and counts at the end."""

import asyncio
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import attrs

from stablecast.core.errors import StablecastError
from stablecast.demo.processes import Child, Report
from stablecast.trace.recording import VARIABLE
from stablecast.trace.verify import verify_paths

TOPIC = "demo"
STORES = 3
SECONDS = 8.0
"""How long sending takes when nothing crashes."""

LIMIT_SECONDS = 120.0
"""When the demo gives up."""

KINDS = ("receiver", "source", "store", "all")
SPREAD = 0.04
"""A crash comes within this fraction of the messages around its place."""


class DemoError(StablecastError):
    """The demo did not come to its end."""


@attrs.frozen
class Crash:
    """Who is killed, when so many messages are delivered, and for how long it stays away."""

    kind: str
    delivered: int
    pause: float


@attrs.define
class Progress:
    """What the processes said last."""

    sent: int = 0
    stable: int = 0
    delivered: int = 0
    lost_for_good: int = 0
    lbmr: set[int] = attrs.field(factory=set)
    lbttcp: set[int] = attrs.field(factory=set)
    crashes: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(KINDS, 0))


@attrs.frozen
class Outcome:
    """The demo's result."""

    sent: int
    delivered: int
    lost: int
    duplicates: int
    redelivered: int
    crashes: dict[str, int]
    traces: list[str]
    verified: bool
    records: int
    violations: int
    ports: dict[str, list[int]]

    @property
    def good(self) -> bool:
        """Whether every message arrived once and every trace verifies."""
        return self.lost == 0 and self.duplicates == 0 and self.verified


def plan(messages: int, seed: int) -> list[Crash]:
    """When who crashes; the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311  # a schedule, not a secret
    crashes = []
    for place, kind in enumerate(KINDS, 1):
        at = place / (len(KINDS) + 1) + chance.uniform(-SPREAD, SPREAD)
        crashes.append(Crash(kind, max(1, int(at * messages)), chance.uniform(0.2, 0.6)))
    return crashes


class Demo:
    """One run."""

    def __init__(self, messages: int, seed: int, directory: Path) -> None:
        """Files go to `directory`."""
        self.messages = messages
        self.crashes = plan(messages, seed)
        self.progress = Progress()
        self.changed = asyncio.Event()
        self.stage = "starting"
        self._chance = random.Random(seed + 1)  # noqa: S311  # which store crashes
        self._directory = directory
        self._traces = directory / "traces"
        self._ledger = directory / "received"
        self._addresses: list[str] = []
        self._resolver = ""

    async def run(self) -> Outcome:
        """Everything, from the first process to the verdict. Raises DemoError, ChildError."""
        self._traces.mkdir(parents=True, exist_ok=True)
        for index in range(STORES):
            (self._directory / f"store-{index}").mkdir(exist_ok=True)
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                await self._start()
                for crash in self.crashes:
                    await self._until_delivered(crash.delivered)
                    await self._crash(crash)
                self.stage = "finishing"
                await self._until_delivered(self.messages)
                await self._until(lambda: self.progress.stable >= self.messages)
        except TimeoutError:
            raise DemoError(
                f"after {LIMIT_SECONDS:g} s {self.progress.delivered} of {self.messages} messages were delivered; "
                f"the traces are in {self._traces}"
            ) from None
        finally:
            await self._stop()
        self.stage = "verifying"
        return await asyncio.get_running_loop().run_in_executor(None, self._judge)

    async def _start(self) -> None:
        self._relay = Child("lbmrd", ["stablecast.cli.main", "lbmrd", "--listen", "127.0.0.1:0", "--json"], self._hear)
        port = (await self._relay.start())["port"]
        self.progress.lbmr.add(port)
        self._resolver = f"127.0.0.1:{port}"
        self._stores = [self._store(index, "127.0.0.1:0") for index in range(STORES)]
        ready = await asyncio.gather(*(store.start() for store in self._stores))
        self._addresses = [report["address"] for report in ready]
        self._stores_again()
        self._receiver = self._child(
            "receiver", ["stablecast.demo.receiver", *self._common(), "--ledger", str(self._ledger)]
        )
        rate = self.messages / SECONDS
        places = [word for address in self._addresses for word in ("--store", address)]
        self._source = self._child("source", ["stablecast.demo.source", *self._common(), "--rate", str(rate), *places])
        await self._receiver.start()
        await self._source.start()
        self.stage = "sending"

    def _store(self, index: int, listen: str) -> Child:
        directory = self._directory / f"store-{index}"
        arguments = ["stablecast.cli.main", "store", str(directory), "--listen", listen, "--json"]
        return self._child(f"store {index}", arguments)

    def _child(self, name: str, arguments: list[str]) -> Child:
        return Child(name, arguments, self._hear, {VARIABLE: str(self._traces)})

    def _stores_again(self) -> None:
        """From now on a store comes back at the address it had."""
        for index, address in enumerate(self._addresses):
            self._stores[index].listen_at(address)
            self.progress.lbttcp.add(int(address.rpartition(":")[2]))

    def _common(self) -> list[str]:
        return ["--topic", TOPIC, "--resolver", self._resolver, "--messages", str(self.messages)]

    async def _crash(self, crash: Crash) -> None:
        victims = {
            "receiver": [self._receiver],
            "source": [self._source],
            "store": [self._stores[self._chance.randrange(STORES)]],
            "all": [*self._stores, self._receiver, self._source],
        }[crash.kind]
        self.stage = f"kill -9 {', '.join(victim.name for victim in victims)}"
        self.progress.crashes[crash.kind] += 1
        await asyncio.gather(*(victim.kill() for victim in victims))
        await asyncio.sleep(crash.pause)
        await asyncio.gather(*(victim.start() for victim in victims))
        self.stage = "sending"

    async def _stop(self) -> None:
        children = [getattr(self, name, None) for name in ("_source", "_receiver")]
        for child in (*children, *getattr(self, "_stores", []), getattr(self, "_relay", None)):
            if child is not None:
                await child.stop()

    async def _until_delivered(self, count: int) -> None:
        await self._until(lambda: self.progress.delivered >= count)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    def _hear(self, name: str, report: Report) -> None:
        progress = self.progress
        progress.sent = max(progress.sent, report.get("sent", 0))
        progress.stable = max(progress.stable, report.get("stable", 0))
        progress.delivered = max(progress.delivered, report.get("delivered", 0))
        if "lost" in report:
            progress.lost_for_good += report["lost"][1] - report["lost"][0] + 1
        ports = report.get("ports", {})
        progress.lbmr.update(ports.get("lbmr", []))
        progress.lbttcp.update(ports.get("lbttcp", []))
        self.changed.set()

    def _judge(self) -> Outcome:
        lines = [int(line) for line in self._ledger.read_bytes().splitlines()]
        again = self._ledger.with_suffix(".again").read_bytes().splitlines()
        traces = sorted(self._traces.iterdir())
        summary = verify_paths(traces)
        expected = set(range(self.messages))
        return Outcome(
            sent=self.progress.sent,
            delivered=len(expected & set(lines)),
            lost=len(expected - set(lines)),
            duplicates=len(lines) - len(set(lines)),
            redelivered=len(again),
            crashes=self.progress.crashes,
            traces=[str(path) for path in traces],
            verified=not summary.violations and bool(summary.records),
            records=summary.records,
            violations=len(summary.violations),
            ports={"lbmr": sorted(self.progress.lbmr), "lbttcp": sorted(self.progress.lbttcp)},
        )


def workplace(keep: Path | None) -> "tempfile.TemporaryDirectory[str] | None":
    """A directory that goes away at the end, unless the user wants to keep one."""
    if keep is None:
        return tempfile.TemporaryDirectory(prefix="stablecast-demo-")
    keep.mkdir(parents=True, exist_ok=True)
    return None
