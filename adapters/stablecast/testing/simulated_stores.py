"""The stores of a world and the relay through which contexts find each other."""

from collections.abc import Sequence
from functools import partial

from stablecast.core.errors import StablecastError
from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.programs import DATA, RELAY_PORT, StoreProgram, start_relay, start_router
from stablecast.lab.world.world import World
from stablecast.store.journal.record_format import FILE_HEADER_BYTES, FILE_MAGIC
from stablecast.testing.simulated_world import FAR, FAR_RELAY, NEAR, ROUTER, SECOND, SimulatedWorld

RELAY = "relay"
"""The host of the relay, or of that of the first domain."""

ROUTED_S = 4
"""Seconds of virtual time that a router listens before it takes part, and then needs to tell its routes."""

READY_S = 60
"""Seconds of virtual time within which the stores and the relay are ready."""


def start_stores(world: SimulatedWorld, lab: World, count: int, options: Sequence[str] = ()) -> None:
    """Start a relay and stores, on the hosts `store0`, `store1` and so on, and wait until all are ready.

    In a world of two domains each has a relay, and a router is between them.
    """
    relays = {NEAR: RELAY, FAR: FAR_RELAY} if world.far else {0: RELAY}
    for domain, host in relays.items():
        world.resolve_at(domain, f"{world.address(host)}:{RELAY_PORT}")
    programs = [world.add("lbmrd", host, "relay", partial(start_relay, lab, host)) for host in relays.values()]
    for number in range(count):
        host = f"store{number}"
        store = SimulatedStore(world, lab, host, world.context_of(host)["resolver"][0], options)
        # A store whose disk fails serves no more, and the operator of a real one starts it again.
        programs.append(world.add("store", store.host, "store", store.start, may_fail=EXPECTED, is_service=True))
        world.has_store(host, store.address)
    if world.far:
        portals = {domain: {"resolver_unicast_daemon": relay} for domain, relay in world.relays.items()}
        programs.append(world.add("router", ROUTER, "router", lambda: start_router(lab, ROUTER, portals, {})))
    lab.kernel.run(lambda: all(one.output for one in programs), lab.now + READY_S * SECOND)
    if world.far:
        routed = lab.now + ROUTED_S * SECOND
        lab.kernel.run(lambda: lab.now >= routed, routed + SECOND)


EXPECTED = (StablecastError, OSError)
"""Exceptions that end a store for a reason outside of it."""


class SimulatedStore:
    """The store of a host, in all of its lives."""

    def __init__(self, world: SimulatedWorld, lab: World, host: str, relay: str, options: Sequence[str]) -> None:
        self.host = host
        self._program = StoreProgram(lab, host, [relay], options)
        self._served = False
        self._disk = lab.host(host).disk
        self._wiped = world.injector.wiped
        self._declared = world.injector.declared

    @property
    def address(self) -> str:
        return self._program.address

    def start(self) -> SimulatedProcess:
        """Start a process of the store.

        A store that failed before its first registration has no record, and its operator starts it as a new one. A
        store whose disk was wiped is not new, because clients may count on what it had. A restored backup is declared,
        unless the fault leaves that out.
        """
        self._served |= any(
            isinstance(content, bytes) and content.startswith(FILE_MAGIC) and len(content) > FILE_HEADER_BYTES
            for _, _, content in self._disk.backup(str(DATA)).files
        )
        is_new = not self._served and self.host not in self._wiped
        if self.host in self._declared:
            self._declared.remove(self.host)
            self._program.undeclared = True
        return self._program.start(is_new)
