"""Publish the statistics of a service on their topic, for `stablecast srs`.

The context that publishes is a client of the service itself, unless its options name another way.
"""

import asyncio

from stablecast.client import Context
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
