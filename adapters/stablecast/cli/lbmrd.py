"""`stablecast lbmrd`: the unicast topic-resolution relay in the foreground."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import attrs

from stablecast.resolver import RelayDaemon
from stablecast.resolver.lbmrd.config import DTD, LbmrdConfig, load
from stablecast.runtime import address
from stablecast.runtime.event_loop import run_service, until_interrupted
from stablecast.runtime.interfaces import address_of
from stablecast.runtime.logs import ConsoleLog, LineLog, PlainLog, RollingPolicy
from stablecast.text.console import note, say


@attrs.frozen
class LbmrdJob:
    """What `stablecast lbmrd` was asked for; None: what the file says, or the default.

    Attributes:
        ttl: Seconds, as documented for the command line.
        activity: Milliseconds.
        statistics: Seconds between statistics in the log; 0: none.
    """

    config: Path | None = None
    listen: str | None = None
    interface: str | None = None
    port: int | None = None
    activity: int | None = None
    ttl: int | None = None
    log: Path | None = None
    receive_buffer: int | None = None
    send_buffer: int | None = None
    statistics: float = 0
    dump: bool = False
    validate: bool = False
    as_json: bool = False


def run(job: LbmrdJob) -> int:
    """Run one relay; see `stablecast lbmrd --help`."""
    if job.dump:
        sys.stdout.write(DTD)
        return 0
    settings = configured(job)
    if job.validate:
        say({"valid": True} if job.as_json else "the configuration is valid")
        return 0
    if settings.ttl < settings.activity:
        note(f"silent clients are looked for every {settings.activity} ms only: keep activity below ttl")
    return run_service(serve(settings, job.statistics, job.as_json))


def configured(job: LbmrdJob) -> LbmrdConfig:
    """The file, and what the command line says otherwise. Raises ConfigFileError, AddressError, InterfaceError."""
    settings = LbmrdConfig() if job.config is None else load(job.config)
    given: dict[str, Any] = {
        "port": job.port,
        "activity": job.activity,
        "ttl": None if job.ttl is None else 1_000 * job.ttl,
        "log": job.log,
        "receive_buffer": job.receive_buffer,
        "send_buffer": job.send_buffer,
        "interface": None if job.interface is None else address_of(job.interface),
    }
    if job.listen is not None:
        given["interface"], given["port"] = address.parse(job.listen)
    return attrs.evolve(settings, **{name: value for name, value in given.items() if value is not None})


async def serve(settings: LbmrdConfig, statistics: float, as_json: bool) -> int:
    """Serve until interrupted; returns the exit status. Raises like `RelayDaemon.start`, and OSError for the log."""
    log: LineLog = ConsoleLog(sys.stderr) if settings.log is None else PlainLog(settings.log, RollingPolicy())
    interrupted = asyncio.create_task(until_interrupted())
    await asyncio.sleep(0)  # Signals are heard before anybody knows that we are ready.
    try:
        relay = await RelayDaemon.start(
            settings.interface,
            settings.port,
            settings.relay(),
            log.write,
            receive_buffer=settings.receive_buffer,
            send_buffer=settings.send_buffer,
            report_every=statistics,
        )
        say({"ready": True, "port": relay.port} if as_json else f"lbmrd is ready on {relay.address}")
        await interrupted
        counted = relay.statistics()
        await relay.close()
    finally:
        interrupted.cancel()
        log.close()
    counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counted.items())
    say({"stopped": True, **counted} if as_json else f"lbmrd stopped: {counts}")
    return 0
