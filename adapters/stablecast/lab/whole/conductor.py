"""The run of a whole world: its programs, its faults, and the wait until everything has settled."""

import asyncio
import errno
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from stablecast.client import resolution
from stablecast.core.machine.units import MILLISECOND
from stablecast.lab.whole import applications
from stablecast.lab.whole.history_checker import gather, undelivered
from stablecast.lab.whole.schedule import (
    DISK_FAULTS,
    FINDER,
    HORIZON_MS,
    PROGRAMS,
    RECEIVERS,
    SOURCE,
    STORES,
    WHOLE_BYTES,
    Do,
    Fault,
    Schedule,
)
from stablecast.lab.world import programs
from stablecast.lab.world.descriptor_calls import DESCRIPTOR_LIMIT
from stablecast.lab.world.network import Path
from stablecast.lab.world.process import Process
from stablecast.lab.world.programs import DATA, TRACES, StoreProgram
from stablecast.lab.world.world import World

TOPIC = "orders"

READY_SECONDS = 1.0
"""Time that stores and the relay have before the applications start."""

SETTLE_SECONDS = 90.0
"""Time after the last fault within which everything must be stable and delivered."""

MAX_STARTS = 40
"""Starts of one program; one that ends by itself again and again is left alone."""

STEP_SECONDS = 0.25
"""Time between two looks whether everything has settled."""

SLOW_SECONDS = 0.02
"""Time that a slow receiver needs for a message."""

SESSIONS: Mapping[str, int] = {SOURCE: 11, **{name: 21 + index for index, name in enumerate(RECEIVERS)}}

Line = dict[str, Any]


@attrs.define
class WorldHistory:
    """The history of one start of an application; its lines survive the process."""

    run: str
    finishing: asyncio.Event
    lines: list[Line]
    now: Callable[[], int]

    def write(self, what: str, **fields: object) -> None:
        """Append a line with the time and the name of the run."""
        self.lines.append({"t": self.now(), "is": what, "run": self.run, **fields})


