"""Run the unicast topic-resolution relay in the foreground, for `stablecast lbmrd`."""

import asyncio
from pathlib import Path
from typing import Any

import attrs

from stablecast.resolver import RelayDaemon
from stablecast.resolver.lbmrd.config import DTD, LbmrdConfig, load
from stablecast.runtime import address, machine
from stablecast.runtime.event_loop import run_service, until_interrupted
from stablecast.runtime.interfaces import address_of, resolved_place
from stablecast.runtime.logs import ConsoleLog, LineLog, PlainLog, RollingPolicy, begun
from stablecast.runtime.service_manager import ServiceManager
from stablecast.text.console import note, say


def dump_dtd() -> int:
    """Print the DTD of configuration files; return the exit status."""
    machine.process.output().write(DTD)
    return 0


def run(settings: LbmrdConfig, statistics: float, *, validate: bool, as_json: bool) -> int:
    """Run one relay until interrupted, or only report that `settings` are valid; return the exit status."""
    if validate:
        say({"valid": True} if as_json else "the configuration is valid")
        return 0
    if settings.ttl < settings.activity:
        note(f"the relay looks for silent clients only every {settings.activity} ms: set activity below ttl")
    return run_service(serve(settings, statistics, as_json))


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
    settings = LbmrdConfig() if config is None else load(config)
    given = {**overrides, "ttl": None if ttl is None else 1_000 * ttl}
    given["interface"] = None if interface is None else address_of(interface)
    if listen is not None:
        given["interface"], given["port"] = address.parse(resolved_place(listen))
    return attrs.evolve(settings, **{name: value for name, value in given.items() if value is not None})


async def serve(settings: LbmrdConfig, statistics: float, as_json: bool) -> int:
    """Serve until interrupted; return the exit status. Raises like `RelayDaemon.start`, and OSError for the log."""
    log: LineLog = (
        ConsoleLog(machine.process.errors()) if settings.log is None else begun(PlainLog(settings.log, RollingPolicy()))
    )
    interrupted = asyncio.create_task(until_interrupted())
    # The task installs the signal handlers before the ready line: whoever reads that line may send a signal at once.
    await asyncio.sleep(0)
    if settings.log is not None:
        machine.process.on_hang_up(log.reopen)
    try:
        relay = await RelayDaemon.start(
            settings.interface,
            settings.port,
            settings.relay(),
            log.write,
            warn=log.warning,
            receive_buffer=settings.receive_buffer,
            send_buffer=settings.send_buffer,
            report_every=statistics,
        )
        say({"ready": True, "port": relay.port} if as_json else f"lbmrd is ready on {relay.address}")
        async with ServiceManager.of_environment().serving(f"forwards at {relay.address}"):
            await interrupted
        counted = relay.statistics()
        await relay.close()
    finally:
        interrupted.cancel()
        log.close()
    counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counted.items())
    say({"stopped": True, **counted} if as_json else f"lbmrd stopped: {counts}")
    return 0
