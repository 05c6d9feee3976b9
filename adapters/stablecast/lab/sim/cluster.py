"""Run three stores, a source and two receivers, and apply faults to them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from stablecast.core.errors import InvariantError
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.messages import Role
from stablecast.core.receiver import ReceiverSession
from stablecast.core.subscription.inputs import Place
from stablecast.evidence.trace.converter import Endpoint
from stablecast.evidence.trace.live_trace import LiveTrace
from stablecast.evidence.trace.trace_recorder import Recorder
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.sim import endpoint_configs
from stablecast.lab.sim.disk import VirtualDisk
from stablecast.lab.sim.facts import Facts
from stablecast.lab.sim.network import VirtualNetwork
from stablecast.lab.sim.process import VirtualProcess
from stablecast.lab.sim.proxy import Proxy
from stablecast.lab.sim.receiver import ReceiverProcess
from stablecast.lab.sim.resolution import DatagramMedium, ProcessResolution
from stablecast.lab.sim.setup import CLIENTS, EVERYBODY, RECEIVERS, SOURCE, STORES, Habit, Leaving, WorldSetup
from stablecast.lab.sim.source import SourceProcess, StreamSource
from stablecast.lab.sim.source_checkers import Checkers
from stablecast.lab.sim.store import StoreProcess
from stablecast.lab.sim.virtual_time import VirtualClock, VirtualWorld
from stablecast.transports import codec
from stablecast.transports.resolution.udp.inputs import AddReceiver

SOURCE_PORTS = (14371, 14390)
REQUEST_PORTS = (14391, 14410)

RIVAL_HOST = "10.0.1.{}"
"""Host of a second process that claims a client's RegID."""

ADVERTISE_NS = 150 * MILLISECOND
DRIFT_PPM = 20_000
"""Largest rate error of a clock, in millionths. The lease guard covers more than 2 %."""


