"""The stores of a world and the relay through which contexts find each other."""

from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.programs import DATA, StoreProgram, relay_address, start_relay
from stablecast.lab.world.world import World
from stablecast.testing.simulated_world import SECOND, SimulatedWorld

RELAY = "relay"
"""The host of the relay."""

SEGMENT = ".seg"
"""The end of the names of a journal's files."""

READY_S = 60
"""Seconds of virtual time within which the stores and the relay are ready."""


def start_stores(world: SimulatedWorld, lab: World, count: int) -> None:
    """Start a relay and stores, on the hosts `store0`, `store1` and so on, and wait until all are ready."""
    relay = relay_address(lab, RELAY)
    world.resolve_at([relay])
    programs = [world.add("lbmrd", RELAY, "relay", lambda: start_relay(lab, RELAY))]
    for number in range(count):
        store = SimulatedStore(world, lab, f"store{number}", relay)
        programs.append(world.add("store", store.host, "store", store.start))
        world.stores.append(store.address)
    lab.kernel.run(lambda: all(one.output for one in programs), lab.now + READY_S * SECOND)


class SimulatedStore:
    """The store of a host, in all of its lives."""

    def __init__(self, world: SimulatedWorld, lab: World, host: str, relay: str) -> None:
        """Describe a store that uses a relay."""
        self.host = host
        self._program = StoreProgram(lab, host, [relay])
        self._disk = lab.host(host).disk
        self._wiped = world.injector.wiped

    @property
    def address(self) -> str:
        """The address at which it listens."""
        return self._program.address

    def start(self) -> SimulatedProcess:
        """Start a process of the store.

        A store that crashed before its first registration has no journal, and its operator starts it as a new one. A
        store whose disk was wiped is not new, because clients may count on what it had.
        """
        has_journal = any(path.endswith(SEGMENT) for path, _, _ in self._disk.backup(str(DATA)).files)
        is_new = not has_journal and self.host not in self._wiped
        return self._program.start(is_new)
