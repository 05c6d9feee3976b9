"""What a store's limits say to a registration, before its machine is asked.

Whoever is registered may register again: a limit keeps newcomers out and never strands those who are in.
"""

import attrs

from stablecast.config.plan import Limits
from stablecast.core.protocol.messages import Refusal, Refused, Register, Role
from stablecast.core.store import StoreEndpoint
from stablecast.runtime.source_strings import is_source_string
from stablecast.store.process import descriptors_for_streams
from stablecast.text import plural


@attrs.frozen
class OverLimit:
    """Why, for the log, and what the client is told."""

    text: str
    answer: Refused


def refusal(
    request: Register, machine: StoreEndpoint, limits: Limits, disk_bytes: int, draining: bool
) -> OverLimit | None:
    """Why this registration is one too many; None: it is not."""
    why = _why(request, machine, limits, disk_bytes, draining)
    if not why:
        return None
    answer = Refused(
        request.role,
        request.store_index,
        request.generation,
        request.reg_id,
        request.incarnation,
        Refusal.INCOMPATIBLE,
    )
    return OverLimit(why, answer)


def _why(request: Register, machine: StoreEndpoint, limits: Limits, disk_bytes: int, draining: bool) -> str:
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
    if not is_source_string(request.transport) and not descriptors_for_streams():
        return "no descriptor is left for its stream: raise the hard limit of open files (ulimit -Hn, LimitNOFILE)"
    return ""


def _full(shown: str, most: int, limit: str) -> str:
    """State outlives its client, so it is the operator who makes room: nothing stable goes for a newcomer."""
    there = f"there {'is' if most == 1 else 'are'} {shown} already, those that are away included"
    return f"{there}: evict who will not come back, or raise the limit {limit}"
