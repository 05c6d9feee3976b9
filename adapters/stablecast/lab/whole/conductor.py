"""The run of a whole world: its programs, its faults, and the wait until everything has settled."""

import asyncio
import errno
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from stablecast.client import Receiver, Source
from stablecast.core.machine.units import MILLISECOND
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.whole import applications
from stablecast.lab.whole.application_history import Line, WorldHistory
from stablecast.lab.whole.copies import StoreCopies, asked_in_vain, has_its_due, read_copies, reported_stable
from stablecast.lab.whole.jobs import JobWriter
from stablecast.lab.whole.quiescence import is_lacking, unsettled
from stablecast.lab.whole.schedule import (
    DAEMON,
    DISK_FAULTS,
    PACED,
    RECEIVERS,
    ROUTERS,
    SECOND_RECEIVER,
    SIDES,
    SOURCE,
    STORES,
    WorldSchedule,
)
from stablecast.lab.world import programs
from stablecast.lab.world.descriptor_calls import DESCRIPTOR_LIMIT
from stablecast.lab.world.disk import DiskBackup
from stablecast.lab.world.network import Path as NetworkPath
from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.programs import DATA, DaemonProgram, StoreProgram
from stablecast.lab.world.world import OBSERVER, World
from stablecast.runtime.event_loop import limit_scarcity_reports

READY_SECONDS = 0.4
"""Time that stores and the relay have before the applications start."""

ROUTED_SECONDS = 5.0
"""Time that the router of two domains has besides: it listens for 2.5 s, and contexts learn of its routes after it."""

SETTLE_SECONDS = 90.0
"""Time after the last fault within which everything must be stable and delivered."""

MAX_STARTS = 40
"""Starts of one program; one that ends by itself again and again is left alone."""

STEP_SECONDS = 0.25
"""Time between two looks whether everything has settled; five times that of looks whether programs have ended."""

CLIENT_END_SECONDS = 20.0
"""Time that clients have to deregister and end when all is settled."""

SERVER_END_SECONDS = 5.0
"""Time that stores, relays and services have to end. Clients that are connected may not delay them."""

ROUTER_END_SECONDS = 7.0
"""Time that a router has to end: it drains for 5 s at most."""

EMPTY_STORES = frozenset({Kind.WIPE, Kind.RESTORE})
SHORT_WAIT = ("source-activity-timeout=1500", "receiver-activity-timeout=1500")
"""Options of the stores in every second world in which one loses its disk: it grants soon again, and heals in time.

In the other worlds it grants nothing until long after the last fault, and the two other stores must do.
"""


