"""Packets that were captured twice: at two interfaces, or at two places on their way.

A copy has the same content, and the same identification of its IP packet. Many systems leave that at 0, where only
content and time tell a copy from a repetition.
"""

from collections.abc import Hashable
from typing import Final

import attrs

from stablecast.core.machine.units import MILLISECOND

COPY_NS: Final = 20 * MILLISECOND
"""The same packet within this time was captured twice."""

SOON_NS: Final = 8 * MILLISECOND
"""The same resolution datagram without an identification was captured twice within this time.

It is shorter than every interval at which a context repeats itself by default, which is 10 ms at least.
"""

MAX_COPIES: Final = 1 << 10
"""Packets that are remembered to recognize copies."""


@attrs.define
class RecentPackets:
    _times_ns: dict[Hashable, int] = attrs.field(factory=dict)

    def repeats(self, packet: Hashable, time_ns: int, within_ns: int = COPY_NS) -> bool:
        """Remember a packet; return whether it came before within this time."""
        before = self._times_ns.pop(packet, None)
        self._times_ns[packet] = time_ns
        if len(self._times_ns) > MAX_COPIES:
            del self._times_ns[next(iter(self._times_ns))]
        return before is not None and time_ns - before < within_ns
