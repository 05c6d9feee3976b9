"""Run the daemons of topic resolution in the foreground, for `stablecast lbmrd` and `stablecast srs`."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import attrs

from stablecast.resolver import RelayDaemon
from stablecast.resolver.lbmrd import config as relay_config
from stablecast.resolver.lbmrd.config import LbmrdConfig
from stablecast.resolver.srs import SrsConfig, SrsDaemon, load
from stablecast.resolver.srs.statistics import plain_value
from stablecast.resolver.srs.xml_config import load_xml
from stablecast.runtime import address, machine
from stablecast.runtime.event_loop import run_service, until_interrupted
from stablecast.runtime.interfaces import address_of, check_local, resolved_place
from stablecast.runtime.logs import LineLog, RollingPolicy, daemon_log
from stablecast.runtime.service_manager import ServiceManager
from stablecast.text.console import note, say


def dump(schema: str) -> int:
    """Print the schema of configuration files; return the exit status."""
    machine.process.output().write(schema)
    return 0


def run_lbmrd(settings: LbmrdConfig, statistics: float, *, validate: bool, as_json: bool) -> int:
    """Run one relay until interrupted, or only report that `settings` are valid; return the exit status."""
    for notice in settings.notices:
        note(notice.told("lbmrd"))
    if settings.late:
        note(settings.late)
    if validate:
        return _say_valid(as_json)
    return run_service(_serve_lbmrd(settings, statistics, as_json))


def configured(
    config: Path | None, listen: str | None, interface: str | None, ttl: int | None, overrides: dict[str, Any]
) -> LbmrdConfig:
    """Return the settings of a file with the command line's values in their place.

    Args:
        config: XML file; None: start from the defaults.
        listen: `ip:port`. It overrides `interface` and the port.
        interface: Address, network or device.
        ttl: Seconds until a silent client is removed. The file has milliseconds.
        overrides: Values of other settings by name; None keeps the file's value.

    Raises:
        ConfigFileError: the file is not valid.
        AddressError: `listen` is not an address.
        InterfaceError: `interface` names no interface of this host.
    """
    settings = LbmrdConfig() if config is None else relay_config.load(config)
    given = {**overrides, "ttl": None if ttl is None else 1_000 * ttl}
    given["interface"] = None if interface is None else address_of(interface)
    if listen is not None:
        given["interface"], given["port"] = address.parse(resolved_place(listen))
    return attrs.evolve(settings, **{name: value for name, value in given.items() if value is not None})


async def _serve_lbmrd(settings: LbmrdConfig, statistics: float, as_json: bool) -> int:
    """Serve until interrupted; return the exit status. Raises like `RelayDaemon.start`, and OSError for the log."""
    log = daemon_log(settings.log, RollingPolicy(), machine.process.errors())
    starting = RelayDaemon.start(
        settings.interface,
        settings.port,
        settings.relay(),
        log.write,
        warn=log.warning,
        receive_buffer=settings.receive_buffer,
        send_buffer=settings.send_buffer,
        report_every=statistics,
    )
    return await _serve("lbmrd", starting, log, as_json, to_file=settings.log is not None)


def run_srs(
    config: Path | None, interface: str | None, port: int | None, *, validate: bool, dump: bool, as_json: bool
) -> int:
    """Run one service until interrupted, or print its settings; return the exit status."""
    settings = SrsConfig() if config is None else read(config)
    given: dict[str, Any] = {"interface": interface, "port": port}
    settings = attrs.evolve(settings, **{name: value for name, value in given.items() if value is not None})
    if dump:
        say(attrs.asdict(settings, value_serializer=plain_value))
        return 0
    for notice in settings.notices:
        note(f"{config}:{notice}")
    if validate:
        # A wrong interface would only show when the service starts.
        for wanted in (settings.interface, *([settings.debug.interface] if settings.debug.enabled else [])):
            check_local(wanted)
        return _say_valid(as_json)
    return run_service(serve_srs(settings, as_json))


def read(config: Path) -> SrsConfig:
    """Return the settings of a file: XML if its suffix is .xml, else TOML. Raises ConfigFileError."""
    return load_xml(config) if config.suffix.lower() == ".xml" else load(config)


async def serve_srs(settings: SrsConfig, as_json: bool) -> int:
    """Serve until interrupted; return the exit status.

    Raises like `SrsDaemon.start`, and OSError if the log cannot be written.
    """
    console = machine.process.errors() if as_json else machine.process.output()
    log = daemon_log(settings.log.name, settings.log.rolling(), console)
    starting = SrsDaemon.start(settings, log.write, log.warning)
    to_file = settings.log.name is not None
    return await _serve("srs", starting, log, as_json, to_file=to_file, pid_file=settings.pid_file)


@asynccontextmanager
async def _statistics_of(daemon: RelayDaemon | SrsDaemon, log: LineLog) -> AsyncIterator[dict[str, str]]:
    """Publish the statistics of a service and serve its monitor, if it has them; yield the address of the monitor."""
    if isinstance(daemon, RelayDaemon) or not (daemon.config.debug.enabled or daemon.config.monitor.topic):
        yield {}
        return
    from stablecast.cli import srs_statistics  # noqa: PLC0415 - most services have neither

    async with srs_statistics.serving(daemon, log.warning) as fields:
        yield fields


def _say_valid(as_json: bool) -> int:
    """Print that a configuration is valid; return the exit status."""
    say({"valid": True} if as_json else "the configuration is valid")
    return 0


async def _serve(
    name: str,
    starting: Coroutine[Any, Any, RelayDaemon | SrsDaemon],
    log: LineLog,
    as_json: bool,
    *,
    to_file: bool,
    pid_file: Path | None = None,
) -> int:
    """Serve until interrupted, and close the log; return the exit status. Raises like `starting`, which starts it."""
    interrupted = asyncio.create_task(until_interrupted())
    # The task installs the signal handlers before the ready line: whoever reads that line may send a signal at once.
    await asyncio.sleep(0)
    if to_file:
        # A daemon whose log is a file needs no terminal, so a hang-up ends nothing.
        machine.process.on_hang_up(log.reopen)
    try:
        daemon = await starting
        if pid_file is not None:
            machine.files.write_bytes(pid_file, f"{machine.process.pid()}\n".encode())
        place = {"port": daemon.port} if isinstance(daemon, RelayDaemon) else {"address": daemon.address}
        async with _statistics_of(daemon, log) as more:
            at = f"; monitor at http://{more['monitor']}" if more else ""
            say({"ready": True, **place, **more} if as_json else f"{name} is ready on {daemon.address}{at}")
            async with ServiceManager.of_environment().serving(f"serves at {daemon.address}"):
                await interrupted
        counted = daemon.statistics()
        await daemon.close()
        if pid_file is not None:
            with suppress(FileNotFoundError):
                machine.files.remove(pid_file)
    finally:
        interrupted.cancel()
        log.close()
    counts = ", ".join(f"{counter.replace('_', ' ')} {count}" for counter, count in counted.items())
    say({"stopped": True, **counted} if as_json else f"{name} stopped: {counts}")
    return 0
