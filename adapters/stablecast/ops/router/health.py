"""Findings about a router; a code never changes its meaning. What should stay 0 in a sound network is a finding."""

from collections.abc import Iterator
from functools import partial

from stablecast.ops.monitor.health import NEARLY_FULL, HealthFinding, Urgency
from stablecast.router.views import PortalView
from stablecast.text import plural

_warning = partial(HealthFinding, Urgency.WARNING)
_critical = partial(HealthFinding, Urgency.CRITICAL)

OF_DROPS = {
    "blocking": (
        "queue-full",
        "dropped, because the queue of the portal was full: its domain takes them more slowly than they come",
    ),
    "fragment size": (
        "fragment-size",
        "dropped, because a datagram of the portal is too small for them: set one datagram size in all domains",
    ),
    "error": ("send-errors", "dropped, because the transport of the portal refused them: the log has the reason"),
}
"""Code and sentence for each reason for which no message of a topic should be dropped."""

OF_UNICAST = {
    "blocking": ("unicast-queue-full", "dropped, because the connection to their receiver was full"),
    "no stream": (
        "no-stream",
        "dropped, because they lack the number that finds duplicates: upgrade the program that sends them",
    ),
}
"""The same for messages to single contexts."""


def of_portal(portal: PortalView) -> Iterator[HealthFinding]:
    if portal.trouble:
        yield _critical("portal", portal.trouble)
    if count := portal.unicast_dropped.get("hops", 0):
        text = f"{plural(count, 'message')} passed too many routers: some routers send messages in a circle"
        yield _critical("loop", text)
    if 0 < NEARLY_FULL * portal.queue.limit <= portal.queue.now:
        text = f"{portal.queue.now:,} of {portal.queue.limit:,} bytes wait to leave; what comes then is dropped"
        yield _warning("queue-nearly-full", text)
    for reason, (code, text) in OF_DROPS.items():
        if count := portal.dropped.get(reason, 0):
            yield _warning(code, f"{plural(count, 'message', 'was', 'were')} {text}")
    for reason, (code, text) in OF_UNICAST.items():
        if count := portal.unicast_dropped.get(reason, 0):
            yield _warning(code, f"{plural(count, 'message', 'was', 'were')} {text}")
    if portal.unidentified:
        text = f"{plural(portal.unidentified, 'source')} of the domain have no identity and are never forwarded"
        yield _warning("nameless-sources", f"{text}: upgrade their programs")
    if portal.unhandled:
        text = f"{plural(portal.unhandled, 'control message')} of a kind that no router passes on"
        yield _warning("unhandled-control", f"{text}: the log names it")
