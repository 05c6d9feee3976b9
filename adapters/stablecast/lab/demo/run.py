"""Run the demo: start all processes, crash them at seeded times, wait for every message, judge and print the result."""

import asyncio
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from stablecast.core.errors import StablecastError
from stablecast.evidence.trace.activation import VARIABLE
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.lab.demo.picture import DemoScene, ProcessPhase, drawn
from stablecast.runtime.child_programs import Child, ChildError, Report, start_all
from stablecast.runtime.event_loop import on_ending
from stablecast.text import plural
from stablecast.text.console import say

TOPIC = "demo"
STORES = 3

LIMIT_SECONDS = 120.0
"""Time limit in seconds, in addition to the time of sending."""

PROCESSES = ("source", *(f"store {index}" for index in range(STORES)), "receiver")
"""Processes in the order of the picture."""

KINDS = ("receiver", "source", "store", "all")
"""Victims of the crashes, in order."""

SPREAD = 0.04
"""Largest deviation of a crash from its place, as a fraction of the messages."""

AWAY_SECONDS = (0.2, 0.6)
"""Shortest and longest time until a victim is started again, in seconds."""


class DemoError(StablecastError):
    """Report a demo that did not finish, or lost messages."""


@attrs.define
class DemoProgress:
    """Hold the newest reports of the processes. `lost` are the numbers that the receiver gave up."""

    sent: int = 0
    stable: int = 0
    delivered: int = 0
    lost: set[int] = attrs.field(factory=set)
    lbmr: set[int] = attrs.field(factory=set)
    lbttcp: set[int] = attrs.field(factory=set)
    crashes: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(KINDS, 0))
    conditions: dict[str, ProcessPhase] = attrs.field(factory=lambda: dict.fromkeys(PROCESSES, ProcessPhase.STARTS))
    registered: frozenset[str] = frozenset()


@attrs.frozen
class Crash:
    """Kill a process after `delivered` messages, for `seconds`. `choice` selects one of several candidates."""

    kind: str
    delivered: int
    seconds: float
    choice: int


def plan(messages: int, seed: int) -> list[Crash]:
    """Return one crash of each kind; equal seeds give equal crashes."""
    chance = random.Random(seed)  # noqa: S311  # a schedule, not a secret
    crashes = []
    for place, kind in enumerate(KINDS, 1):
        at = place / (len(KINDS) + 1) + chance.uniform(-SPREAD, SPREAD)
        crashes.append(Crash(kind, max(1, int(at * messages)), chance.uniform(*AWAY_SECONDS), chance.getrandbits(16)))
    return crashes


@attrs.frozen
class DemoOutcome:
    """Hold the result; `problems` has a sentence for every failure.

    `ports` are all used ports by protocol, to decode a capture of the demo.
    """

    sent: int
    delivered: int
    lost: int
    duplicates: int
    redelivered: int
    crashes: Mapping[str, int]
    traces: list[str]
    verified: bool
    records: int
    violations: int
    ports: Mapping[str, list[int]]
    problems: list[str]

    @property
    def good(self) -> bool:
        """True if every message arrived once and every trace could be replayed."""
        return self.verified and not self.problems


def judge(
    messages: int, sent: int, ledger: Path, traces: Path, crashes: Mapping[str, int], ports: Mapping[str, list[int]]
) -> DemoOutcome:
    """Count the messages in the receiver's file `ledger`, and replay every trace in the directory `traces`."""
    numbers = [int(line) for line in ledger.read_bytes().splitlines()]
    again = ledger.with_suffix(".again").read_bytes().splitlines()
    missing = sorted(set(range(messages)) - set(numbers))
    duplicates = len(numbers) - len(set(numbers))
    files = sorted(traces.glob("*.sct"))
    summary = verify_paths(files)
    problems = [f"message {number} was not delivered" for number in missing]
    if duplicates:
        problems.append(plural(duplicates, "message", "was processed twice", "were processed twice"))
    problems += [report.error for report in summary.files if report.error is not None]
    problems += [f"{violation.path.name}: {violation.rule}: {violation.text}" for violation in summary.violations]
    return DemoOutcome(
        sent=sent,
        delivered=messages - len(missing),
        lost=len(missing),
        duplicates=duplicates,
        redelivered=len(again),
        crashes=crashes,
        traces=[str(path) for path in files],
        verified=summary.clean and summary.records > 0,
        records=summary.records,
        violations=len(summary.violations),
        ports=ports,
        problems=problems,
    )


