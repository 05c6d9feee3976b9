"""Run the stateful resolution service in the foreground, for `stablecast srs`."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from enum import Enum
from pathlib import Path
from typing import Any

import attrs

from stablecast.core.errors import StablecastError
from stablecast.resolver.srs import SrsConfig, SrsDaemon, load
from stablecast.resolver.srs.xml_config import XSD, load_xml
from stablecast.runtime import machine
from stablecast.runtime.event_loop import run_service, until_interrupted
from stablecast.runtime.logs import ConsoleLog, LineLog, PlainLog, begun
from stablecast.text.console import note, say


def run(
    config: Path | None, interface: str | None, port: int | None, *, validate: bool, dump: bool, as_json: bool
) -> int:
    """Run one service until interrupted, or print its settings; return the exit status."""
    settings = SrsConfig() if config is None else read(config)
    given: dict[str, Any] = {"interface": interface, "port": port}
    settings = attrs.evolve(settings, **{name: value for name, value in given.items() if value is not None})
    if dump:
        say(attrs.asdict(settings, value_serializer=_plain))
        return 0
    for notice in settings.notices:
        note(f"{config}:{notice}")
    if validate:
        say({"valid": True} if as_json else "the configuration is valid")
        return 0
    return run_service(serve(settings, as_json))


def read(config: Path) -> SrsConfig:
    """Return the settings of a file: XML if its suffix is .xml, else TOML. Raises ConfigFileError."""
    return load_xml(config) if config.suffix.lower() == ".xml" else load(config)


def _plain(_: object, __: object, value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


async def _publish(daemon: SrsDaemon, warn: Callable[[str], None]) -> None:
    """Publish statistics on their topic. A failure is logged and does not stop the service."""
    from stablecast.cli.srs_publisher import publish  # noqa: PLC0415 - most services publish none

    try:
        await publish(daemon)
    except (StablecastError, OSError) as error:
        warn(f"statistics are no longer published: {error}")


def dump_xsd() -> int:
    """Print the schema of XML configuration files; return the exit status."""
    machine.process.output().write(XSD)
    return 0


async def serve(settings: SrsConfig, as_json: bool) -> int:
    """Serve until interrupted; return the exit status.

    Raises like `SrsDaemon.start`, and OSError if the log cannot be written.
    """
    name = settings.log.name
    console = ConsoleLog(machine.process.errors() if as_json else machine.process.output())
    log: LineLog = console if name is None else begun(PlainLog(name, settings.log.rolling()))
    # The task installs the signal handlers before the ready line is printed.
    interrupted = asyncio.create_task(until_interrupted())
    await asyncio.sleep(0)
    stack = AsyncExitStack()
    try:
        if name is not None:
            # A service whose log is a file needs no terminal, so a hang-up ends nothing.
            machine.process.on_hang_up(log.reopen)
        daemon = await SrsDaemon.start(settings, log.write, log.warning)
        if settings.pid_file is not None:
            machine.files.write_bytes(settings.pid_file, f"{machine.process.pid()}\n".encode())
        stack.push_async_callback(daemon.close)
        ready = {"ready": True, "address": daemon.address}
        if settings.debug.enabled:
            from stablecast.cli.srs_monitor import SrsMonitor  # noqa: PLC0415 - most services have none

            monitor = SrsMonitor(daemon)
            await monitor.start()
            stack.push_async_callback(monitor.stop)
            ready["monitor"] = monitor.address
        if settings.monitor.topic and any(daemon.details.intervals.values()):
            publishing = asyncio.create_task(_publish(daemon, log.warning))
            stack.callback(publishing.cancel)
        at = f"; monitor at http://{ready['monitor']}" if "monitor" in ready else ""
        say(ready if as_json else f"srs is ready on {daemon.address}{at}")
        await interrupted
        statistics = daemon.statistics()
        await stack.aclose()
        if settings.pid_file is not None:
            with suppress(FileNotFoundError):
                machine.files.remove(settings.pid_file)
    finally:
        await stack.aclose()
        interrupted.cancel()
        log.close()
    counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in statistics.items())
    say({"stopped": True, **statistics} if as_json else f"srs stopped: {counts}")
    return 0
