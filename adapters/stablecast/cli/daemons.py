"""Run store daemons, for `stablecast store`: ready line, signals and exit status."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from stablecast.cli.daemon_process import interruption, run_process, validated
from stablecast.config import options
from stablecast.config.options import parse_options
from stablecast.config.plan import LogConfig, Plan
from stablecast.config.profiles import profile
from stablecast.config.schema import NEWEST, dtd
from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.runtime import address, garbage_collection, machine, tls
from stablecast.runtime.address import parse_services
from stablecast.runtime.event_loop import run_loop, run_service
from stablecast.runtime.interfaces import resolved_place
from stablecast.runtime.service_manager import ServiceManager
from stablecast.store.declaration import declare
from stablecast.store.hosts import Host, Hosts
from stablecast.store.log_lines import Log, Severity
from stablecast.store.proxy import context_for
from stablecast.store.settings import all_settings, disk_of
from stablecast.store.store import Store, StoreSettings
from stablecast.text import plural
from stablecast.text.console import note, say

if TYPE_CHECKING:
    from stablecast.ops.monitor.server import Monitor


ABOUT_COPIES = frozenset(
    {"damaged", "history-forgotten", "not-refilled", "older-copy", "refill-started", "refilled", "released-unread"}
)
"""Codes of lines that a store prints if it has no log: it has fewer copies than it should, or has them again."""


@attrs.frozen
class StoreJob:
    directory: Path
    listen: str
    options: Sequence[str]
    new: bool
    resolver: Sequence[str]
    services: Sequence[str]
    profile: str
    trace: Path | None
    as_json: bool


@attrs.frozen
class DaemonJob:
    """Hold the arguments of `stablecast store CONFIG`."""

    path: Path
    profile: str
    detach: bool
    new: bool
    trace: Path | None
    as_json: bool


def dump() -> int:
    """Print the document type of configuration files (P-702); return the exit status."""
    say(dtd(NEWEST).rstrip())
    return 0


def _load(path: Path, profile_name: str) -> Plan:
    from stablecast.config.plan_assembly import load  # noqa: PLC0415  - a store on a directory needs no XML parser

    return load(path, profile_name)


def validate(path: Path, profile_name: str, as_json: bool) -> int:
    """Check a configuration file; return the exit status. Raises like `validated`."""
    return validated(
        path,
        lambda: _load(path, profile_name),
        lambda plan: {"stores": [store.name for store in plan.stores]},
        as_json,
    )


def declare_copy(directory: Path) -> int:
    """Declare that a directory is an older copy; return the number of sources without a vote. Raises JournalError."""
    return run_loop(declare(directory))


def run_store(job: StoreJob) -> int:
    """Run one store on a directory until interrupted; return the exit status."""
    listen = resolved_place(job.listen)
    host, port = address.parse(listen)
    seed = int.from_bytes(machine.entropy.octets(8), "big")
    base = profile(job.profile)
    given = parse_options(job.options)
    config = options.apply("store", attrs.evolve(base.store, address=listen, seed=seed), given)
    disk = options.apply("disk", base.disk, options.disk_options(given))
    for notice in options.notices("store", given):
        note(notice)
    settings = StoreSettings(
        address.join(host, port),
        job.directory,
        config,
        job.trace,
        disk_of(disk, config),
        new=job.new,
        resolver=[address.join(*address.parse_place(relay)) for relay in job.resolver],
        resolver_service=parse_services(job.services),
        reads=disk.reads,
        log=partial(_note_copies, f"store at {listen}"),
    )
    machine.process.raise_descriptor_limit()
    machine.process.keep_files_private()
    return run_service(serve(settings, job.as_json))


def _note_copies(store: str, _severity: Severity, _who: str, code: str, text: str) -> None:
    """Print lines about lost and regained copies of messages. A store without a configuration has no log."""
    if code in ABOUT_COPIES:
        note(f"{store}: {text}")


def run_daemon(job: DaemonJob) -> int:
    """Run the stores of a configuration file until interrupted; return the exit status."""
    plan = _load(job.path, job.profile)
    daemon = plan.daemon
    if daemon.tls is not None:
        tls.use(daemon.tls)
    return run_process(
        job.path, daemon, plan.notices, lambda log, detached: serve_daemon(plan, job, log, detached), detach=job.detach
    )


async def serve_daemon(plan: Plan, job: DaemonJob, log: Log, detached: machine.DetachedProcess | None = None) -> int:
    """Run stores until interrupted; return the exit status.

    A store whose disk fails is parked: the other stores and the monitor continue. Raises like `Hosts.start` and
    `Hosts.stop`.
    """
    interrupted = interruption(log)
    hosts = Hosts(all_settings(plan, log.write, new=job.new, trace=job.trace), machine.process.new_loop)
    async with AsyncExitStack() as stack:
        await hosts.start()
        stack.push_async_callback(hosts.stop)
        monitor = _monitor(plan, hosts, log)
        if monitor is not None:
            stack.push_async_callback(monitor.stop)
        publishing = asyncio.create_task(_publish(plan, hosts, log))
        stack.callback(publishing.cancel)
        garbage_collection.keep_served()
        if plan.daemon.log.path is not None:
            from stablecast.cli.hang_up import HangUp  # noqa: PLC0415 - it loads the parsers of configuration files

            machine.process.on_hang_up(HangUp(job.path, job.profile, plan, log, hosts.hosts))
        _say_all_ready(hosts, monitor, plan.daemon.log, job.as_json)
        if detached is not None:
            detached.ready()
        await stack.enter_async_context(_reported(hosts.hosts))
        tending = asyncio.create_task(hosts.tend())
        stack.push_async_callback(_cancelled, tending)
        await asyncio.wait({interrupted, tending}, return_when=asyncio.FIRST_COMPLETED)
    say({"stopped": True} if job.as_json else "stopped")
    return 0


def _say_all_ready(hosts: Hosts, monitor: "Monitor | None", log: LogConfig, as_json: bool) -> None:
    for host in hosts.hosts:
        name = host.store.settings.name
        for report in host.store.reports if log.path is not None else ():  # The console has the lines of its log.
            note(f'store "{name}": {report}')
        _say_ready(host.store, f'store "{name}"', {"store": name}, as_json)
    if monitor is not None:
        say({"monitor": monitor.address} if as_json else f"monitor at http://{monitor.address}")


def _say_ready(store: Store, who: str, fields: Mapping[str, str], as_json: bool) -> None:
    """Print that a store is ready, now or when it grants registrations; until then, print for how long it waits."""
    ready = {"ready": True, "address": store.address, **fields}
    text = f"{who} ready to accept registrations at {store.address}"
    seconds = store.waiting_ns / SECOND
    if seconds:
        waiting = {**ready, "ready": False, "waits_seconds": round(seconds)}
        say(waiting if as_json else f"{who} at {store.address} grants no registration for {seconds:.0f} s")
        asyncio.get_running_loop().call_later(seconds, say, ready if as_json else text)
    else:
        say(ready if as_json else text)


def _reported(hosts: Sequence[Host]) -> AbstractAsyncContextManager[None]:
    """Report to the service manager that the stores are ready, that their loops turn, and at the end that they stop."""
    seconds = max((host.store.waiting_ns for host in hosts), default=0) / SECOND
    status = f"{plural(len(hosts), 'store')} ready to accept registrations"

    async def turned() -> None:
        await asyncio.gather(*(host.turn() for host in hosts))

    return ServiceManager.of_environment().serving(status, turned, seconds)


def _monitor(plan: Plan, hosts: Hosts, log: Log) -> "Monitor | None":
    """Start and return the monitor if the plan has one.

    Raises ConfigError, PortError, and OSError if the token file cannot be read.
    """
    wanted = plan.daemon.monitor
    if wanted is None:
        return None
    from stablecast.ops.monitor.server import Monitor  # noqa: PLC0415 - most stores have none, and the import is slow
    from stablecast.ops.monitor.settings import MonitorSettings  # noqa: PLC0415

    settings = MonitorSettings.of(wanted.host, wanted.port, wanted.token_file, writable=wanted.writable)
    monitor = Monitor(settings, hosts.watched, log.write)
    monitor.start()
    return monitor


async def _publish(plan: Plan, hosts: Hosts, log: Log) -> None:
    """Publish statistics if the plan asks for them. A failure is logged and does not stop the stores."""
    if plan.daemon.statistics is None or not hosts.hosts:
        return
    from stablecast.store.statistics_topic import Publisher  # noqa: PLC0415 - most stores publish none

    first = hosts.hosts[0].store
    host, _ = address.parse(first.address)
    try:
        await Publisher(plan, hosts.watched, lambda: context_for(first.settings, host)).run()
    except (StablecastError, OSError) as error:
        log.write(Severity.WARNING, "", "statistics-failed", f"statistics are no longer published: {error}")


async def serve(settings: StoreSettings, as_json: bool) -> int:
    """Run a store until interrupted or until its disk fails; return the exit status.

    Raises like `Store.start`.
    """
    interrupted = interruption()
    # The store runs in its own thread, as in a daemon: a disk that blocks its loop must not block signals.
    host = Host(settings, machine.process.new_loop)
    store = host.store
    await host.start()
    garbage_collection.keep_served()
    for report in store.reports:
        note(report)
    _say_ready(store, "store", {"directory": str(settings.directory)}, as_json)
    watching = asyncio.create_task(host.watch_room())
    ends: set[asyncio.Future[Any]] = {interrupted, host.failed}
    async with _reported([host]):
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    await _cancelled(watching)
    await host.stop()
    if as_json:
        say({"stopped": True, **store.statistics()})
    return 0


async def _cancelled(task: "asyncio.Task[None]") -> None:
    """Cancel a task that never ends by itself. Raises the error it failed with."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
