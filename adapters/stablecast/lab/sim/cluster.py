"""Three stores, a source and two receivers: who runs, and what a fault does to them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import assert_never

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.messages import Role
from stablecast.core.receiver import ReceiverSession
from stablecast.evidence.trace.converter import Endpoint
from stablecast.evidence.trace.trace_recorder import Recorder
from stablecast.lab.sim.disk import Disk
from stablecast.lab.sim.endpoint_configs import (
    HOSTS,
    LIFETIME_NS,
    RETRY_NS,
    receiver_config,
    source_config,
    store_config,
)
from stablecast.lab.sim.facts import Facts
from stablecast.lab.sim.network import Network
from stablecast.lab.sim.process import Process
from stablecast.lab.sim.proxy import Proxy
from stablecast.lab.sim.receiver import ReceiverProcess
from stablecast.lab.sim.resolution import Air, Found, Resolving
from stablecast.lab.sim.schedule import Act, Fault
from stablecast.lab.sim.setup import CLIENTS, EVERYBODY, RECEIVERS, SOURCE, STORES, Habit, Leaving, Setup
from stablecast.lab.sim.source import SourceProcess
from stablecast.lab.sim.source_checkers import Checkers
from stablecast.lab.sim.store import StoreProcess
from stablecast.lab.sim.virtual_time import Clock, World
from stablecast.transports import codec
from stablecast.transports.resolution.udp.inputs import AddReceiver

STORE_PORTS = (14567, 14580)
SOURCE_PORTS = (14371, 14390)
REQUEST_PORTS = (14391, 14410)

RIVAL_HOST = "10.0.1.{}"
"""A second claimant of a RegID runs on a machine of its own."""

ADVERTISE_NS = 150 * MILLISECOND
DRIFT_PPM = 20_000
"""Clocks run wrong by at most 2 %; a lease allows for more."""


class Cluster:
    """Everybody, by name. `processes` holds who is called so now; processes that were taken over may live on."""

    def __init__(self, world: World, traces: Path | None = None, setup: Setup | None = None) -> None:
        """Nobody runs yet."""
        self.world = world
        self.setup = setup or Setup()
        self.deserted = False
        self.network = Network(world)
        self.disks = {store: Disk() for store in STORES}
        self.checkers = Checkers.of(Facts(lambda: world.now, self.disks, self.setup))
        self.air = Air(self.setup.resolution)
        self.processes: dict[str, Process] = {}
        self._old: list[Process] = []
        self._everybody: list[Process] = []
        self._traces = traces
        self._hosts = list(HOSTS.values())
        self._unsent = 0
        self._lives = 0
        rng = world.rng
        self._clocks = {name: (rng.randrange(SECOND), rng.randint(-DRIFT_PPM, DRIFT_PPM)) for name in EVERYBODY}
        self._flight = rng.choice((40, 1000))
        self._receiver_lifetime = rng.choice((0, LIFETIME_NS))
        for name in EVERYBODY:
            delay, late = rng.randrange(50 * MILLISECOND), self.setup.late_ms if name == RECEIVERS[-1] else 0
            world.after(delay if not late else late * MILLISECOND, partial(self.spawn, name, variant=False))

    # Who runs.

    def spawn(self, name: str, *, variant: bool, host: str = "") -> None:
        """Start a process on a host, or where the one before ran.

        With `variant` it does not listen where the one before did, if it may move.
        """
        host = host or self._host(name)
        if name in STORES:
            self._spawn_store(name, variant)
        elif name == SOURCE:
            self._spawn_source(host, variant)
        else:
            self._spawn_receiver(name, host, variant)
        self._everybody.append(self.processes[name])

    def want(self, count: int) -> None:
        """The application has messages to send: the newest process sends them, or an older one that still lives."""
        claimants = [self.source, *reversed(self._old)]
        living = next((one for one in claimants if isinstance(one, SourceProcess) and one.alive), None)
        if living is None:
            self._unsent += count
        else:
            living.want(count + self._unsent)
            self._unsent = 0

    @property
    def source(self) -> SourceProcess | None:
        """The source's process, if there was one."""
        process = self.processes.get(SOURCE)
        assert process is None or isinstance(process, SourceProcess)
        return process

    def calm(self) -> None:
        """All faults are over: everybody runs, one process each, but for a source that stays away."""
        self.checkers.facts.calm = True
        for process in self._old:
            self._kill(process, flush=True)
        self.deserted = self.setup.orphaned
        if self.deserted:
            self._kill(self.processes[SOURCE], flush=True)
        for name in EVERYBODY:
            process = self.processes[name]
            if isinstance(process, StoreProcess):
                process.falter = None
            process.thaw(timers_first=False)
            if not process.alive and not (self.deserted and name == SOURCE):
                self.spawn(name, variant=False)

    def adopt(self) -> None:
        """The source is back."""
        self.deserted = False
        self.spawn(SOURCE, variant=False)

    def leave(self, name: str) -> None:
        """A client deregisters for good; in every other world what it says to the first store is lost at first."""
        process = self.processes[name]
        assert isinstance(process, SourceProcess | ReceiverProcess)
        self.checkers.facts.farewell |= name == SOURCE
        process.withdraw()
        if self.world.rng.random() < 0.5:
            self.network.cut(process.host, HOSTS[STORES[0]], self._everybody)

    def close(self) -> None:
        """Complete the traces."""
        for process in self._everybody:
            for driver in list(process.drivers):
                driver.close()

    def _clock(self, name: str) -> Clock:
        return Clock(*self._clocks[name])

    def _host(self, name: str) -> str:
        """Return where the newest process of this name runs, or will run."""
        process = self.processes.get(name)
        return HOSTS[name] if process is None else process.host

    def _name(self, name: str) -> str:
        return f"{name}.{len(self._everybody)}"

    def _recorder(self, role: Role, name: str, machine: Endpoint) -> Recorder | None:
        return None if self._traces is None else Recorder(self._traces, role, name, machine, patient=True)

    def _free(self, host: str, ports: tuple[int, int], *, skip: bool) -> str:
        """The first free port of a host, or the one behind it."""
        free = [f"{host}:{port}" for port in range(*ports) if f"{host}:{port}" not in self.network.listeners]
        return free[int(skip)]

    def _spawn_store(self, name: str, variant: bool) -> None:
        address = self._free(HOSTS[name], STORE_PORTS, skip=variant)
        store = StoreProcess(
            self.network,
            name,
            store_config(self.setup, address, self.world.rng.getrandbits(64), self._receiver_lifetime),
            self._clock(name),
            self.disks[name],
            self.checkers,
            self._advertise,
            self.setup.lossy,
        )
        self.processes[name] = store
        store.recover()
        store.start(self._recorder(Role.STORE, name, store.machine))
        if self.setup.named:
            self._locate(store, address)

    def _spawn_source(self, host: str, variant: bool) -> None:
        self._lives += 1
        rng = self.world.rng
        config = source_config(
            self.setup,
            codec.join(rng.getrandbits(32), self._lives),
            self._free(host, REQUEST_PORTS, skip=variant),
            self._free(host, SOURCE_PORTS, skip=variant),
            rng.getrandbits(64),
            self._flight,
        )
        source = SourceProcess(
            self.network, self._name(SOURCE), config, self._clock(SOURCE), self.checkers, self._on_over
        )
        source.hesitates = self.setup.leaving is Leaving.HASTY_SOURCE
        source.cancels = self.setup.habit is Habit.FICKLE
        source.cut(max(1, self.setup.large))
        self.processes[SOURCE] = source
        self.checkers.clients.append(source)
        source.start(self._recorder(Role.SOURCE, source.name, source.machine))
        source.want(self._unsent)
        self._unsent = 0
        self._advertise(source)

    def _on_over(self, source: SourceProcess) -> None:
        """Another life took its place: the process ends, and is started again if nobody else is there."""
        self.checkers.facts.counts["overtaken"] += 1

        def end() -> None:
            self._kill(source, flush=True)
            if not self.processes[SOURCE].alive and not self.deserted:
                self.spawn(SOURCE, variant=False)

        self.world.after(RETRY_NS, end)

    def _spawn_receiver(self, name: str, host: str, variant: bool) -> None:
        address = self._free(host, REQUEST_PORTS, skip=variant)
        config = receiver_config(self.setup, name, address, self.world.rng.getrandbits(64))
        process = self._name(name)

        def record(machine: ReceiverSession) -> Recorder | None:
            return self._recorder(Role.RECEIVER, process, machine)

        clock = self._clock(name)
        receiver = ReceiverProcess(self.network, name, process, config, clock, self.checkers, record, self.setup)
        self.processes[name] = receiver
        self.checkers.clients.append(receiver)
        receiver.start()
        if self.setup.resolution:
            receiver.resolving = Resolving(receiver, self.air, receiver.found)
            receiver.resolving.feed(AddReceiver(config.topic))

    def _advertise(self, source: SourceProcess | Proxy) -> None:
        """What topic resolution does, unless it is there itself: tell every receiver, again and again."""
        teller = source.process if isinstance(source, Proxy) else source
        if self.setup.resolution:
            resolving = Resolving(teller, self.air)
            resolving.advertise(source.config)
            if isinstance(source, Proxy):
                source.on_close = partial(resolving.withdraw, source.config)
            return
        if not (source.alive and teller.alive):
            return
        config = source.config
        where = Found(config.transport, codec.split(config.incarnation)[0], config.reply_to)
        for process in () if teller.frozen else self._everybody:
            if isinstance(process, ReceiverProcess) and not self.network.blocked(teller.host, process.host):
                found = partial(process.deliver, partial(process.found, where))
                self.world.after(self.network.delay(), found)
        self.world.after(ADVERTISE_NS, lambda: self._advertise(source))

    def _locate(self, store: StoreProcess, address: str) -> None:
        """What topic resolution does for stores that have a name."""
        if not store.alive:
            return
        for process in () if store.frozen else self._everybody:
            if isinstance(process, SourceProcess) and not self.network.blocked(store.host, process.host):
                told = partial(process.deliver, partial(process.locate, store.name, address))
                self.world.after(self.network.delay(), told)
        self.world.after(ADVERTISE_NS, lambda: self._locate(store, address))

    # What goes wrong.

    def suffer(self, fault: Fault) -> None:
        """A fault begins; what ends it is planned. The network fails also for those who are not there yet."""
        process = self.processes.get(fault.who)
        match fault.act:
            case Act.PART | Act.STALL:
                self._part(fault)
            case _ if process is None:
                return
            case Act.CRASH | Act.WIPE:
                self._kill(process, flush=not fault.variant)
                if fault.act is Act.WIPE:
                    self.checkers.stores.on_wiped(fault.who)
                    self.disks[fault.who].wipe()
                self._end(fault, partial(self._revive, fault))
            case Act.CUT:
                self._cut(fault)
            case Act.FREEZE:
                self._freeze(process, fault)
            case Act.LEAP:
                process.leap(fault.span_ms * MILLISECOND)
            case Act.SLOW:
                self.disks[fault.who].slow = True
                self._end(fault, partial(setattr, self.disks[fault.who], "slow", False))
            case Act.FULL:
                self.disks[fault.who].full = True
                self._end(fault, partial(self._revive, fault))
            case Act.TAKEOVER:
                self._take_over(process, fault)
            case Act.RIVAL:
                self._rival(process, fault)
            case Act.LEAVE:
                self._leave(process, fault)
            case Act.FALTER:
                assert isinstance(process, StoreProcess)
                process.falter = partial(self._freeze, process, fault)
            case Act.DAMAGE:
                self._damage(fault)
            case _:
                assert_never(fault.act)

    def _end(self, fault: Fault, action: Callable[[], None]) -> None:
        self.world.after(fault.span_ms * MILLISECOND, action)

    def _kill(self, process: Process, *, flush: bool) -> None:
        if not process.alive:
            return
        if isinstance(process, SourceProcess):
            self._unsent += process.wanted
        process.crash(flush=flush)

    def _revive(self, fault: Fault) -> None:
        if fault.act is Act.FULL:
            self.disks[fault.who].full = False
        if not self.processes[fault.who].alive and not (self.deserted and fault.who == SOURCE):
            moves = fault.who in CLIENTS or self.setup.named
            self.spawn(fault.who, variant=fault.variant and moves)

    def _freeze(self, process: Process, fault: Fault) -> None:
        process.freeze()
        self._end(fault, partial(process.thaw, timers_first=fault.variant))

    def _leave(self, process: Process, fault: Fault) -> None:
        assert isinstance(process, ReceiverProcess)
        if not process.alive:
            return
        process.withdraw()

        def end() -> None:
            self._kill(process, flush=True)
            self._revive(fault)

        self._end(fault, end)

    def _take_over(self, process: Process, fault: Fault) -> None:
        if not process.alive:
            return
        process.freeze()
        self._old.append(process)
        self.spawn(fault.who, variant=False)
        self._end(fault, partial(process.thaw, timers_first=fault.variant))

    def _rival(self, process: Process, fault: Fault) -> None:
        if not process.alive:
            return
        host = RIVAL_HOST.format(len(self._hosts))
        self._hosts.append(host)
        self._old.append(process)
        self.spawn(fault.who, variant=False, host=host)
        rival = self.processes[fault.who]

        def end() -> None:
            if not self.checkers.facts.calm:
                self._kill(rival, flush=not fault.variant)

        if fault.span_ms:
            self._end(fault, end)

    def _damage(self, fault: Fault) -> None:
        """Synced records go bad; nobody knows until they are read."""
        records = self.disks[fault.who].whole()
        for record in records if fault.variant else records and [self.world.rng.choice(records)]:
            self.checkers.facts.on_damaged(fault.who, record)
            record.bad = True

    def _cut(self, fault: Fault) -> None:
        self.network.cut(self._host(fault.who), self._host(fault.other), self._everybody)

    def _part(self, fault: Fault) -> None:
        who = self._host(fault.who)
        others = [self._host(fault.other)] if fault.other else [host for host in self._hosts if host != who]
        pairs = [(who, other) for other in others]
        if fault.act is Act.PART:
            pairs += [(other, who) for other in others]
        for pair in pairs:
            self.network.block(*pair)

        def heal() -> None:
            if fault.variant:
                for other in others:
                    self.network.cut(who, other, self._everybody)
            for pair in pairs:
                self.network.unblock(*pair)

        self._end(fault, heal)


def seeded(seed: int, transcript: list[str] | None = None) -> World:
    """The world of a seed, before anything happened."""
    return World(Random(f"world {seed}"), transcript=transcript)  # noqa: S311  # not a secret