class Cluster:
    """Hold all processes by name. `processes` has the newest process of each name; replaced ones may still run."""

    def __init__(self, world: VirtualWorld, traces: Path | None = None, setup: WorldSetup | None = None) -> None:
        self.world = world
        self.setup = setup or WorldSetup()
        self.deserted = False
        self.network = VirtualNetwork(world)
        self.disks = {store: VirtualDisk() for store in STORES}
        self.checkers = Checkers.of(Facts(lambda: world.now, self.disks, self.setup))
        self.air = DatagramMedium(self.setup.resolution)
        self.processes: dict[str, VirtualProcess] = {}
        self._old: list[VirtualProcess] = []
        self._everybody: list[VirtualProcess] = []
        self._traces = traces
        self._hosts = list(endpoint_configs.HOSTS.values())
        self._unsent = 0
        self._lives = 0
        rng = world.rng
        self._clocks = {name: (rng.randrange(SECOND), rng.randint(-DRIFT_PPM, DRIFT_PPM)) for name in EVERYBODY}
        self._flight = rng.choice((40, 1000))
        self._receiver_lifetime = rng.choice((0, endpoint_configs.LIFETIME_NS))
        for name in EVERYBODY:
            delay, late = rng.randrange(50 * MILLISECOND), self.setup.late_ms if name == RECEIVERS[-1] else 0
            world.after(delay if not late else late * MILLISECOND, partial(self.spawn, name, variant=False))

    # Processes.

    def spawn(self, name: str, *, variant: bool, host: str = "") -> None:
        """Start a process on a host, by default that of its predecessor.

        With `variant` it listens at other ports than its predecessor, if its kind may move.
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
        """Send `count` messages from the newest live source process."""
        claimants = [self.source, *reversed(self._old)]
        living = next((one for one in claimants if isinstance(one, SourceProcess) and one.alive), None)
        if living is None:
            self._unsent += count
        else:
            living.want(count + self._unsent)
            self._unsent = 0

    @property
    def source(self) -> SourceProcess | None:
        """The newest process of the source; None before the first."""
        process = self.processes.get(SOURCE)
        assert process is None or isinstance(process, SourceProcess)
        return process

    def calm(self) -> None:
        """End all faults: restart every process once, except a source that stays away.

        A first process of the source goes on if the second is dead, and nobody may wait for a third.
        """
        self.checkers.facts.calm = True
        living = [one for one in self._old if isinstance(one, SourceProcess) and one.alive]
        if living and not self.processes[SOURCE].alive:
            self._old.remove(living[-1])
            self.processes[SOURCE] = living[-1]
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

    def scrub(self) -> None:
        """Let every store read its disk, as the scrubber of a daemon does."""
        for process in self.processes.values():
            if isinstance(process, StoreProcess) and process.alive:
                process.scrub()

    def adopt(self) -> None:
        """Restart the source that stayed away."""
        self.deserted = False
        self.spawn(SOURCE, variant=False)

    def leave(self, name: str) -> None:
        """Deregister a client for good. In half of the worlds its first message to the first store is lost."""
        process = self.processes[name]
        assert isinstance(process, SourceProcess | ReceiverProcess)
        self.checkers.facts.farewell |= name == SOURCE
        process.withdraw()
        if self.world.rng.random() < 0.5:
            self.network.cut(process.host, endpoint_configs.HOSTS[STORES[0]], self._everybody)

    def close(self) -> None:
        """Close all drivers, which completes the traces."""
        for process in self._everybody:
            for driver in list(process.drivers):
                driver.close()

    def _clock(self, name: str) -> VirtualClock:
        return VirtualClock(*self._clocks[name])

    def _host(self, name: str) -> str:
        process = self.processes.get(name)
        return endpoint_configs.HOSTS[name] if process is None else process.host

    def _name(self, name: str) -> str:
        return f"{name}.{len(self._everybody)}"

    def _follow(self, role: Role, name: str, machine: Endpoint) -> LiveTrace:
        recorder = None if self._traces is None else Recorder(self._traces, role, name, machine, patient=True)
        return self.checkers.ledger.follow(role, name, machine, recorder)

    def _free(self, host: str, ports: tuple[int, int], *, skip: bool) -> str:
        """Return the first free address of a host, or the second with `skip`."""
        free = [f"{host}:{port}" for port in range(*ports) if f"{host}:{port}" not in self.network.listeners]
        return free[int(skip)]

    def _spawn_store(self, name: str, variant: bool) -> None:
        address = self._free(endpoint_configs.HOSTS[name], endpoint_configs.STORE_PORTS, skip=variant)
        store = StoreProcess(
            self.network,
            name,
            endpoint_configs.store_config(
                self.setup, address, self.world.rng.getrandbits(64), self._receiver_lifetime, name
            ),
            self._clock(name),
            self.disks[name],
            self.checkers,
            self._advertise,
            self.setup.lossy,
        )
        self.processes[name] = store
        store.recover()
        trace = self._follow(Role.STORE, name, store.machine)
        trace.complete = self.setup.refills(name)  # What an earlier release says and reads is not all of it.
        store.start(trace)
        if self.setup.named:
            self._locate(store, address)

    def _spawn_source(self, host: str, variant: bool) -> None:
        self._lives += 1
        rng = self.world.rng
        config = endpoint_configs.source_config(
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
        source.start(self._follow(Role.SOURCE, source.name, source.machine))
        source.want(self._unsent)
        self._unsent = 0
        self._advertise(source)

    def _on_over(self, source: SourceProcess) -> None:
        """End a process that another life replaced, and restart it if no other process runs.

        Whoever wants the source gone says so again to the process that goes on.
        """
        self.checkers.facts.counts["overtaken"] += 1

        def end() -> None:
            self._kill(source, flush=True)
            if not self.processes[SOURCE].alive and not self.deserted:
                self.spawn(SOURCE, variant=False)
                if self.checkers.facts.farewell and self.source is not None:
                    self.source.withdraw()

        self.world.after(endpoint_configs.RETRY_NS, end)

    def _spawn_receiver(self, name: str, host: str, variant: bool) -> None:
        address = self._free(host, REQUEST_PORTS, skip=variant)
        config = endpoint_configs.receiver_config(self.setup, name, address, self.world.rng.getrandbits(64))
        process = self._name(name)

        def follow(machine: ReceiverSession) -> LiveTrace:
            return self._follow(Role.RECEIVER, process, machine)

        clock = self._clock(name)
        receiver = ReceiverProcess(self.network, name, process, config, clock, self.checkers, follow, self.setup)
        self.processes[name] = receiver
        self.checkers.clients.append(receiver)
        receiver.start()
        if self.setup.resolution:
            receiver.resolving = ProcessResolution(receiver, self.air, receiver.found)
            receiver.resolving.feed(AddReceiver(config.topic))

    def _advertise(self, source: StreamSource) -> None:
        """Pass the source's address to every receiver at regular intervals, unless topic resolution does it."""
        owner = source.process
        if self.setup.resolution:
            resolving = ProcessResolution(owner, self.air)
            resolving.advertise(source.config)
            if isinstance(source, Proxy):
                source.on_close = partial(resolving.withdraw, source.config)
            return
        if not (source.alive and owner.alive):
            return
        config = source.config
        where = Place(config.transport, codec.split(config.incarnation)[0], config.reply_to)
        for process in () if owner.frozen else self._everybody:
            if isinstance(process, ReceiverProcess) and not self.network.blocked(owner.host, process.host):
                found = partial(process.deliver, partial(process.found, where))
                self.world.after(self.network.delay(), found)
        self.world.after(ADVERTISE_NS, lambda: self._advertise(source))

    def _locate(self, store: StoreProcess, address: str) -> None:
        """Pass a named store's address to every source process at regular intervals."""
        if not store.alive:
            return
        for process in () if store.frozen else self._everybody:
            if isinstance(process, SourceProcess) and not self.network.blocked(store.host, process.host):
                located = partial(process.deliver, partial(process.locate, store.name, address))
                self.world.after(self.network.delay(), located)
        self.world.after(ADVERTISE_NS, lambda: self._locate(store, address))

    # Faults.

    def suffer(self, fault: Fault) -> None:
        """Begin a fault and schedule its end. Partitions also affect processes that start later."""
        process = self.processes.get(fault.who)
        match fault.kind:
            case Kind.CUT | Kind.MUTE:
                self._part(fault)
            case _ if process is None:
                return
            case Kind.KILL | Kind.WIPE:
                self._kill(process, flush=not fault.variant)
                if fault.kind is Kind.WIPE:
                    self.checkers.stores.on_wiped(fault.who)
                    self.disks[fault.who].wipe()
                self._end(fault, partial(self._revive, fault))
            case Kind.RESET:
                self.network.cut(self._host(fault.who), self._host(fault.other), self._everybody)
            case Kind.STOP:
                self._freeze(process, fault)
            case Kind.LEAP:
                process.leap(fault.span_ms * MILLISECOND)
            case Kind.SLOW:
                self.disks[fault.who].slow = True
                self._end(fault, partial(setattr, self.disks[fault.who], "slow", False))
            case Kind.FULL:
                self.disks[fault.who].full = True
                self._end(fault, partial(self._revive, fault))
            case Kind.TAKEOVER:
                self._take_over(process, fault)
            case Kind.TWIN:
                self._rival(process, fault)
            case Kind.LEAVE:
                self._leave(process, fault)
            case Kind.FALTER:
                assert isinstance(process, StoreProcess)
                process.falter = partial(self._freeze, process, fault)
            case Kind.ROT:
                self._damage(fault)
            case Kind.RESTORE:
                self._restore(process, fault)
            case _:
                raise InvariantError(f"bare endpoints suffer no {fault.kind}")

    def _end(self, fault: Fault, action: Callable[[], None]) -> None:
        self.world.after(fault.span_ms * MILLISECOND, action)

    def _kill(self, process: VirtualProcess, *, flush: bool) -> None:
        if not process.alive:
            return
        if isinstance(process, SourceProcess):
            self._unsent += process.wanted
        process.crash(flush=flush)

    def _revive(self, fault: Fault) -> None:
        if fault.kind is Kind.FULL:
            self.disks[fault.who].full = False
        if not self.processes[fault.who].alive and not (self.deserted and fault.who == SOURCE):
            moves = fault.who in CLIENTS or self.setup.named
            self.spawn(fault.who, variant=fault.variant and moves)

    def _freeze(self, process: VirtualProcess, fault: Fault) -> None:
        process.freeze()
        self._end(fault, partial(process.thaw, timers_first=fault.variant))

    def _leave(self, process: VirtualProcess, fault: Fault) -> None:
        assert isinstance(process, ReceiverProcess)
        if not process.alive:
            return
        process.withdraw()

        def end() -> None:
            self._kill(process, flush=True)
            self._revive(fault)

        self._end(fault, end)

    def _take_over(self, process: VirtualProcess, fault: Fault) -> None:
        if not process.alive:
            return
        process.freeze()
        self._old.append(process)
        self.spawn(fault.who, variant=False)
        self._end(fault, partial(process.thaw, timers_first=fault.variant))

    def _rival(self, process: VirtualProcess, fault: Fault) -> None:
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
        """Damage synced records. The damage is detected when they are read."""
        records = self.disks[fault.who].whole()
        for record in records if fault.variant else records and [self.world.rng.choice(records)]:
            self.checkers.facts.on_damaged(fault.who, record)
            record.bad = True

    def _restore(self, process: VirtualProcess, fault: Fault) -> None:
        """Copy a store's disk, and put the copy back after the span."""
        disk = self.disks[fault.who]
        backup = disk.backup()
        gone = self.checkers.facts.gone.get(fault.who, {})
        released = {life: RangeSet(list(numbers)) for life, numbers in gone.items()}

        def put_back() -> None:
            self._kill(self.processes[fault.who], flush=True)
            copy = VirtualDisk()
            copy.restore(backup, declared=False)
            self.checkers.stores.on_wiped(fault.who, silent=not fault.variant, copy=copy, released=released)
            disk.restore(backup, declared=not fault.variant)
            self._revive(fault)

        self._end(fault, put_back)

    def _part(self, fault: Fault) -> None:
        who = self._host(fault.who)
        others = [self._host(fault.other)] if fault.other else [host for host in self._hosts if host != who]
        pairs = [(who, other) for other in others]
        if fault.kind is Kind.CUT:
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


def seeded(seed: int, transcript: list[str] | None = None) -> VirtualWorld:
    return VirtualWorld(Random(f"world {seed}"), transcript=transcript)  # noqa: S311  # not a secret
