"""`stablecast srs`: the stateful resolution service in the foreground."""

import asyncio
import sys
from pathlib import Path

import attrs

from stablecast.cli.common import run_loop, say, until_interrupted
from stablecast.srs import SrsConfig, SrsDaemon, load
from stablecast.srs.log import ConsoleLog, Log, RollingLog


def run(config: Path | None, interface: str | None, port: int | None, validate: bool, as_json: bool) -> int:
    """Run one service; see `stablecast srs --help`."""
    settings = SrsConfig() if config is None else load(config)
    if interface is not None:
        settings = attrs.evolve(settings, interface=interface)
    if port is not None:
        settings = attrs.evolve(settings, port=port)
    if validate:
        say({"valid": True} if as_json else "the configuration is valid")
        return 0
    return run_loop(serve(settings, as_json))


async def serve(settings: SrsConfig, as_json: bool) -> int:
    """Serve until interrupted; returns the exit status. Raises like `SrsDaemon.start`, and OSError for the log."""
    name = settings.log.name
    console = ConsoleLog(sys.stderr if as_json else sys.stdout)
    log: Log = console if name is None else RollingLog(name, settings.log)
    interrupted = asyncio.create_task(until_interrupted())  # Signals are heard before anybody knows that we are ready.
    try:
        daemon = await SrsDaemon.start(settings, log.write)
        say({"ready": True, "address": daemon.address} if as_json else f"srs is ready on {daemon.address}")
        await interrupted
        statistics = daemon.statistics()
        await daemon.close()
    finally:
        interrupted.cancel()
        log.close()
    counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in statistics.items())
    say({"stopped": True, **statistics} if as_json else f"srs stopped: {counts}")
    return 0
