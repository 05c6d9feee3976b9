"""The daemons in the foreground: ready line, signals, exit status."""

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from stablecast.cli.common import note, parse_options, run_loop, say
from stablecast.cli.main import INTERRUPTED
from stablecast.config import options
from stablecast.config.profiles import profile
from stablecast.daemon.store import Store, StoreSettings
from stablecast.net import address
from stablecast.resolver import RelayDaemon
from stablecast.resolver.services import parse_services


@attrs.frozen
class StoreJob:
    """What `stablecast store` was asked for."""

    directory: Path
    listen: str
    options: Sequence[str]
    new: bool
    resolver: Sequence[str]
    services: Sequence[str]
    profile: str
    trace: Path | None
    as_json: bool


def run_store(job: StoreJob) -> int:
    """Run one store; see `stablecast store --help`."""
    host, port = address.parse(job.listen)
    seed = int.from_bytes(os.urandom(8), "big")
    defaults = attrs.evolve(profile(job.profile).store, address=job.listen, seed=seed)
    given = parse_options(job.options)
    config = options.apply("store", defaults, given)
    for notice in options.notices("store", given):
        note(notice)
    settings = StoreSettings(
        address.join(host, port),
        job.directory,
        config,
        job.trace,
        new=job.new,
        resolver=[address.join(*address.parse(relay)) for relay in job.resolver],
        resolver_service=parse_services(job.services),
    )
    return run_loop(serve(Store(settings), job.as_json))


def run_relay(listen: str, as_json: bool) -> int:
    """Run the lbmrd relay; see `stablecast lbmrd --help`."""
    host, port = address.parse(listen)
    return run_loop(serve_relay(host, port, as_json))


async def serve(store: Store, as_json: bool) -> int:
    """Run a store until it is interrupted or its disk fails; returns the exit status. Raises like `Store.start`."""
    interrupt = _interrupt()
    await store.start()
    for report in store.reports:
        note(report)
    if as_json:
        say({"ready": True, "address": store.address, "directory": str(store.settings.directory)})
    else:
        say(f"store ready to accept registrations at {store.address}")
    ends: set[asyncio.Future[Any]] = {interrupt, store.failed}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    await store.stop()
    if as_json:
        say({"stopped": True, **store.statistics()})
    return 0


async def serve_relay(interface: str, port: int, as_json: bool) -> int:
    """Run a relay until it is interrupted; returns the exit status. Raises like `RelayDaemon.start`."""
    interrupt = _interrupt()
    relay = await RelayDaemon.start(interface, port)
    say({"ready": True, "port": relay.port} if as_json else f"lbmrd is ready on {relay.address}")
    await interrupt
    statistics = relay.statistics()
    await relay.close()
    counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in statistics.items())
    say({"stopped": True, **statistics} if as_json else f"lbmrd stopped: {counts}")
    return 0


def _interrupt() -> "asyncio.Future[None]":
    """Done at the first SIGINT or SIGTERM (P-707).

    The second one ends the process as a crash would (P-708): the disk may be what it does not want to wait for, and
    whatever was reported stable is on it.
    """
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()

    def interrupted() -> None:
        if stop.done():
            os._exit(INTERRUPTED)
        stop.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
    return stop
