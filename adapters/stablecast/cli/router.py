"""Run a router, for `stablecast router`: ready line, signals, monitor and exit status."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Protocol

import attrs

from stablecast.cli.daemon_process import CODE, interruption, read_again, run_process, validated
from stablecast.config.plan import MonitorConfig
from stablecast.core.errors import ConfigError
from stablecast.router import checks, router_files
from stablecast.router.config import RouterConfig
from stablecast.router.daemon import RouterDaemon
from stablecast.router.log_lines import RouterLog
from stablecast.router.views import RouterView, Write
from stablecast.runtime import garbage_collection, machine
from stablecast.runtime.service_manager import ServiceManager
from stablecast.store.log_lines import Log, Severity
from stablecast.text import plural
from stablecast.text.console import say

LOOK_SECONDS = 1.0
"""Time between two looks at the portals for the log."""


@attrs.frozen
class RouterJob:
    """The arguments of `stablecast router FILE`."""

    path: Path
    detach: bool = False
    as_json: bool = False


class ServedRouter(Protocol):
    """A router that serves until it is closed."""

    def snapshot(self, *, brief: bool = False) -> RouterView:
        """Return what it shows of itself; `brief`: without interest and proxies, which cost more."""

    async def close(self) -> None:
        """Let go of what is queued, advertise the end of all proxy sources, and stop."""


Start = Callable[[RouterConfig, Write], Awaitable[ServedRouter]]
"""Starts a router that writes to a log."""


def validate(path: Path, as_json: bool) -> int:
    """Check a configuration file; return the exit status. Raises like `validated`."""
    return validated(
        path,
        lambda: router_files.load(path),
        lambda config: {"router": config.name, "portals": [portal.name for portal in config.portals]},
        as_json,
    )


def run(job: RouterJob, start: Start = RouterDaemon.start) -> int:
    """Run the router of a configuration file until interrupted; return the exit status."""
    config = router_files.load(job.path)
    if wrong := checks.deaf(config):
        raise ConfigError(f"{job.path}: {wrong[0]}")
    return run_process(
        job.path,
        config.daemon,
        config.notices,
        lambda log, detached: serve(config, job, log, start, detached),
        detach=job.detach,
    )


async def serve(
    config: RouterConfig, job: RouterJob, log: Log, start: Start, detached: machine.DetachedProcess | None = None
) -> int:
    """Serve until interrupted; return the exit status. Raises like `start` and the monitor."""
    interrupted = interruption(log)
    async with AsyncExitStack() as stack:
        router = await start(config, log.write)
        stack.push_async_callback(router.close)
        lines = RouterLog(log.write)
        lines.begin(router.snapshot(brief=True))
        watching = asyncio.create_task(_watch(router, lines))
        stack.callback(watching.cancel)
        garbage_collection.keep_served()
        monitor = await monitored(config.daemon.monitor, router, log, stack)
        if config.daemon.log.path is not None:
            machine.process.on_hang_up(partial(_hang_up, job.path, config, log))
        _say_ready(router.snapshot(brief=True), monitor, job.as_json)
        if detached is not None:
            detached.ready()
        status = f"routes between {plural(len(config.portals), 'domain')}"
        if config.peers:
            status += f" and {plural(len(config.peers), 'other router')}"
        await stack.enter_async_context(ServiceManager.of_environment().serving(status))
        await interrupted
    say({"stopped": True} if job.as_json else "stopped")
    return 0


async def _watch(router: ServedRouter, log: RouterLog) -> None:
    """Write lines about the portals until cancelled."""
    while True:
        log.look(router.snapshot(brief=True), machine.clock.monotonic_ns())
        await asyncio.sleep(LOOK_SECONDS)


async def monitored(wanted: MonitorConfig | None, router: ServedRouter, log: Log, stack: AsyncExitStack) -> str:
    """Serve the monitor until the stack ends, if the file has one; return its address.

    Raises ConfigError, PortError, and OSError if the token file cannot be read.
    """
    if wanted is None:
        return ""
    from stablecast.ops.monitor.server import listening  # noqa: PLC0415 - it loads an HTTP server
    from stablecast.ops.monitor.settings import MonitorSettings  # noqa: PLC0415
    from stablecast.ops.router.site import RouterSite  # noqa: PLC0415

    # Nobody can change a router through its monitor, so it is read-only.
    settings = MonitorSettings.of(wanted.host, wanted.port, wanted.token_file)
    site = RouterSite(settings, router.snapshot)
    return await stack.enter_async_context(listening(settings, site.application(), "the monitor", log.write))


def _hang_up(path: Path, config: RouterConfig, log: Log) -> None:
    """Answer a SIGHUP: reopen the log and follow its rolling; name whether the file has changes that need a restart."""
    now = read_again(path, lambda: router_files.load(path), log, config.daemon.log)
    if now is None:
        return
    rolling = attrs.evolve(config.daemon, log=now.daemon.log)
    before = (config.name, config.portals, config.peers, config.routes, rolling)
    if (now.name, now.portals, now.peers, now.routes, now.daemon) != before:
        log.write(Severity.WARNING, "", CODE, f"{path} changed; restart the router to follow it")


def _say_ready(view: RouterView, monitor: str, as_json: bool) -> None:
    portals = [{"name": one.name, "domain": one.domain, "address": one.address} for one in view.portals]
    if as_json:
        say({"ready": True, "router": view.name, "portals": portals, **({"monitor": monitor} if monitor else {})})
        return
    between = ", ".join(
        f"{one.name} ({'link' if one.link else f'domain {one.domain}'}) at {one.address}" for one in view.portals
    )
    say(f'router "{view.name}" is ready: {between}')
    if monitor:
        say(f"monitor at http://{monitor}")
