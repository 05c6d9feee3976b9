"""What a store's journal left, as the store endpoint wants to hear it."""

from collections.abc import Mapping
from typing import Protocol

from stablecast.core.effects import Client
from stablecast.core.messages import Role
from stablecast.transports.wire.lbmc import DATA_HEADER

Extent = tuple[int, int, int, int]
"""Of stored messages: the source's RegID, first number, count, payload bytes."""


class Inventory(Protocol):
    """What a journal knows of its streams; `stablecast.journal.Journal` says what it means."""

    def sizes(self, stream: int) -> list[tuple[int, int, int]]:
        """(first, count, bytes) of every run."""

    def trail(self, stream: int) -> int | None:
        """Below which number the stream was trimmed."""


def recovered(journal: Inventory, clients: Mapping[int, Client]) -> tuple[list[Extent], dict[int, int]]:
    """The stored messages of every source, and below which number it has none that is to be had, where that is known.

    That is where it was trimmed, or where its oldest known life begins. That the oldest messages are not here does not
    mean that they were let go: they may never have come. Payload bytes are exact for whole runs; of a run that was cut
    they are a fair share.
    """
    extents: list[Extent] = []
    trails: dict[int, int] = {}
    for reg_id, client in clients.items():
        if client.role is not Role.SOURCE:
            continue
        held, trail = journal.sizes(reg_id), journal.trail(reg_id)
        extents += [(reg_id, first, count, size - count * DATA_HEADER.size) for first, count, size in held]
        if trail is not None:
            trails[reg_id] = trail
        elif client.lives:
            trails[reg_id] = min([client.lives[0][1], *(first for first, _, _ in held[:1])])
    return extents, trails