class Conductor:
    """Start the programs of a world, strike them, and wait for the end.

    Attributes:
        lines: What the applications and the conductor wrote.
    """

    def __init__(self, world: World, schedule: Schedule, *, traced: bool) -> None:
        """Prepare the hosts of a schedule."""
        self.world = world
        self.schedule = schedule
        self.lines: list[Line] = []
        self.processes: dict[str, Process] = {}
        self.output: dict[str, list[str]] = {}
        self._traced = traced
        self._runs: dict[str, int] = {}
        self._calm = False
        self._twins: dict[str, Process] = {}
        self._excused = {fault.who for fault in schedule.faults if fault.do in DISK_FAULTS}
        for name in PROGRAMS:
            world.host(name)
        self._stores = {
            name: StoreProgram(world, name, options=schedule.setup.store_options, traced=traced) for name in STORES
        }

    # ---------------------------------------------------------------------------------------------------------- life

    async def run(self) -> None:
        """Play the schedule."""
        if "ume_receiver_paced_persistence" in dict(self.schedule.setup.options):
            self.mark("paced")
        for name in (FINDER, *STORES):
            self.start(name)
        await asyncio.sleep(READY_SECONDS)
        for name in (SOURCE, *self._early()):
            self.start(name)
        began = self.world.now
        for at, act in sorted(self._steps(), key=lambda step: step[0]):
            await self._until(began + at * MILLISECOND)
            act()
        await self._until(began + HORIZON_MS * MILLISECOND)
        await self._settle()

    def _early(self) -> Sequence[str]:
        return RECEIVERS[:-1] if self.schedule.setup.late else RECEIVERS

    async def _until(self, when: int) -> None:
        await asyncio.sleep(max(0, when - self.world.now) / 1e9)

    def _steps(self) -> list[tuple[int, Callable[[], None]]]:
        steps: list[tuple[int, Callable[[], None]]] = []
        for fault in self.schedule.faults:
            steps.append((fault.at_ms, partial(self._strike, fault)))
            steps.append((fault.at_ms + fault.span_ms, partial(self._mend, fault)))
        return steps

    async def _settle(self) -> None:
        """Heal everything, and wait until everything sent is stable and delivered."""
        self._calm = True
        self.mark("healed")
        for name in PROGRAMS:
            self._restore(name)
        for process in self.processes.values():
            if signal.SIGUSR1 in process.signals:
                process.signal(signal.SIGUSR1)
        waited = 0.0
        while (open_ := self._open()) and waited < SETTLE_SECONDS:
            await asyncio.sleep(STEP_SECONDS)
            waited += STEP_SECONDS
            for name in PROGRAMS:
                if self.processes[name].gone and self._runs[name] < MAX_STARTS:
                    self.start(name)
        if open_:
            self.mark("hang", text=f"{SETTLE_SECONDS:g} s after the last fault {open_}")
        else:
            await asyncio.sleep(STEP_SECONDS)

    def _open(self) -> str:
        """Return what has not settled; empty if everything has."""
        quiet = {line["run"] for line in self.lines if line["is"] == "quiet"}
        newest = f"{SOURCE}.{self._runs[SOURCE]}"
        if newest not in quiet:
            return f"{newest} is not silent with everything stable"
        facts = gather(self.lines)
        for name in RECEIVERS:
            missing, unseen = undelivered(facts, name)
            if missing or unseen:
                return f"{name} has not got {len(missing) + sum(map(len, unseen.values()))} stable messages"
        return ""

    def mark(self, what: str, **fields: object) -> None:
        """Append a line of the conductor."""
        self.lines.append({"t": self.world.now, "is": what, "run": "conductor", **fields})

    # ------------------------------------------------------------------------------------------------------- programs

    def start(self, name: str) -> None:
        """Start a program, again if it ran before."""
        before = self.processes.get(name)
        if before is not None:
            self._note_end(name, before)
        self._runs[name] = self._runs.get(name, 0) + 1
        if name in self._stores:
            store = self._stores[name]
            store.resolver = ()
            self.processes[name] = store.start()
        elif name == FINDER:
            begin = programs.start_service if self.schedule.setup.finder == "service" else programs.start_relay
            self.processes[name] = begin(self.world, name)
        else:
            run = f"{name}.{self._runs[name]}"
            self.processes[name] = self.world.start(partial(self._application, name, run, name), name)

    def printed(self) -> dict[str, str]:
        """Return what each start of a program printed."""
        newest = {f"{name}.{self._runs[name]}": process.output for name, process in self.processes.items()}
        return {run: "\n".join(lines) for run, lines in (self.output | newest).items()}

    def _note_end(self, name: str, process: Process) -> None:
        """Keep what a program printed, and mark an end that nobody ordered."""
        run = f"{name}.{self._runs[name]}"
        self.output[run] = process.output
        if not process.killed and name not in self._excused:
            self.mark("ended", who=name, text=f"{run} ended by itself: {process.error or process.status!r}")

    def _start_twin(self, name: str) -> None:
        """Start a second process of a client on a host of its own."""
        host = f"{name}-twin"
        run = f"{host}.{self.world.now}"
        self.world.host(host)
        self._twins[name] = self.world.start(partial(self._application, name, run, host), host)

    def _end_twin(self, name: str) -> None:
        """Kill the second process, and start the first one again: it may have given up for good."""
        twin = self._twins.pop(name, None)
        if twin is not None:
            twin.kill(ordered=True)
            self.processes[name].kill(ordered=True)
            self.start(name)

    async def _application(self, name: str, run: str, host: str) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        finishing = asyncio.Event()
        loop.add_signal_handler(signal.SIGUSR1, finishing.set)
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        if self._calm:
            finishing.set()
        history = WorldHistory(run, finishing, self.lines, lambda: self.world.now)
        await applications.run("source" if name == SOURCE else "receiver", history, self._job(name, host))

    def _job(self, name: str, host: str) -> Mapping[str, Any]:
        setup, address = self.schedule.setup, self.world.host(host).address
        job: dict[str, Any] = {
            "interface": address,
            "session": SESSIONS[name],
            "owner": name,
            "topics": [TOPIC],
            "resolution": {**self._resolution(address), "trace": TRACES if self._traced else None},
        }
        if name == SOURCE:
            stores = [store.address for store in self._stores.values()]
            job |= {"stores": stores, "pause": setup.pause_ms / 1e3, "burst": setup.burst, "size": setup.size}
            large = setup.size > WHOLE_BYTES and "transport" in dict(setup.options)
            return job | {"options": dict(setup.options), "again": True, "large": large}
        mode = setup.modes[RECEIVERS.index(name)]
        job["options"] = dict(setup.receiver_options)
        return job | {"mode": mode, "delay": SLOW_SECONDS if mode == "slow" else 0.0}

    def _resolution(self, address: str) -> dict[str, Any]:
        finder = self.world.host(FINDER).address
        match self.schedule.setup.finder:
            case "service":
                return {"resolver_service": [f"{finder}:{programs.SERVICE_PORT}"]}
            case "multicast":
                return {"resolution": resolution(options={"resolver_multicast_interface": address})}
            case _:
                return {"resolver": [f"{finder}:{programs.RELAY_PORT}"]}

    # --------------------------------------------------------------------------------------------------------- faults

    def _strike(self, fault: Fault) -> None:
        """Begin a fault; a program that has not started yet suffers none."""
        if fault.who not in self.processes:
            return
        self.mark("fault", who=fault.who, text=str(fault))
        world, host, process = self.world, self.world.host(fault.who), self.processes[fault.who]
        match fault.do:
            case Do.KILL:
                process.kill(ordered=True)
            case Do.POWER:
                process.killed = True
                host.cut_power()
            case Do.STOP:
                process.stop()
            case Do.CUT | Do.MUTE:
                for other in self._others(fault):
                    world.network.cut(host.address, other)
                    if fault.do is Do.CUT:
                        world.network.cut(other, host.address)
            case Do.NOISE:
                self._noise(fault, fault.amount / 100)
            case Do.RESET:
                for end in list(world.network.ends):
                    if host.address in (end.here, end.there):
                        end.fail(errno.ECONNRESET)
            case _:
                self._strike_disk_or_clock(fault)

    def _strike_disk_or_clock(self, fault: Fault) -> None:
        host = self.world.host(fault.who)
        match fault.do:
            case Do.SLOW:
                host.disk.slow(fault.amount * MILLISECOND)
            case Do.FULL:
                host.disk.full(fault.amount)
            case Do.FAIL if fault.amount % 2:
                host.disk.fail_syncs(fault.amount)
            case Do.FAIL:
                host.disk.fail_writes(fault.amount)
            case Do.ROT:
                host.disk.rot(self.world.kernel.random, str(DATA))
            case Do.LEAP:
                host.clock.leap(fault.amount * MILLISECOND)
            case Do.DRIFT:
                host.clock.drift(fault.amount)
            case Do.SCARCE:
                process = self.processes[fault.who]
                process.limit -= max(0, process.free_descriptors - fault.amount)
            case Do.TWIN if fault.who not in self._twins:
                self._start_twin(fault.who)

    def _mend(self, fault: Fault) -> None:
        """End a fault."""
        if fault.who not in self.processes:
            return
        self.mark("heal", who=fault.who, text=str(fault))
        host = self.world.host(fault.who)
        match fault.do:
            case Do.KILL | Do.POWER:
                self._restore_program(fault.who)
            case Do.STOP:
                self.processes[fault.who].resume()
            case Do.CUT | Do.MUTE:
                for other in self._others(fault):
                    self.world.network.heal(host.address, other)
                    self.world.network.heal(other, host.address)
            case Do.NOISE:
                self._noise(fault, 0.0)
            case Do.SLOW | Do.FULL | Do.FAIL:
                host.disk.heal()
            case Do.SCARCE:
                self.processes[fault.who].limit = DESCRIPTOR_LIMIT
            case Do.TWIN:
                self._end_twin(fault.who)
            case _:
                pass

    def _others(self, fault: Fault) -> list[str]:
        names = [fault.other] if fault.other else [name for name in PROGRAMS if name != fault.who]
        return [self.world.host(name).address for name in names]

    def _noise(self, fault: Fault, share: float) -> None:
        here, usual = self.world.host(fault.who).address, Path()
        for other in (self.world.host(name).address for name in PROGRAMS if name != fault.who):
            for path in (self.world.network.path(here, other), self.world.network.path(other, here)):
                path.loss = path.duplication = path.reordering = share
                path.jitter_ns = usual.jitter_ns * (100 if share else 1)

    def _restore(self, name: str) -> None:
        """End every fault of a program and its host."""
        host = self.world.host(name)
        host.disk.heal()
        for other in PROGRAMS:
            if other != name:
                self.world.network.heal(host.address, self.world.host(other).address)
        self._noise(Fault(0, Do.NOISE, name), 0.0)
        self._end_twin(name)
        if name in self.processes:
            self.processes[name].limit = DESCRIPTOR_LIMIT
            if not self.processes[name].runs:
                self.processes[name].resume()
        self._restore_program(name)

    def _restore_program(self, name: str) -> None:
        process = self.processes.get(name)
        if process is None or process.gone:
            self.start(name)
