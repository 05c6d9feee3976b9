"""The statistics of a service beside it: published on their topic, and served by a monitor, for `stablecast srs`.

The context that publishes is a client of the service itself, unless its options name another way.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from stablecast.client import Context
from stablecast.core.errors import StablecastError
from stablecast.resolver.srs import SrsDaemon
from stablecast.resolver.srs.statistics import encoded
from stablecast.runtime import address, machine
from stablecast.runtime.interfaces import resolved_place

LOOK_SECONDS = 1.0
"""Longest pause: a request may shorten an interval meanwhile."""


def context_of(daemon: SrsDaemon) -> Context:
    """Return the context that publishes. Raises like `Context`."""
    options, own = daemon.config.monitor.configuration.of_context()
    ways = any(name.startswith(("resolver_service", "resolver_unicast", "resolver_multicast")) for name in options)
    configuration = daemon.config.monitor.configuration
    if ways:
        return Context(configuration=configuration)
    host, _ = address.parse(resolved_place(daemon.address))
    interface = "" if own.interface else host
    return Context(configuration=configuration, resolver_service=[daemon.address], interface=interface)


@asynccontextmanager
async def serving(daemon: SrsDaemon, warn: Callable[[str], None]) -> AsyncIterator[dict[str, str]]:
    """Publish statistics and serve the monitor, as the service is configured; yield the address of the monitor.

    Raises PortError, AddressError, ConfigError.
    """
    async with AsyncExitStack() as stack:
        fields = {}
        if daemon.config.debug.enabled:
            from stablecast.cli.srs_monitor import SrsSite  # noqa: PLC0415 - HTTP loads slowly
            from stablecast.ops.monitor.server import listening  # noqa: PLC0415

            site = SrsSite(daemon)
            monitor = listening(site.settings, site.application(), "the monitor's port")
            fields["monitor"] = await stack.enter_async_context(monitor)
        if daemon.config.monitor.topic:
            publishing = asyncio.create_task(_publish(daemon, warn))
            stack.callback(publishing.cancel)
        yield fields


async def _publish(daemon: SrsDaemon, warn: Callable[[str], None]) -> None:
    """Publish until cancelled. A failure is logged and does not stop the service."""
    try:
        await publish(daemon)
    except (StablecastError, OSError) as error:
        warn(f"statistics are no longer published: {error}")


async def publish(daemon: SrsDaemon) -> None:
    """Publish until cancelled. Raises as `Context` and `Context.source` do when they start."""
    details = daemon.details
    due = dict.fromkeys(details.intervals, 0.0)
    async with context_of(daemon) as context:
        source = await context.source(daemon.config.monitor.topic)
        while True:
            now = machine.clock.monotonic()
            for category, interval in details.intervals.items():
                if interval and due[category] <= now:
                    for body in details.news(category):
                        await source.send(encoded(body))
                    due[category] = now + interval / 1_000
            pauses = [due[category] - now for category, interval in details.intervals.items() if interval]
            await asyncio.sleep(max(0.0, min([LOOK_SECONDS, *pauses])))
