"""The limits of a store on registrations, and the policy, which are checked before its machine gets them.

A registered client may always register again. A limit refuses new clients only.
"""

from collections import Counter
from collections.abc import Iterator

import attrs

from stablecast.config.plan import StoreLimits
from stablecast.core.protocol.messages import Refusal, Refused, Register, Role
from stablecast.core.store import StoreEndpoint
from stablecast.runtime import machine
from stablecast.runtime.source_strings import is_source_string
from stablecast.store.process import descriptors_for_streams
from stablecast.text import plural
from stablecast.transports.codec.domains import split_domain


@attrs.frozen
class OverLimit:
    """A refusal because of a limit or the policy: the reason for the log, and the answer to the client."""

    text: str
    answer: Refused


COUNT_SECONDS = 1.0
"""Time for which the clients of each host are not counted again."""


def share(places: int) -> int:
    """Return how many of all places one host may have. The others are for other hosts, because state may never end."""
    return places - places // 4


@attrs.define
class HostCounts:
    """The clients at each host. They are counted once most places are taken, because that looks at all clients."""

    _at: float = -COUNT_SECONDS
    _found: Counter[tuple[Role | None, str]] = attrs.field(factory=Counter)

    def number(self, role: Role | None, host: str, store: StoreEndpoint) -> int:
        """Return how many clients of a role, or of all (None), a host has."""
        now = machine.clock.monotonic()
        if now - self._at >= COUNT_SECONDS:
            self._at, self._found = now, Counter(_hosts(store))
        return self._found[role, host]

    def add(self, role: Role, host: str) -> None:
        """Count a newcomer, until the clients are counted again."""
        if machine.clock.monotonic() - self._at < COUNT_SECONDS:
            self._found.update([(None, host), (role, host)])


def _hosts(store: StoreEndpoint) -> Iterator[tuple[Role | None, str]]:
    for one in store.status.clients.values():
        host = _host(one.client.reply_to)
        yield None, host
        yield one.client.role, host


def _host(place: str) -> str:
    return place.rpartition(":")[0]


def refusal(
    request: Register, store: StoreEndpoint, limits: StoreLimits, disk_bytes: int, draining: bool, hosts: HostCounts
) -> OverLimit | None:
    """Return the refusal of a registration beyond a limit, None if it is within the limits."""
    why = _why(request, store, limits, disk_bytes, draining) or _crowd(request, store, limits, hosts)
    return OverLimit(why, Refused(*request.names, Refusal.INCOMPATIBLE)) if why else None


def barred(request: Register) -> OverLimit:
    """Return the refusal of a registration that the policy of the certificates does not allow."""
    return OverLimit(Refusal.NOT_PERMITTED.text, Refused(*request.names, Refusal.NOT_PERMITTED))


def _crowd(request: Register, store: StoreEndpoint, limits: StoreLimits, hosts: HostCounts) -> str:
    """Return why the host of a newcomer gets no more places; empty while it does."""
    if store.knows(request):
        return ""
    sources = len(store.status.repositories)
    # Each stream takes a descriptor, and the process may have fewer than the limit.
    places = min(limits.sources, sources + descriptors_for_streams()) if _has_stream(request) else limits.sources
    taken = {
        "clients": (None, len(store.status.clients), limits.clients),
        "sources": (Role.SOURCE, sources, places),
    }
    host = _host(request.reply_to)
    for name, (role, count, places) in taken.items():
        wanted = role in (None, request.role)
        if wanted and count >= share(places) and hosts.number(role, host, store) >= share(places):
            return f"its host has {share(places)} of {places} {name} already, and the others are for other hosts"
    hosts.add(request.role, host)  # One that was refused above has no place.
    return ""


def _why(request: Register, store: StoreEndpoint, limits: StoreLimits, disk_bytes: int, draining: bool) -> str:
    if store.knows(request):
        return ""
    if draining:
        return "the store is being drained"
    if len(store.status.clients) >= limits.clients:
        return _full(plural(limits.clients, "client"), limits.clients, "clients")
    if request.role is Role.RECEIVER:
        return ""
    if len(store.status.repositories) >= limits.sources:
        return _full(plural(limits.sources, "source"), limits.sources, "sources")
    if 0 < limits.disk_bytes <= disk_bytes:
        return f"the journal has {disk_bytes} bytes, and {limits.disk_bytes} are allowed"
    if _has_stream(request) and not descriptors_for_streams():
        return "no descriptor is left for its stream: raise the hard limit of open files (ulimit -Hn, LimitNOFILE)"
    return ""


def _has_stream(request: Register) -> bool:
    return request.role is Role.SOURCE and not is_source_string(split_domain(request.transport)[1])


def _full(shown: str, most: int, limit: str) -> str:
    """Return the reason of a full limit.

    The operator must make room, because the state of an absent client outlives it and stable messages depend on it.
    """
    there = f"there {'is' if most == 1 else 'are'} {shown} already, those that are away included"
    return f"{there}: evict those that will not come back, or raise the limit {limit}"