class Demo:
    """Run the demo once: `await run()`, then `judge()`. `stage` describes the current activity."""

    def __init__(
        self, messages: int, seconds: float, seed: int, directory: Path, report: Callable[[str], None]
    ) -> None:
        """Describe a run.

        Args:
            messages: Number of messages to send.
            seconds: Duration of sending without crashes.
            seed: Seed of the crashes.
            directory: Empty directory for stores, traces and logs.
            report: Called with a line for each event.
        """
        self.messages = messages
        self.progress = DemoProgress()
        self.stage = "starting"
        self._rate = messages / seconds
        self._limit = LIMIT_SECONDS + seconds
        self._plan = plan(messages, seed)
        self._report = report
        self._directory = directory
        self._traces = directory / "traces"
        self._ledger = directory / "received"
        self._changed = asyncio.Event()
        self._trouble: ChildError | None = None
        self._servers: list[Child] = []
        self._clients: list[Child] = []
        self._names: dict[str, str] = {}

    async def run(self) -> None:
        """Run until the last process has ended. Raises DemoError, ChildError."""
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
        finally:  # No child survives an interrupt or a failure.
            await asyncio.gather(*(child.kill() for child in (*self._clients, *self._servers)))

    def judge(self) -> DemoOutcome:
        """Count the messages and replay the traces; this may take seconds."""
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
        self._report(f"all {self.messages} messages are stable and delivered")

    async def _start(self) -> None:
        relay = self._child(self._servers, "lbmrd", "cli.main", "lbmrd", "--listen", "127.0.0.1:0", "--json")
        port = (await relay.start())["port"]
        self.progress.lbmr.add(port)
        stores = [self._store(index) for index in range(STORES)]
        ready = await start_all(stores)
        addresses = [report["address"] for report in ready]
        for store, address in zip(stores, addresses, strict=True):
            store.listen_at(address)  # Clients expect the store at this address after a restart.
            self.progress.lbttcp.add(int(address.rpartition(":")[2]))
        common = {"topic": TOPIC, "resolver": [f"127.0.0.1:{port}"], "messages": self.messages}
        reading = json.dumps({**common, "ledger": str(self._ledger)})
        sending = json.dumps({**common, "rate": self._rate, "stores": addresses})
        self._names = {address: store.name for address, store in zip(addresses, stores, strict=True)}
        receiver = self._child(self._clients, "receiver", "lab.demo.receiver", reading)
        source = self._child(self._clients, "source", "lab.demo.source", sending)
        await start_all((receiver, source))
        self.progress.conditions = dict.fromkeys(PROCESSES, ProcessPhase.RUNS)
        self._report(f"lbmrd, {STORES} stores, a receiver and a source are up")
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
            on_report=self._on_report,
            environment={VARIABLE: str(self._traces)},
            log=self._directory / f"{name.replace(' ', '-')}.log",
        )
        group.append(child)
        return child

    async def _crash(self, crash: Crash) -> None:
        victims, names = self._victims(crash)
        self.progress.crashes[crash.kind] += 1
        self._report(f"kill -9 {names}")
        self.stage = f"{names} down"
        loop = asyncio.get_running_loop()
        since = loop.time()
        conditions = self.progress.conditions
        conditions.update((victim.name, ProcessPhase.KILLED) for victim in victims)
        await asyncio.gather(*(victim.kill() for victim in victims))
        await asyncio.sleep(crash.seconds)
        self.stage = f"{names} starting again"
        conditions.update((victim.name, ProcessPhase.STARTS) for victim in victims)
        await start_all(victims)
        conditions.update((victim.name, ProcessPhase.RUNS) for victim in victims)
        self._report(f"{names} back after {loop.time() - since:.1f} s")
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

    def _on_report(self, report: Report) -> None:
        progress = self.progress
        progress.sent = max(progress.sent, report.get("sent", 0))
        progress.stable = max(progress.stable, report.get("stable", 0))
        progress.delivered = max(progress.delivered, report.get("delivered", 0))
        if "registered" in report:
            progress.registered = frozenset(self._names.get(address, address) for address in report["registered"])
        if "lost" in report:
            first, last = report["lost"]
            progress.lost.update(range(first, last + 1))
            self._report(f"the receiver gave up messages {first} to {last}")
        ports = report.get("ports", {})
        progress.lbmr.update(ports.get("lbmr", []))
        progress.lbttcp.update(ports.get("lbttcp", []))
        self._changed.set()


