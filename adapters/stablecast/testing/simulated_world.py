"""The world of a test: it starts programs, injects faults, waits until all is settled, and keeps a timeline."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from types import CoroutineType
from typing import Any, Final

from stablecast.core.errors import StablecastError
from stablecast.evidence.trace.activation import VARIABLE
from stablecast.lab.world.disk import DiskBackup
from stablecast.lab.world.filesystem import FileSystem
from stablecast.lab.world.host import SimulatedHost
from stablecast.lab.world.kernel import WorldError
from stablecast.lab.world.world import World
from stablecast.testing.deliveries import Deliveries
from stablecast.testing.fault_injection import FaultInjector
from stablecast.testing.programs import Errors, Program, Supervisor
from stablecast.testing.schedule import MILLISECOND, Activity, HostActivity, Strike
from stablecast.testing.timeline import FAULT, NOTE, WorldTimeline

TEST_HOST: Final = "test"
"""The host on which the test itself runs. No fault strikes it."""

ROUTER: Final = "router"
"""The host that reaches both domains."""

FAR_RELAY: Final = "relay-far"
"""The host of the relay of the second domain."""

NEAR: Final = 1
FAR: Final = 2
"""The numbers of the domains of a world with a router."""

QUIET_S: Final = 10.0
"""Seconds of virtual time without a movement after which a world is settled."""

SETTLED_LIMIT_S: Final = 900.0
"""Seconds of virtual time after which a world that does not settle fails its test."""

LOOK_S: Final = 0.5
"""Seconds of virtual time between two looks for movements."""

SECOND: Final = 1_000_000_000


class NotSettledError(StablecastError):
    """The world did not settle; the message names what still moves."""


class SimulatedWorld:
    """Hosts, programs and faults in virtual time, as a test sees them.

    Attributes:
        seed: The seed of this world.
        stores: The addresses `ip:port` of the stores, as hosts outside of a second domain name them.
        far: The hosts of the second domain; empty: there is one domain.
        relays: The address of the relay of each domain.
        programs: All programs, those of the stores included.
    """

    def __init__(
        self, lab: World, strikes: Sequence[Strike], traces: str | None = None, far: Collection[str] = ()
    ) -> None:
        """Make a world; `begin` lets its schedule begin. Stores and contexts write traces to the directory `traces`.

        The hosts `far` are a domain of their own.
        """
        self.seed = lab.seed
        self.far = far
        self.stores: list[str] = []
        self.timeline = WorldTimeline()
        self.supervisor = Supervisor(self._report)
        self.deliveries = Deliveries(lambda: lab.now - self._begun, self._running_host)
        self.supervisor.on_crash = self.deliveries.end
        self.injector = FaultInjector(lab.kernel, lab.network, lab.hosts, self.supervisor, self._report)
        self._lab = lab
        self._kinds: dict[str, str] = {}
        self.relays: dict[int, str] = {}
        self._addresses: dict[str, str] = {}
        self._end = 0
        self._turns: dict[str, int] = {}
        self._strikes = strikes
        self._traces = traces
        self._begun = lab.now

    # --------------------------------------------------------------------------------------------------------- programs

    def start(
        self,
        main: Callable[..., Coroutine[Any, Any, Any]],
        *arguments: Any,
        host: str = "app",
        may_fail: bool = False,
        **keywords: Any,
    ) -> Program:
        """Start a coroutine function as a program on a host, and return the program.

        A crash ends the program without its `finally` clauses. Then the schedule starts the function anew with the same
        arguments. The program is finished when the function returns.

        Args:
            main: The coroutine function.
            arguments: Its arguments.
            host: The name of its host; the first program makes the host. Several programs may share one.
            may_fail: An uncaught exception fails the test, unless this is set. Then the program starts again after 1 s.
            keywords: Its keyword arguments.

        Raises:
            WorldError: `main` is no function, or the host is that of the test.
        """
        given: object = main
        if isinstance(given, CoroutineType):
            given.close()  # Python would warn that nobody awaited it.
            raise WorldError(
                f"{given.cr_code.co_name}() was called: pass the function and its arguments, as in"
                " world.start(main, 1, host='app'), because each start calls it anew"
            )
        if host == TEST_HOST:
            raise WorldError(f"the host {TEST_HOST!r} belongs to the test: give the program another host")
        name = getattr(main, "__qualname__", repr(main)).rpartition(".")[2]
        call = partial(main, *arguments, **keywords)
        self.machine(host)
        expected: Errors = (Exception,) if may_fail else ()
        return self.add(name, host, "app", lambda: self._lab.start(call, host), may_fail=expected)

    def add(self, name: str, host: str, kind: str, launch: Callable[[], Any], **how: Any) -> Program:
        """Start a program of a kind of hosts; `launch` starts one process of it. `how` is as for `Program`."""
        self._kinds.setdefault(host, kind)
        if self._traces is not None:
            self.machine(host).environment[VARIABLE] = self._traces
        program = Program(name, self.machine(host), launch, **how)
        self.supervisor.add(program)
        return program

    @property
    def programs(self) -> list[Program]:
        """All programs, those of the stores included."""
        return self.supervisor.programs

    @property
    def context(self) -> dict[str, Any]:
        """The keyword arguments for `stablecast.client.Context` in the program that asks."""
        return self.context_of(self._lab.kernel.running().owner.host.name)  # type: ignore[attr-defined]

    def context_of(self, host: str) -> dict[str, Any]:
        """Return the keyword arguments for `stablecast.client.Context` in the programs of a host."""
        relay = self.relays.get(self.domain_of(host))
        return {"resolver": [relay] if relay else [], "interface": self.address(host)}

    def stores_of(self, host: str) -> list[str]:
        """Return the addresses of the stores as programs of a host name them: with the number of another domain."""
        own = self.domain_of(host)
        named = ((self.domain_of(store), address) for store, address in self._addresses.items())
        return [address if domain == own else f"{domain}:{address}" for domain, address in named]

    def domain_of(self, host: str) -> int:
        """Return the number of the domain of a host: 2 for `far` hosts, 1 for all others; 0 if there is one domain."""
        if not self.far:
            return 0
        return FAR if host == FAR_RELAY or host in self.far else NEAR

    def machine(self, host: str) -> SimulatedHost:
        """Return a host; the first use makes it, in its domain."""
        known = host in self._lab.hosts
        found = self._lab.host(host)
        if self.far and not known and host != ROUTER:
            self._lab.network.place(found.address, self.domain_of(host))
        return found

    def address(self, host: str) -> str:
        """Return the IPv4 address of a host; the first use makes the host."""
        return self.machine(host).address

    def read(self, host: str, path: str) -> bytes:
        """Return the content of a file of a host; b"" if there is none. A relative path begins at `/`."""
        try:
            with FileSystem(self._lab.host(host).disk).open_file(path, "rb") as file:
                content: bytes = file.read()
        except FileNotFoundError:
            return b""
        return content

    # ------------------------------------------------------------------------------------------------------------- time

    def time(self) -> float:
        """Return the seconds of virtual time since the stores were ready."""
        return (self._lab.now - self._begun) / SECOND

    def note(self, text: str) -> None:
        """Add a line to the timeline. It counts as a movement for `settled`."""
        self._report(self._running_host(), NOTE, text)

    def _running_host(self) -> str:
        running = self._lab.kernel.current
        return TEST_HOST if running is None else running.owner.host.name  # type: ignore[attr-defined]

    async def settled(self, quiet: float = QUIET_S, limit: float = SETTLED_LIMIT_S) -> None:
        """Wait until all faults are over, killed programs run again, and nothing moved for `quiet` seconds.

        A movement is a change of a file, a start or an end of a program, a printed line, or a note. The remaining
        schedule is carried out meanwhile, and no fault of it happens afterwards.

        Args:
            quiet: Seconds of virtual time.
            limit: Seconds of virtual time after which the wait fails.

        Raises:
            NotSettledError: The world did not settle within the limit.
        """
        __tracebackhide__ = True
        began = since = self._lab.now
        seen = self._movements()
        self._observe(self._lab.now)
        while True:
            await asyncio.sleep(LOOK_S)
            unfinished = self._unfinished()
            moved = self._movements()
            if moved != seen:
                seen, since = moved, self._lab.now
                self._observe(since)
            if unfinished:
                since = self._lab.now
            elif self._lab.now - since >= quiet * SECOND:
                break
            if self._lab.now - began > limit * SECOND:
                raise NotSettledError(self._moving(limit, unfinished))
        self.injector.disarm()

    async def until(self, condition: Callable[[], object], limit: float = SETTLED_LIMIT_S) -> None:
        """Wait until a condition holds, at most `limit` seconds of virtual time.

        Raises:
            NotSettledError: The condition does not hold within the limit.
        """
        __tracebackhide__ = True
        began = self._lab.now
        while not condition():
            if self._lab.now - began > limit * SECOND:
                raise NotSettledError(f"the condition {_source_of(condition)} did not hold within {limit:g} s")
            await asyncio.sleep(LOOK_S)
        self._observe(self._lab.now)

    def _unfinished(self) -> list[str]:
        down = [f"{one.name} on {one.host} is down" for one in self.supervisor.down]
        return self.injector.unfinished + down

    def _movements(self) -> tuple[int, ...]:
        # A trace grows as long as its program runs.
        hosts = self._lab.hosts.values() if self._traces is None else ()
        return (self.timeline.moves, *(host.disk.changes for host in hosts))

    def _moving(self, limit: float, unfinished: list[str]) -> str:
        text = f"the world did not settle within {limit:g} s of its time"
        if unfinished:
            return f"{text}: {'; '.join(unfinished)}"
        last = self.timeline.last
        seen = "" if last is None else f": the last entry of the timeline is {last.text!r} of {last.host}"
        return f"{text}, because files or programs still change{seen}"

    # ----------------------------------------------------------------------------------------------------------- faults

    def crash(self, host: str, *, down: float | None = 0.1, power: bool = False) -> None:
        """Kill the programs of a host, and start them again after `down` seconds; None: at `restart` or `heal`."""
        self._strike("crash", host, down, power=power)

    def restart(self, host: str) -> None:
        """Start the programs of a host again that are down."""
        self.injector.end(("crash", "wipe"), host)

    def stop(self, host: str, span: float | None = None) -> None:
        """Suspend the programs of a host for a time in s, or until `resume` or `heal`."""
        self._strike("stop", host, span)

    def resume(self, host: str) -> None:
        """Let the programs of a host continue that were stopped."""
        self.injector.end(("stop",), host)

    def partition(self, host: str, to: str, span: float | None = None, *, one_way: bool = False) -> None:
        """Let nothing pass between two hosts for a time in s, or until `heal`."""
        self._strike("partition", host, span, to=to, one_way=one_way)

    def reset(self, host: str, to: str) -> None:
        """Reset all connections between two hosts."""
        self._strike("reset", host, None, to=to)

    def heal(self) -> None:
        """End all faults that last, and start the programs that are down."""
        self.injector.heal()

    def disk(self, host: str) -> "DiskFaults":
        return DiskFaults(lambda kind, span, **more: self._strike(kind, host, span, **more))

    def leap(self, host: str, seconds: float) -> None:
        """Move the wall clock of a host forward, or back by a negative time."""
        self._strike("leap", host, None, amount=seconds)

    def _strike(self, kind: str, host: str, span: float | None, **more: Any) -> None:
        ns = 0 if span is None else max(1, round(span * SECOND))
        if kind in ("crash", "wipe", "restore", "stop") and host == TEST_HOST:
            raise WorldError("the host of the test itself cannot fail: name the host of a program or store")
        self.injector.strike(Strike(kind, host, span=ns, **more))

    # --------------------------------------------------------------------------------------------------- for the runner

    def resolve_at(self, domain: int, relay: str) -> None:
        """Let the contexts of a domain find each other through a relay."""
        self.relays[domain] = relay

    def has_store(self, host: str, address: str) -> None:
        self._addresses[host] = address
        self.stores = self.stores_of(TEST_HOST)

    def begin(self) -> None:
        """Let time and the schedule begin, because the stores are ready."""
        self._begun = self._lab.now
        self.timeline.clear()
        self.injector.arm(self._strikes)

    def activity(self) -> Activity:
        """Return what the hosts did until the last movement that `settled` saw, or until now."""
        end, turns = (self._end, self._turns) if self._end else (self._lab.now, dict(self.injector.turns))
        hosts = {name: HostActivity(kind, turns.get(name, 0)) for name, kind in self._kinds.items()}
        return Activity(hosts, end - self._begun)

    def traces(self) -> dict[str, DiskBackup]:
        """Return the traces of each host; nothing unless they are written."""
        if self._traces is None:
            return {}
        return {name: self._lab.host(name).disk.backup(self._traces) for name in self._kinds}

    def _observe(self, now: int) -> None:
        self._end, self._turns = now, dict(self.injector.turns)

    def _report(self, host: str, kind: str, text: str) -> None:
        self.timeline.add(self._lab.now - self._begun, host, kind, text)


class DiskFaults:
    """The faults of one disk. Each lasts for a time in s, or until `SimulatedWorld.heal`."""

    def __init__(self, strike: Callable[..., object]) -> None:
        """Make them; `strike` carries out a kind of fault."""
        self._strike = strike

    def fill(self, span: float | None = None) -> None:
        """Leave no room, so that writes raise ENOSPC."""
        self._strike("full_disk", span)

    def slow(self, ms: float = 200.0, span: float | None = None) -> None:
        """Lengthen each sync by this many milliseconds."""
        self._strike("slow_disk", span, amount=ms)

    def fail(self, span: float | None = None) -> None:
        """Let writes and syncs fail."""
        self._strike("failing_disk", span)

    def rot(self) -> None:
        """Flip one bit of a stored file."""
        self._strike("rot", None)

    def wipe(self, down: float | None = 0.1) -> None:
        """Kill the programs of the host, empty the disk, and start the programs again after `down` seconds."""
        self._strike("wipe", down)

    def restore(self, age: float | None = 1.0, *, declared: bool = True) -> None:
        """Copy the disk; after `age` seconds kill the programs of the host, and start them with the copy.

        Args:
            age: Seconds; None: until `SimulatedWorld.heal`.
            declared: The operator of a store declares the copy.
        """
        self._strike("restore", age, undeclared=not declared)


def _source_of(condition: Callable[[], object]) -> str:
    code = getattr(condition, "__code__", None)
    return repr(condition) if code is None else f"at {code.co_filename}:{code.co_firstlineno}"


__all__ = ["FAULT", "MILLISECOND", "NotSettledError", "SimulatedWorld"]
