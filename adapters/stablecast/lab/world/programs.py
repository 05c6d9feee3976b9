"""The shipped programs on hosts of a world, as their commands start them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from stablecast.cli import daemons, resolution_daemons
from stablecast.cli import router as router_command
from stablecast.cli.daemons import DaemonJob, StoreJob
from stablecast.config.store_section import STORE_LEVEL
from stablecast.lab.world.process import SimulatedProcess
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

CONFIGURATION = Path("/etc/stores.xml")
"""The configuration file of a daemon."""

ROUTES = Path("/etc/router.toml")
LINK_PORT = 14_380
"""The port at which a router listens for the one that is linked to it."""
"""The configuration file of a router."""

TRACES = Path("/traces")
"""Directory of the traces of a host."""


@attrs.define
class StoreProgram:
    """The store of a host: `start` runs it, also again after it ended.

    Attributes:
        address: The address at which it listens.
        process: Its newest process.
        undeclared: The directory is an older copy, and the next start declares it first.
    """

    world: World
    name: str
    resolver: Sequence[str] = ()
    options: Sequence[str] = ()
    traced: bool = False
    process: SimulatedProcess | None = None
    undeclared: bool = False
    services: Sequence[str] = ()

    @property
    def address(self) -> str:
        return f"{self.world.host(self.name).address}:{STORE_PORT}"

    @property
    def addresses(self) -> list[str]:
        return [self.address]

    @property
    def journals(self) -> list[Path]:
        return [DATA]

    def start(self, new: bool | None = None) -> SimulatedProcess:
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
            services=self.services,
            profile="safe",
            trace=TRACES if self.traced else None,
            as_json=False,
        )
        self.process = self.world.call(lambda: self._run(job), self.name)
        return self.process

    def _run(self, job: StoreJob) -> int:
        if self.undeclared:
            daemons.declare_copy(DATA)
            self.undeclared = False
        return daemons.run_store(job)


@attrs.define
class DaemonProgram:
    """A daemon with several stores on a host, as `stablecast store FILE` runs it.

    Attributes:
        stores: Number of stores. They listen at ports from `STORE_PORT` on.
    """

    world: World
    name: str
    stores: int = 2
    options: Sequence[str] = ()
    traced: bool = False

    @property
    def addresses(self) -> list[str]:
        host = self.world.host(self.name).address
        return [f"{host}:{STORE_PORT + index}" for index in range(self.stores)]

    @property
    def journals(self) -> list[Path]:
        return [DATA / f"cache{index}" for index in range(self.stores)]

    def start(self) -> SimulatedProcess:
        """Start the daemon. The first start makes new stores."""
        host = self.world.host(self.name)
        new = not host.processes
        if new:
            host.disk.place_file(str(CONFIGURATION), self._configuration().encode())
            for index in range(self.stores):
                for kind in ("cache", "state"):
                    host.disk.make_directories(str(DATA / f"{kind}{index}"))
        job = DaemonJob(CONFIGURATION, "safe", False, new, TRACES if self.traced else None, False)
        return self.world.call(lambda: daemons.run_daemon(job), self.name)

    def _configuration(self) -> str:
        host = self.world.host(self.name).address
        stores = "".join(self._store(host, index) for index in range(self.stores))
        return (
            '<?xml version="1.0"?>\n<ume-store version="1.3"><daemon><log type="console"/></daemon>'
            f"<stores>{stores}</stores></ume-store>\n"
        )

    def _store(self, host: str, index: int) -> str:
        given = [(name, value) for name, _, value in (option.partition("=") for option in self.options)]
        usual = [(f"disk-{kind}-directory", str(DATA / f"{kind}{index}")) for kind in ("cache", "state")]
        ours = _attributes([*usual, *(one for one in given if one[0] in STORE_LEVEL)])
        of_topics = dict([("repository-type", "disk"), *(one for one in given if one[0] not in STORE_LEVEL)])
        return (
            f'<store name="store-{index}" interface="{host}" port="{STORE_PORT + index}">{ours}'
            f'<topics><topic pattern="." type="PCRE">{_attributes(of_topics.items())}</topic></topics></store>'
        )


def _attributes(options: Iterable[Sequence[str]]) -> str:
    inside = "".join(f'<option type="store" name="{name}" value="{value}"/>' for name, value in options)
    return f"<ume-attributes>{inside}</ume-attributes>"


def start_relay(world: World, name: str = "relay") -> SimulatedProcess:
    settings = LbmrdConfig(interface=world.host(name).address)
    return world.call(lambda: resolution_daemons.run_lbmrd(settings, 0.0, validate=False, as_json=False), name)


def start_service(world: World, name: str = "service") -> SimulatedProcess:
    settings = SrsConfig(interface=world.host(name).address)
    return world.call(lambda: run_service(resolution_daemons.serve_srs(settings, as_json=False)), name)


def start_router(
    world: World,
    name: str,
    portals: Mapping[int, Mapping[str, object]],
    source: Mapping[str, object],
    link: str = "",
) -> SimulatedProcess:
    """Start `stablecast router` on a host, with a portal in each domain.

    Args:
        world: The world.
        name: The host.
        portals: The options of the context of the portal in each domain, which say where it looks for sources.
        source: The options of all proxy sources.
        link: The address of a router that it is linked to; without a host it listens itself; empty: it has no link.
    """
    host = world.host(name)
    text = f'[daemon]\nname = "{name}"\n\n' + "\n".join(
        f'[[portals.endpoint]]\nname = "portal-{domain}"\ndomain-id = {domain}\n'
        f"context = {_table({'default_interface': host.address, **context})}\nsource = {_table(source)}\n"
        for domain, context in portals.items()
    )
    if link:
        other, _, port = link.rpartition(":")
        end = _table({"address": other, "port": int(port)}) if other else _table({"listen-port": int(port)})
        text += f'\n[[portals.peer]]\nname = "link"\nsingle-tcp.{"initiator" if other else "acceptor"} = {end}\n'
    if not host.processes:
        host.disk.place_file(str(ROUTES), text.encode())
    return world.call(lambda: router_command.run(router_command.RouterJob(ROUTES)), name)


def _table(options: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{name} = {json.dumps(value)}" for name, value in options.items()) + "}"