REFRESHES = 10
"""Refreshes per second."""

MAX_PROBLEMS = 5
"""Most problems that are listed for people; JSON has all."""


def run(messages: int, seconds: float, seed: int, keep: Path | None, as_json: bool) -> int:
    """Run the demo, show progress on standard error, print the result on standard output; return the exit status.

    Raises:
        DemoError, ChildError: the demo failed. The message says why and where its files are.
    """
    console = Console(stderr=True, highlight=False, quiet=as_json and not sys.stderr.isatty())
    with workplace(keep) as directory:
        started = time.monotonic()
        demo = Demo(messages, seconds, seed, directory, lambda text: console.print(_when(started), text))
        with Live(DemoView(demo, started), console=console, refresh_per_second=REFRESHES, transient=True):
            _run(demo)
            outcome = demo.judge()
        if as_json:
            say(attrs.asdict(outcome))
        else:
            Console(highlight=False).print(_table(outcome))
        if not outcome.good:
            raise DemoError("; ".join(outcome.problems[:MAX_PROBLEMS]) or "there is no trace to judge")
    return 0


@contextmanager
def workplace(keep: Path | None) -> Iterator[Path]:
    """Yield a directory that is removed at the end, unless the user keeps it or the demo fails.

    Raises DemoError if the directory to keep is in use. A StablecastError of the body becomes a DemoError that names
    the place.
    """
    place = keep or Path(tempfile.mkdtemp(prefix="stablecast-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise DemoError(f"the directory {place} is not empty: name a new one")
    kept = keep is not None
    try:
        yield place
    except StablecastError as error:
        kept = True
        raise DemoError(f"{error}; stores, traces and logs are in {place}") from error
    finally:
        if not kept:
            shutil.rmtree(place)


def _run(demo: Demo) -> None:
    """Run the demo. Raises KeyboardInterrupt when it was interrupted."""
    try:
        asyncio.run(_interruptible(demo))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _interruptible(demo: Demo) -> None:
    """Run the demo until its end or a signal."""
    running = asyncio.current_task()
    assert running is not None
    on_ending(running.cancel)
    await demo.run()


def _when(started: float) -> str:
    return f"{time.monotonic() - started:6.1f} s "


class DemoView:
    def __init__(self, demo: Demo, started: float) -> None:
        """Show a demo that started at this reading of `time.monotonic`."""
        self._demo = demo
        self._started = started

    def __rich__(self) -> Text:
        demo, progress = self._demo, self._demo.progress
        return drawn(
            DemoScene(
                demo.messages,
                progress.sent,
                progress.stable,
                progress.delivered,
                progress.conditions,
                progress.registered,
                f"{_when(self._started)} {demo.stage}",
            )
        )


def _table(outcome: DemoOutcome) -> Table:
    table = Table(title="stablecast demo", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    crashes = ", ".join(f"{kind} {count}x" for kind, count in outcome.crashes.items())
    table.add_row("verdict", "[green]every message arrived[/]" if outcome.good else "[red]failed[/]")
    table.add_row("sent", f"{plural(outcome.sent, 'message')} to three stores and one receiver")
    table.add_row("kill -9", crashes)
    table.add_row("delivered", f"{outcome.delivered}, lost {outcome.lost}, processed twice {outcome.duplicates}")
    table.add_row("redelivered", f"{outcome.redelivered} after crashes, recognized in the receiver's own file")
    table.add_row(
        "replayed",
        f"{plural(outcome.records, 'record')}, {plural(len(outcome.traces), 'trace')}, "
        f"{plural(outcome.violations, 'violation')}",
    )
    return table