class Conductor(JobWriter):
    """Start the programs of a world, strike them, and wait for the end.

    Attributes:
        lines: What the applications and the conductor wrote.
    """

    def __init__(self, world: World, schedule: WorldSchedule, *, traced: bool) -> None:
        self.world = world
        self.schedule = schedule
        self.lines: list[Line] = []
        self.processes: dict[str, SimulatedProcess] = {}
        self.output: dict[str, list[str]] = {}
        self._traced = traced
        self._runs: dict[str, int] = {}
        self._calm = False
        self._twins: dict[str, SimulatedProcess] = {}
        self._closing: dict[str, int] = {}
        self._backups: dict[str, DiskBackup] = {}
        self._weak: set[str] = set()
        self._departures, self._owner = 0, SOURCE
        self._excused = {fault.who for fault in schedule.faults if fault.kind in DISK_FAULTS}
        self.finders = schedule.setup.finders
        self.routers = schedule.setup.routers
        self.names = (*schedule.setup.sources, *RECEIVERS, *STORES, *self.finders, *self.routers)
        for name in self.names:
            self._place(name, name)
        self._stores = {name: self._store(name) for name in STORES}

    def _store(self, name: str) -> StoreProgram | DaemonProgram:
        options = self.schedule.setup.store_options
        if self.schedule.seed % 2 and any(fault.kind in EMPTY_STORES for fault in self.schedule.faults):
            options += SHORT_WAIT
        if self.schedule.setup.daemon and name == DAEMON:
            return DaemonProgram(self.world, name, options=options, traced=self._traced)
        finders = self._finder_addresses(name)
        relays = [at for kind, at in finders if kind == "resolver"]
        # A store needs relays to be named. Where there are two domains it needs them, or services, to learn routes.
        services = [at for kind, at in finders if kind == "resolver_service"] if self.routers else []
        return StoreProgram(self.world, name, relays, options, self._traced, services=services)

    def _place(self, host: str, like: str) -> None:
        """Make a host, in the domain of another one if the world has two."""
        address = self.world.host(host).address
        if domain := self.schedule.setup.domain(like):
            self.world.network.place(address, domain)

    # ---------------------------------------------------------------------------------------------------------- life

    async def run(self) -> None:
        setup = self.schedule.setup
        if PACED in dict(setup.options):
            self.mark("paced")
        returns = setup.ids != "new"  # Receivers with new RegIDs are others.
        self.mark("limited", messages=setup.kept, returns=returns)
        self.mark("prompt", returns=returns, spare=setup.spare)
        if self.routers:
            beyond = {name: [store for store in STORES if setup.is_apart(name, store)] for name in RECEIVERS}
            self.mark("domains", routers=self.routers, linked=setup.linked, beyond=beyond)
        for name in (*self.finders, *STORES, *self.routers):
            self.start(name)
        await asyncio.sleep(READY_SECONDS + (ROUTED_SECONDS if self.routers else 0.0))
        for name in (*setup.sources, *(RECEIVERS[:-1] if self.schedule.setup.late else RECEIVERS)):
            self.start(name)
        began = self.world.now
        for at, act in sorted(self._steps(), key=lambda step: step[0]):
            await self._until(began + at * MILLISECOND)
            act()
        await self._until(began + self.schedule.horizon_ms * MILLISECOND)
        await self._settle()

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
        for name in self.names:
            self._restore(name)
        for process in self.processes.values():
            if signal.SIGUSR1 in process.signals:
                process.signal(signal.SIGUSR1)
        waited = 0.0
        while (open_ := self._open()) and waited < SETTLE_SECONDS:
            await asyncio.sleep(STEP_SECONDS)
            waited += STEP_SECONDS
            for name in self.names:
                if self.processes[name].gone and self._runs[name] < MAX_STARTS:
                    self.start(name)
        if open_:
            self.mark("hang", text=f"{SETTLE_SECONDS:g} s after the last fault {open_}")
        else:
            await self._end()

    async def _end(self) -> None:
        """End all programs, and mark those that do not end or fail.

        Relays and services end while clients are connected to them. Stores end last, because clients deregister there.
        """
        await asyncio.sleep(STEP_SECONDS)
        clients = (*self.schedule.setup.sources, *RECEIVERS)
        leaving = signal.SIGUSR2 if self.schedule.setup.ending == "deregister" else signal.SIGTERM
        for names, number, limit in (
            (() if self.routers else self.finders, signal.SIGTERM, SERVER_END_SECONDS),
            (clients, leaving, CLIENT_END_SECONDS),
            ((*STORES, *(self.finders if self.routers else ())), signal.SIGTERM, SERVER_END_SECONDS),
            (self.routers, signal.SIGTERM, ROUTER_END_SECONDS),
        ):
            for name in names:
                self._ask_to_end(name, number)
            waited = 0.0
            while (left := [name for name in names if not self.processes[name].gone]) and waited < limit:
                await asyncio.sleep(STEP_SECONDS / 5)
                waited += STEP_SECONDS / 5
            for name in left:
                self.mark("hang", text=f"{name} did not end within {limit:g} s after signal {number.name}")
            for name in names:
                self._note_end(name, self.processes[name])

    def _open(self) -> str:
        """Return what has not settled; empty if everything has."""
        newest = [f"{name}.{self._runs[name]}" for name in self.schedule.setup.sources]
        return unsettled(self.schedule, self.lines, newest, self._lacks)

    def _lacks(self, name: str) -> bool:
        """Return whether a store lacks messages, not counting those that no store has and that were never stable."""
        output = self.processes[name].output
        if not is_lacking(output):
            return False
        vain = asked_in_vain(output)
        if not vain or any(self.processes[store].gone for store in STORES):
            return True
        journals = {store: self._copies_of(store) for store in STORES}
        others = [one for store in STORES if store != name for one in journals[store]]
        return not has_its_due(vain, journals[name], others, reported_stable(self.lines, self._identities()))

    def _copies_of(self, name: str) -> list[StoreCopies]:
        """Read the journals of a host."""
        disk, own = self.world.host(name).disk, self.world.host(OBSERVER).disk
        return [read_copies(disk, one, own, Path("/copies") / name) for one in self._stores[name].journals]

    def mark(self, what: str, **fields: object) -> None:
        self.lines.append({"t": self.world.now, "is": what, "run": "conductor", **fields})

    # ------------------------------------------------------------------------------------------------------- programs

    def start(self, name: str) -> None:
        """Start a program, again if it ran before."""
        before = self.processes.get(name)
        if before is not None:
            self._note_end(name, before)
        self._runs[name] = self._runs.get(name, 0) + 1
        self._closing.pop(name, None)
        if name in self._stores:
            self.processes[name] = self._stores[name].start()
        elif name in self.routers:
            source = {"transport": self.schedule.setup.leaving} if self.schedule.setup.leaving else {}
            self.processes[name] = programs.start_router(
                self.world, name, self._portals(name), source, self._link(name)
            )
        elif name in self.finders:
            begin = programs.start_service if self._is_service(name) else programs.start_relay
            self.processes[name] = begin(self.world, name)
        else:
            run = f"{name}.{self._runs[name]}"
            self.processes[name] = self.world.start(partial(self._application, name, run, name), name)

    def printed(self) -> dict[str, str]:
        """Return what each start of a program printed."""
        newest = {f"{name}.{self._runs[name]}": process.output for name, process in self.processes.items()}
        return {run: "\n".join(lines) for run, lines in (self.output | newest).items()}

    def _note_end(self, name: str, process: SimulatedProcess) -> None:
        """Keep what a program printed, and mark an end that nobody ordered."""
        run = f"{name}.{self._runs[name]}"
        self.output[run] = process.output
        asked = self._closing.get(name, 0)
        if process.killed or name in self._excused:
            if process.gone and not process.killed and not asked:
                self.mark("gone", who=name)
            return
        if not asked:
            self.mark("ended", who=name, text=f"{run} ended by itself: {process.error or process.status!r}")
        elif process.gone and (process.error is not None or (asked == 1 and process.status)):
            self.mark("ended", who=name, text=f"{run} was asked to end, and failed: {process.error or process.status}")

    def _ask_to_end(self, name: str, number: signal.Signals) -> None:
        """Send a program a signal after which it ends. Before it has a handler, that is what the signal does."""
        self._closing[name] = self._closing.get(name, 0) + 1
        process = self.processes[name]
        if number in process.signals:
            if name == SOURCE and number is signal.SIGUSR2 and not self._calm:
                self._departures += 1
                self._owner = f"{SOURCE} after {self._departures}"  # It comes back as another one.
                self.mark("departed", owner=self._owner)
            process.signal(number)
        else:
            process.kill(ordered=True)

    def _start_twin(self, name: str) -> None:
        """Start a second process of a client on a host of its own."""
        host = f"{name}-twin"
        run = f"{host}.{self.world.now}"
        self._place(host, name)
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
        members: list[Source | Receiver] = []
        limit_scarcity_reports(loop)
        loop.add_signal_handler(signal.SIGUSR1, finishing.set)
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        leaving: list[asyncio.Task[None]] = []
        loop.add_signal_handler(
            signal.SIGUSR2, lambda: leaving.append(loop.create_task(applications.leave(members, task)))
        )
        if self._calm:
            finishing.set()
        role = "source" if name in self.schedule.setup.sources else "receiver"
        names = [name, SECOND_RECEIVER] if self.schedule.setup.second and name == RECEIVERS[-1] else [name]
        try:
            async with asyncio.TaskGroup() as contexts:
                for number, one in enumerate(names):
                    history = WorldHistory(run + "b" * number, finishing, self.lines, lambda: self.world.now)
                    job = {**self._job(one, host, members), "leaving": leaving}
                    contexts.create_task(applications.run(role, history, job))
        except asyncio.CancelledError:
            pass  # The signal asked for the end.

    # --------------------------------------------------------------------------------------------------------- faults

    def _strike(self, fault: Fault) -> None:
        """Begin a fault; a program that has not started yet suffers none."""
        if fault.who not in self.processes or not self._permits(fault):
            return
        self.mark("fault", who=fault.who, do=fault.kind, text=str(fault))
        world, host, process = self.world, self.world.host(fault.who), self.processes[fault.who]
        match fault.kind:
            case Kind.KILL:
                process.kill(ordered=True)
            case Kind.POWER:
                process.killed = True
                host.cut_power()
            case Kind.BLACKOUT:
                for name in self.processes:
                    self.processes[name].killed = True
                    self.world.host(name).cut_power()
            case Kind.CLOSE | Kind.LEAVE:
                self._ask_to_end(fault.who, signal.SIGTERM if fault.kind is Kind.CLOSE else signal.SIGUSR2)
            case Kind.STOP:
                process.stop()
            case Kind.CUT | Kind.MUTE:
                for other in self._others(fault):
                    world.network.cut(host.address, other)
                    if fault.kind is Kind.CUT:
                        world.network.cut(other, host.address)
            case Kind.NOISE:
                self._noise(fault, fault.amount / 100)
            case Kind.RESET:
                for end in list(world.network.ends):
                    if host.address in (end.here, end.there):
                        end.fail(errno.ECONNRESET)
            case _:
                self._strike_disk_or_clock(fault)

    def _permits(self, fault: Fault) -> bool:
        """Return whether a minority of the stores loses its disks between two refills, also after a fault."""
        if fault.kind not in DISK_FAULTS:
            return True
        others = self._weak - {fault.who}
        if any(self.processes[name].gone or self._lacks(name) for name in others):
            return False
        self._weak = {fault.who}
        return True

    def _strike_disk_or_clock(self, fault: Fault) -> None:
        host = self.world.host(fault.who)
        match fault.kind:
            case Kind.SLOW if fault.who in ROUTERS:
                self._delay(fault, fault.amount)
            case Kind.SLOW:
                host.disk.slow(fault.amount * MILLISECOND)
            case Kind.FULL:
                host.disk.full(fault.amount)
            case Kind.FAIL if fault.amount % 2:
                host.disk.fail_syncs(fault.amount, lose=fault.amount % 4 == 1)
            case Kind.FAIL:
                host.disk.fail_writes(fault.amount)
            case Kind.ROT:
                host.disk.rot(self.world.kernel.random, str(DATA))
            case Kind.LEAP:
                host.clock.leap(fault.amount * MILLISECOND)
            case Kind.DRIFT:
                host.clock.drift(fault.amount)
            case Kind.SCARCE:
                process = self.processes[fault.who]
                process.limit -= max(0, process.free_descriptors - fault.amount)
            case Kind.TWIN if fault.who not in self._twins:
                self._start_twin(fault.who)
            case Kind.WIPE:
                self.processes[fault.who].kill(ordered=True)
                host.disk.wipe(str(DATA))
            case Kind.RESTORE:
                self._backups[fault.who] = host.disk.backup(str(DATA))

    def _mend(self, fault: Fault) -> None:
        if fault.who not in self.processes:
            return
        self.mark("heal", who=fault.who, text=str(fault))
        host = self.world.host(fault.who)
        match fault.kind:
            case Kind.KILL | Kind.POWER | Kind.WIPE:
                self._restore_program(fault.who)
            case Kind.RESTORE:
                self._restore_backup(fault.who)
            case Kind.BLACKOUT:
                for name in self.processes:
                    self._restore_program(name)
            case Kind.CLOSE | Kind.LEAVE:
                # A program that is cut off may take longer to end than the fault lasts.
                self.processes[fault.who].kill(ordered=True)
                self._restore_program(fault.who)
            case Kind.STOP:
                self.processes[fault.who].resume()
            case Kind.CUT | Kind.MUTE:
                for other in self._others(fault):
                    self.world.network.heal(host.address, other)
                    self.world.network.heal(other, host.address)
            case Kind.NOISE:
                self._noise(fault, 0.0)
            case Kind.SLOW if fault.who in ROUTERS:
                self._delay(fault, 0)
            case Kind.SLOW | Kind.FULL | Kind.FAIL:
                host.disk.heal()
            case Kind.SCARCE:
                self.processes[fault.who].limit = DESCRIPTOR_LIMIT
            case Kind.TWIN:
                self._end_twin(fault.who)
            case _:
                pass

    def _others(self, fault: Fault) -> list[str]:
        side = SIDES.get(fault.other)
        domain = self.schedule.setup.domain
        names = [
            name
            for name in self.names
            if name == fault.other or (not fault.other and name != fault.who) or (side and domain(name) == side)
        ]
        return [self.world.host(name).address for name in names]

    def _delay(self, fault: Fault, milliseconds: int) -> None:
        """Let each packet from and to a host take longer by a time."""
        here, usual = self.world.host(fault.who).address, NetworkPath()
        for other in self._others(fault):
            for path in (self.world.network.path(here, other), self.world.network.path(other, here)):
                path.delay_ns = usual.delay_ns + milliseconds * MILLISECOND

    def _noise(self, fault: Fault, share: float) -> None:
        here, usual = self.world.host(fault.who).address, NetworkPath()
        for other in (self.world.host(name).address for name in self.names if name != fault.who):
            for path in (self.world.network.path(here, other), self.world.network.path(other, here)):
                path.loss = path.duplication = path.reordering = share
                path.jitter_ns = usual.jitter_ns * (100 if share else 1)

    def _restore(self, name: str) -> None:
        """End every fault of a program and its host."""
        host = self.world.host(name)
        host.disk.heal()
        for other in self.names:
            if other != name:
                self.world.network.heal(host.address, self.world.host(other).address)
        self._noise(Fault(0, Kind.NOISE, name), 0.0)
        if name in self.routers:
            self._delay(Fault(0, Kind.SLOW, name), 0)
        self._end_twin(name)
        if name in self.processes:
            self.processes[name].limit = DESCRIPTOR_LIMIT
            if not self.processes[name].runs:
                self.processes[name].resume()
        self._restore_program(name)

    def _restore_backup(self, name: str) -> None:
        """Put back the backup of a store's directory, as an operator does who declares it."""
        self.processes[name].kill(ordered=True)
        self.world.host(name).disk.restore(self._backups[name], str(DATA))
        store = self._stores[name]
        assert isinstance(store, StoreProgram), f"the daemon of {name} has two copies of each message"
        store.undeclared = True
        self._restore_program(name)

    def _restore_program(self, name: str) -> None:
        process = self.processes.get(name)
        if process is None or process.gone:
            self.start(name)
