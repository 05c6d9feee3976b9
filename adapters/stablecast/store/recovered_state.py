"""What a store's journal left, as the store endpoint wants to hear it."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Protocol

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role
from stablecast.core.store.extents import RUN_BYTES
from stablecast.transports.wire.lbmc import DATA_HEADER

Extent = tuple[int, int, int, int]
"""Of stored messages: the source's RegID, first number, count, payload bytes."""


class Inventory(Protocol):
    """What a journal knows of its streams; `stablecast.store.journal.Journal` says what it means."""

    def sizes(self, stream: int) -> Iterable[tuple[int, int, int]]:
        """(first, count, bytes) of every run."""

    def trail(self, stream: int) -> int | None:
        """Below which number the stream was trimmed."""


def recovered(journal: Inventory, clients: Mapping[int, Client]) -> tuple[list[Extent], dict[int, int]]:
    """The stored messages of every source, and below which number it has none that is to be had, where that is known.

    That is where it was trimmed, or where its oldest known life begins. That the oldest messages are not here does not
    mean that they were let go: they may never have come. Payload bytes are exact for whole runs; of a run that was cut
    they are a fair share. Small runs are joined with their neighbours: a source may have millions of them.
    """
    extents: list[Extent] = []
    trails: dict[int, int] = {}
    for reg_id, client in clients.items():
        if client.role is not Role.SOURCE:
            continue
        held, trail = list(_joined(journal.sizes(reg_id))), journal.trail(reg_id)
        extents += [(reg_id, first, count, size - count * DATA_HEADER.size) for first, count, size in held]
        if trail is not None:
            trails[reg_id] = trail
        elif client.lives:
            trails[reg_id] = min([client.lives[0][1], *(first for first, _, _ in held[:1])])
    return extents, trails


def _joined(runs: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Runs of (first, count, bytes), neighbours joined up to `RUN_BYTES`."""
    known: tuple[int, int, int] | None = None
    for first, count, size in runs:
        if known is not None and known[0] + known[1] == first and known[2] < RUN_BYTES:
            known = known[0], known[1] + count, known[2] + size
            continue
        if known is not None:
            yield known
        known = first, count, size
    if known is not None:
        yield known


class Dated(Protocol):
    """What a journal knows of when things came."""

    def came_at(self, stream: int, number: int) -> int | None:
        """When the run with this number came, in ns of the epoch; None: not known."""


def everything(_topic: str) -> int:
    """All that is left is restored."""
    return 0


def shortened(
    journal: Dated,
    clients: Mapping[int, Client],
    found: tuple[list[Extent], dict[int, int]],
    restore_last_ns: Callable[[str], int],
) -> tuple[list[Extent], dict[int, int]]:
    """What was recovered without what came longer than `restore_last_ns` of its topic before its source's newest.

    0 leaves a topic as it is. Runs without a time were written by an earlier release and count as old.
    """
    extents, trails = found
    kept: list[Extent] = []
    trails = dict(trails)
    for reg_id, runs in groupby(extents, key=itemgetter(0)):
        held = list(runs)
        span = restore_last_ns(clients[reg_id].topic)
        young, number = _young(journal, held, span) if span else (0, held[0][1])
        if number > held[0][1]:
            trails[reg_id] = number
        kept += held[young:]
    return kept, trails


def _young(journal: Dated, held: list[Extent], span: int) -> tuple[int, int]:
    """The first run with messages that came at most so long before the newest one, and the first number of these."""
    reg_id, first, count, _ = held[-1]
    newest = journal.came_at(reg_id, first + count - 1)
    if newest is None:
        return 0, held[0][1]

    def came(number: int) -> int:
        return journal.came_at(reg_id, number) or 0

    young = bisect_left(held, newest - span, key=lambda run: came(run[1] + run[2] - 1))
    _, first, count, _ = held[young]
    numbers = range(first, first + count)
    return young, numbers[bisect_left(numbers, newest - span, key=came)]
