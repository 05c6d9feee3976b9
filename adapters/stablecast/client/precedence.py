"""Which life of a source a receiver follows if it meets several at a time: the latest one.

A receiver may meet an earlier life after a later one. A proxy, or a process that was cut off, may live on for a while,
and its announcement may be late. A session with the earlier life would inherit from the later one and end its
deliveries (`succession`). So the earlier life is *passed over*: its stream stays joined, and it gets no session. When a
session ends, the receiver looks at its announcement again.

Pure, for the client and for simulators.
"""

from typing import Generic, Protocol, TypeVar

import attrs

from stablecast.core.protocol.history import FORGOTTEN
from stablecast.core.protocol.messages import SourceInfo

MAX_PASSED_OVER = 16
"""Lives that are kept; of one more the oldest goes, and is followed when it announces itself again."""


class Place(Protocol):
    """Where a life announced itself."""

    @property
    def transport(self) -> str:
        """Its stream."""


PlaceT = TypeVar("PlaceT", bound=Place)


def outranks(known: SourceInfo, told: SourceInfo) -> bool:
    """Return whether `known` announces a later life of the source that `told` announces.

    Later lives have higher terms (`core.protocol.history`). Stores that were emptied, or that forgot the source,
    count from one again. So terms are compared only if both histories name a life in common.
    """
    named = {life for life, _ in known.lives if life != FORGOTTEN}
    return known.term > told.term and any(life in named for life, _ in told.lives)


@attrs.define
class PassedOver(Generic[PlaceT]):
    """The newest announcement of each life that is passed over, and where it came from; oldest life first."""

    announcements: dict[int, tuple[SourceInfo, PlaceT]] = attrs.field(factory=dict)

    def __contains__(self, incarnation: int) -> bool:
        """Whether this life is passed over."""
        return incarnation in self.announcements

    def add(self, info: SourceInfo, place: PlaceT) -> None:
        """Pass a life over."""
        self.announcements[info.incarnation] = (info, place)
        if len(self.announcements) > MAX_PASSED_OVER:
            del self.announcements[next(iter(self.announcements))]

    def drop(self, incarnation: int) -> None:
        """This life is followed."""
        self.announcements.pop(incarnation, None)

    def take(self, transport: str) -> list[tuple[SourceInfo, PlaceT]]:
        """Return what came from a stream, which is passed over no more."""
        taken = [(info, place) for info, place in self.announcements.values() if place.transport == transport]
        for info, _ in taken:
            del self.announcements[info.incarnation]
        return taken

    def places(self) -> dict[str, PlaceT]:
        """Return where lives that are passed over announced themselves, by stream."""
        return {place.transport: place for _, place in self.announcements.values()}
