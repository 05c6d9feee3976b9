"""The limits of a store on registrations, and the policy, which are checked before its machine gets them.

A registered client may always register again. A limit refuses new clients only.
"""

import attrs

from stablecast.config.plan import StoreLimits
from stablecast.core.protocol.messages import Refusal, Refused, Register, Role
from stablecast.core.store import StoreEndpoint
from stablecast.runtime.source_strings import is_source_string
from stablecast.store.process import descriptors_for_streams
from stablecast.text import plural
from stablecast.transports.codec.domains import split_domain


@attrs.frozen
class OverLimit:
    """A refusal because of a limit or the policy: the reason for the log, and the answer to the client."""

    text: str
    answer: Refused


def refusal(
    request: Register, machine: StoreEndpoint, limits: StoreLimits, disk_bytes: int, draining: bool
) -> OverLimit | None:
    """Return the refusal of a registration beyond a limit, None if it is within the limits."""
    why = _why(request, machine, limits, disk_bytes, draining)
    return OverLimit(why, Refused(*request.names, Refusal.INCOMPATIBLE)) if why else None


def barred(request: Register) -> OverLimit:
    """Return the refusal of a registration that the policy of the certificates does not allow."""
    return OverLimit(Refusal.NOT_PERMITTED.text, Refused(*request.names, Refusal.NOT_PERMITTED))


def _why(request: Register, machine: StoreEndpoint, limits: StoreLimits, disk_bytes: int, draining: bool) -> str:
    if machine.knows(request):
        return ""
    if draining:
        return "the store is being drained"
    if len(machine.status.clients) >= limits.clients:
        return _full(plural(limits.clients, "client"), limits.clients, "clients")
    if request.role is Role.RECEIVER:
        return ""
    if len(machine.status.repositories) >= limits.sources:
        return _full(plural(limits.sources, "source"), limits.sources, "sources")
    if 0 < limits.disk_bytes <= disk_bytes:
        return f"the journal has {disk_bytes} bytes, and {limits.disk_bytes} are allowed"
    if not is_source_string(split_domain(request.transport)[1]) and not descriptors_for_streams():
        return "no descriptor is left for its stream: raise the hard limit of open files (ulimit -Hn, LimitNOFILE)"
    return ""


def _full(shown: str, most: int, limit: str) -> str:
    """Return the reason of a full limit.

    The operator must make room, because the state of an absent client outlives it and stable messages depend on it.
    """
    there = f"there {'is' if most == 1 else 'are'} {shown} already, those that are away included"
    return f"{there}: evict those that will not come back, or raise the limit {limit}"
