"""The director: starts everybody, crashes them at seeded instants, waits until everything arrived."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import attrs

from stablecast.core.errors import StablecastError
from stablecast.evidence.trace.activation import VARIABLE
from stablecast.lab.demo.outcome import Outcome, judge
from stablecast.lab.demo.plan import KINDS, Crash, plan
from stablecast.lab.demo.processes import Child, ChildError, Report, start_all

TOPIC = "demo"
STORES = 3

LIMIT_SECONDS = 120.0
"""When the demo gives up, beyond the time that sending takes."""


class DemoError(StablecastError):
    """The demo did not come to its end, or not to a good one."""


@attrs.define
class Progress:
    """What the processes said last. `lost` numbers are those that the receiver gave up."""

    sent: int = 0
    stable: int = 0
    delivered: int = 0
    lost: set[int] = attrs.field(factory=set)
    lbmr: set[int] = attrs.field(factory=set)
    lbttcp: set[int] = attrs.field(factory=set)
    crashes: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(KINDS, 0))


class Demo:
    """One run. `await run()`, then `judge()`; `stage` says what is going on."""

    def __init__(self, messages: int, seconds: float, seed: int, directory: Path, tell: Callable[[str], None]) -> None:
        """Describe a run.

        Args:
            messages: How many are sent.
            seconds: How long that takes when nothing crashes.
            seed: Fixes the crashes.
            directory: An empty directory for stores, traces and logs.
            tell: Told each thing that happened.
        """
        self.messages = messages
        self.progress = Progress()
        self.stage = "starting"
        self._rate = messages / seconds
        self._limit = LIMIT_SECONDS + seconds
        self._plan = plan(messages, seed)
        self._tell = tell
        self._directory = directory
        self._traces = directory / "traces"
        self._ledger = directory / "received"
        self._changed = asyncio.Event()
        self._trouble: ChildError | None = None
        self._servers: list[Child] = []
        self._clients: list[Child] = []

    async def run(self) -> None:
        """Everything up to the end of the last process. Raises DemoError, ChildError."""
        self._traces.mkdir()
        try:
            async with asyncio.timeout(self._limit):
                await self._play()
            self.stage = "stopping"
            for group in (self._clients, self._servers):
                await asyncio.gather(*(child.stop() for child in group))
        except TimeoutError:
            raise DemoError(
                f"after {self._limit:g} s only {self.progress.delivered} of {self.messages} messages were delivered "
                f"and {self.progress.stable} stable, last stage: {self.stage}"
            ) from None
        finally:  # nobody outlives an interrupt or a failure
            await asyncio.gather(*(child.kill() for child in (*self._clients, *self._servers)))

    def judge(self) -> Outcome:
        """Count and replay; takes a moment."""
        self.stage = "replaying the traces"
        progress = self.progress
        ports = {"lbmr": sorted(progress.lbmr), "lbttcp": sorted(progress.lbttcp)}
        return judge(self.messages, progress.sent, self._ledger, self._traces, progress.crashes, ports)

    async def _play(self) -> None:
        await self._start()
        for crash in self._plan:
            await self._until(lambda crash=crash: self._settled() >= crash.delivered)  # type: ignore[misc]
            await self._crash(crash)
        await self._until(lambda: self._settled() >= self.messages)
        await self._until(lambda: self.progress.stable >= self.messages)
        self._tell(f"all {self.messages} messages are stable and delivered")

    async def _start(self) -> None:
        relay = self._child(self._servers, "lbmrd", "cli.main", "lbmrd", "--listen", "127.0.0.1:0", "--json")
        port = (await relay.start())["port"]
        self.progress.lbmr.add(port)
        stores = [self._store(index) for index in range(STORES)]
        ready = await start_all(stores)
        addresses = [report["address"] for report in ready]
        for store, address in zip(stores, addresses, strict=True):
            store.listen_at(address)  # where clients look for it when it comes back
            self.progress.lbttcp.add(int(address.rpartition(":")[2]))
        common = ["--topic", TOPIC, "--resolver", f"127.0.0.1:{port}", "--messages", str(self.messages)]
        places = [word for address in addresses for word in ("--store", address)]
        rate = ["--rate", str(self._rate)]
        receiver = self._child(self._clients, "receiver", "lab.demo.receiver", *common, "--ledger", str(self._ledger))
        source = self._child(self._clients, "source", "lab.demo.source", *common, *rate, *places)
        await start_all((receiver, source))
        self._tell(f"lbmrd, {STORES} stores, a receiver and a source are up")
        self.stage = "sending"

    def _store(self, index: int) -> Child:
        directory = self._directory / f"store-{index}"
        directory.mkdir()
        place = str(directory), "--listen", "127.0.0.1:0"
        return self._child(self._servers, f"store {index}", "cli.main", "store", *place, "--new", "--json")

    def _child(self, group: list[Child], name: str, module: str, *arguments: str) -> Child:
        child = Child(
            name,
            [f"stablecast.{module}", *arguments],
            self._on_end,
            on_report=self._hear,
            environment={VARIABLE: str(self._traces)},
            log=self._directory / f"{name.replace(' ', '-')}.log",
        )
        group.append(child)
        return child

    async def _crash(self, crash: Crash) -> None:
        victims, names = self._victims(crash)
        self.progress.crashes[crash.kind] += 1
        self._tell(f"kill -9 {names}")
        self.stage = f"{names} down"
        loop = asyncio.get_running_loop()
        since = loop.time()
        await asyncio.gather(*(victim.kill() for victim in victims))
        await asyncio.sleep(crash.seconds)
        self.stage = f"{names} starting again"
        await start_all(victims)
        self._tell(f"{names} back after {loop.time() - since:.1f} s")
        self.stage = "sending"

    def _victims(self, crash: Crash) -> tuple[list[Child], str]:
        receiver, source = self._clients
        _, *stores = self._servers
        match crash.kind:
            case "receiver":
                return [receiver], "receiver"
            case "source":
                return [source], "source"
            case "store":
                store = stores[crash.choice % len(stores)]
                return [store], store.name
            case _:
                return [*stores, receiver, source], "all stores, receiver and source"

    def _settled(self) -> int:
        return self.progress.delivered + len(self.progress.lost)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            if self._trouble is not None:
                raise self._trouble
            self._changed.clear()
            await self._changed.wait()

    def _on_end(self, error: ChildError) -> None:
        self._trouble = error
        self._changed.set()

    def _hear(self, report: Report) -> None:
        progress = self.progress
        progress.sent = max(progress.sent, report.get("sent", 0))
        progress.stable = max(progress.stable, report.get("stable", 0))
        progress.delivered = max(progress.delivered, report.get("delivered", 0))
        if "lost" in report:
            first, last = report["lost"]
            progress.lost.update(range(first, last + 1))
            self._tell(f"the receiver gave up messages {first} to {last}")
        ports = report.get("ports", {})
        progress.lbmr.update(ports.get("lbmr", []))
        progress.lbttcp.update(ports.get("lbttcp", []))
        self._changed.set()
