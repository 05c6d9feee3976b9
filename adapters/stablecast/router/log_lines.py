"""Lines of a router's log about its portals: queues that begin and end, and messages that are dropped (R-165).

They are told from the figures that the monitor shows, once a second. Operators have rules for the published numbers of
such lines, so a line ends with the number of its documented counterpart.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.router.views import PortalView, RouterView, Write
from stablecast.runtime.logs import Severity
from stablecast.text import plural

QUIET_NS: Final = 60 * SECOND
"""Time between two lines of one portal about one reason: drops may go on for hours."""

PUBLISHED: Final[Mapping[str, str]] = {
    "queueing": "6945-1",
    "dropping": "6945-2",
    "flushed": "6945-3",
    "message-too-large": "6361-42",
}
"""The published number of a code."""

DROPS: Final[Mapping[str, tuple[str, str]]] = {
    "blocking": ("dropping", "its queue is full"),
    "fragment size": ("message-too-large", "a datagram of the portal is too small for them"),
    "error": ("send-failed", "its transport refused them"),
    "link down": ("link-down", "the link ended while they waited for it"),
}
"""Code and cause for each reason for which messages of topics are dropped; duplicates are no trouble."""

UNICAST_DROPS: Final[Mapping[str, tuple[str, str]]] = {
    "no route": ("no-route", "no portal leads to their domain"),
    "hops": ("hop-limit", "they passed too many routers"),
    "blocking": ("unicast-dropping", "the connection to their receiver is full"),
}
"""The same for messages to single contexts."""


@attrs.define
class RouterLog:
    """What was said of each portal, so that a line tells of a change."""

    write: Write
    _queues: dict[str, bool] = attrs.field(factory=dict, init=False)
    _counts: dict[tuple[str, str], int] = attrs.field(factory=dict, init=False)
    _silent_until: dict[tuple[str, str], int] = attrs.field(factory=dict, init=False)

    def begin(self, view: RouterView) -> None:
        """Write where each portal serves."""
        for portal in view.portals:
            does = "leads to another router" if portal.link else f"serves domain {portal.domain}"
            self._line(Severity.INFO, portal.name, "ready", f"{does} at {portal.address}")

    def look(self, view: RouterView, now: int) -> None:
        """Write what changed since the last look; `now` in ns."""
        for portal in view.portals:
            self._queue(portal)
            for counted, reasons in ((portal.dropped, DROPS), (portal.unicast_dropped, UNICAST_DROPS)):
                for reason, (code, cause) in reasons.items():
                    self._drops(portal.name, code, cause, counted.get(reason, 0), now)

    def _queue(self, portal: PortalView) -> None:
        waits = portal.queue.now > 0
        if waits is self._queues.get(portal.name, False):
            return
        self._queues[portal.name] = waits
        if waits:
            where = "the link" if portal.link else f"domain {portal.domain}"
            text = f"{portal.queue.now:,} of {portal.queue.limit:,} bytes wait to leave for {where}"
            self._line(Severity.INFO, portal.name, "queueing", text)
        else:
            self._line(Severity.INFO, portal.name, "flushed", "nothing waits to leave any more")

    def _drops(self, name: str, code: str, cause: str, count: int, now: int) -> None:
        key = (name, code)
        new = count - self._counts.get(key, 0)
        if new <= 0 or now < self._silent_until.get(key, now):
            return
        self._counts[key] = count
        self._silent_until[key] = now + QUIET_NS
        text = f"{plural(new, 'message', 'was', 'were')} dropped, because {cause}; {count:,} since the start"
        self._line(Severity.WARNING, name, code, text)

    def _line(self, severity: Severity, name: str, code: str, text: str) -> None:
        number = f" [{PUBLISHED[code]}]" if code in PUBLISHED else ""
        self.write(severity, name, code, f"{text}{number}")
