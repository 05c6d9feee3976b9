"""Precedence among the lives of a source: a receiver that meets several at a time follows the latest one.

A receiver may meet an earlier life after a later one. A proxy, or a process that was cut off, may live on for a while,
and its announcement may be late. A session with the earlier life would inherit from the later one and end its
deliveries (`succession`). So the earlier life is *passed over*: its stream stays joined, and it gets no session. When a
session ends, the receiver looks at its announcement again.

The histories of two lives may name no life in common. Then the receiver follows the life that it met last. If the
stores refuse that life's receivers, and its stream ends, the receiver follows the life before again.
"""

import attrs

from stablecast.core.protocol.history import FORGOTTEN
from stablecast.core.protocol.messages import SourceInfo
from stablecast.core.subscription.inputs import Place

MAX_PASSED_OVER = 16
"""Lives that are kept. Beyond that, the oldest is forgotten, and followed when it announces itself again."""


def outranks(known: SourceInfo, other: SourceInfo) -> bool:
    """Return True if `known` announces a later life of the source that `other` announces.

    Later lives have higher terms (`core.protocol.history`). Stores that were emptied, or that forgot the source,
    count from one again. So terms are compared only if both histories name a life in common.
    """
    named = {life for life, _ in known.lives if life != FORGOTTEN}
    return known.term > other.term and any(life in named for life, _ in other.lives)


@attrs.define
class PassedOver:
    """The newest announcement of each life that is passed over, with its stream; oldest life first."""

    announcements: dict[int, tuple[SourceInfo, Place]] = attrs.field(factory=dict)

    def __contains__(self, incarnation: int) -> bool:
        return incarnation in self.announcements

    def add(self, info: SourceInfo, place: Place) -> None:
        """Pass a life over, or renew its announcement."""
        self.announcements[info.incarnation] = (info, place)
        if len(self.announcements) > MAX_PASSED_OVER:
            del self.announcements[next(iter(self.announcements))]

    def drop(self, incarnation: int) -> None:
        """Forget a life, because it is followed now."""
        self.announcements.pop(incarnation, None)

    def remove(self, transport: str) -> list[tuple[SourceInfo, Place]]:
        """Remove the announcements of a stream and return them."""
        removed = [(info, place) for info, place in self.announcements.values() if place.transport == transport]
        for info, _ in removed:
            del self.announcements[info.incarnation]
        return removed

    def places(self) -> dict[str, Place]:
        """Return the places of the lives that are passed over, by stream."""
        return {place.transport: place for _, place in self.announcements.values()}
