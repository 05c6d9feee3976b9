"""The shipped programs on hosts of a world, as their commands start them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from stablecast.cli import daemons, lbmrd, srs
from stablecast.cli.daemons import StoreJob
from stablecast.lab.world.process import Process
from stablecast.lab.world.world import World
from stablecast.resolver.lbmrd.config import LbmrdConfig
from stablecast.resolver.srs import SrsConfig
from stablecast.runtime.event_loop import run_service

STORE_PORT = 14_567
RELAY_PORT = 15_380
SERVICE_PORT = 27_000
"""Ports at which the programs listen by default."""

DATA = Path("/data")
"""Directory of a store."""

TRACES = Path("/traces")
"""Directory of the traces of a host."""


@attrs.define
class StoreProgram:
    """The store of a host: `start` runs it, also again after it ended.

    Attributes:
        address: The address at which it listens.
        process: Its newest process.
    """

    world: World
    name: str
    resolver: Sequence[str] = ()
    options: Sequence[str] = ()
    traced: bool = False
    process: Process | None = None

    @property
    def address(self) -> str:
        """The address at which it listens."""
        return f"{self.world.host(self.name).address}:{STORE_PORT}"

    def start(self, new: bool | None = None) -> Process:
        """Start `stablecast store`, as a new store or not; None: the first start is one of a new store."""
        host = self.world.host(self.name)
        new = not host.processes if new is None else new
        host.disk.make_directories(str(DATA))
        job = StoreJob(
            directory=DATA,
            listen=self.address,
            options=self.options,
            new=new,
            resolver=self.resolver,
            services=(),
            profile="safe",
            trace=TRACES if self.traced else None,
            as_json=False,
        )
        self.process = self.world.call(lambda: daemons.run_store(job), self.name)
        return self.process


def start_relay(world: World, name: str = "relay") -> Process:
    """Start `stablecast lbmrd` on a host."""
    settings = LbmrdConfig(interface=world.host(name).address)
    return world.call(_relay(settings), name)


def start_service(world: World, name: str = "service") -> Process:
    """Start `stablecast srs` on a host."""
    settings = SrsConfig(interface=world.host(name).address)
    return world.call(lambda: run_service(srs.serve(settings, as_json=False)), name)


def relay_address(world: World, name: str = "relay") -> str:
    """Return the address of the relay on a host."""
    return f"{world.host(name).address}:{RELAY_PORT}"


def _relay(settings: LbmrdConfig) -> Callable[[], int]:
    return lambda: lbmrd.run(settings, 0.0, validate=False, as_json=False)
