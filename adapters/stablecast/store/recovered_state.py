"""The recovered records of a store's journal, in the form that the store endpoint takes."""

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Protocol

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.history import FORGOTTEN, owner
from stablecast.core.protocol.messages import Role
from stablecast.core.store.extents import RUN_BYTES
from stablecast.store.journal import Journal
from stablecast.store.journal.segments import RecordPlace
from stablecast.transports.wire.lbmc import DATA_HEADER

Extent = tuple[int, int, int, int]
"""A run of stored messages: the source's RegID, first number, count, payload bytes."""


class Inventory(Protocol):
    """The streams of a journal; see `stablecast.store.journal.Journal`."""

    def sizes(self, stream: int) -> Iterable[tuple[int, int, int]]:
        """Return (first, count, bytes) of every run."""

    def trail(self, stream: int) -> int | None:
        """Return the number below which the stream was trimmed, None if it never was."""


def recovered(journal: Inventory, clients: Mapping[int, Client]) -> tuple[list[Extent], dict[int, int]]:
    """Return the stored messages of every source, and the trail of each source where it is known.

    The trail is where the stream was trimmed, or where its oldest known life begins. It is not the oldest message here,
    because earlier ones may never have come. Payload bytes are exact for whole runs, and a share for cut runs. Small
    neighbouring runs are joined, because a source may have millions of them.
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
    """Yield runs of (first, count, bytes) with neighbours joined up to `RUN_BYTES`."""
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


def lost_extents(journal: Journal, sources: Container[int]) -> list[Extent]:
    """Return the messages of known sources that the open of the journal could not read, neighbours joined."""
    found: list[Extent] = []
    for reg_id, runs in groupby(sorted(journal.lost), key=itemgetter(0)):
        joined = _joined((first, count, size) for _, first, count, size in runs)
        if reg_id in sources:
            found += [(reg_id, first, count, size - count * DATA_HEADER.size) for first, count, size in joined]
    return found


def strangers(journal: Journal, clients: Mapping[int, Client]) -> list[tuple[int, int, int, RecordPlace]]:
    """Return stream, first, stop and record of messages whose numbers belong to another life of their source.

    Only damage can show them: it took the erasure that removed them.
    """
    found: list[tuple[int, int, int, RecordPlace]] = []
    for reg_id, client in clients.items():
        for first, count, tag in journal.extents(reg_id) if client.lives else ():
            starts = [first, *(start for _, start in client.lives if first < start < first + count)]
            for low, high in pairwise([*starts, first + count]):
                run = journal.find(reg_id, low)
                if run is not None and owner(client.lives, low) not in (tag, FORGOTTEN, None):
                    found.append((reg_id, low, high, run.record))
    return found


def everything(_topic: str) -> int:
    """Return 0, so that a restart restores all messages."""
    return 0


def shortened(
    came_at: Callable[[int, int], int | None],
    clients: Mapping[int, Client],
    found: tuple[list[Extent], dict[int, int]],
    restore_last_ns: Callable[[str], int],
) -> tuple[list[Extent], dict[int, int]]:
    """Return the recovered messages without those that came `restore_last_ns` or longer before their source's newest.

    `came_at` is that of the journal. The value 0 restores all messages of a topic. Runs without a time are from an
    earlier release and count as old.
    """
    extents, trails = found
    kept: list[Extent] = []
    trails = dict(trails)
    for reg_id, runs in groupby(extents, key=itemgetter(0)):
        held = list(runs)
        span = restore_last_ns(clients[reg_id].topic)
        young, number = _young(came_at, held, span) if span else (0, held[0][1])
        if number > held[0][1]:
            trails[reg_id] = number
        kept += held[young:]
    return kept, trails


def _young(came_at: Callable[[int, int], int | None], held: list[Extent], span: int) -> tuple[int, int]:
    """Return the index of the first run that came within `span` ns of the newest, and its first such number."""
    reg_id, first, count, _ = held[-1]
    newest = came_at(reg_id, first + count - 1)
    if newest is None:
        return 0, held[0][1]

    def came(number: int) -> int:
        return came_at(reg_id, number) or 0

    young = bisect_left(held, newest - span, key=lambda run: came(run[1] + run[2] - 1))
    _, first, count, _ = held[young]
    numbers = range(first, first + count)
    return young, numbers[bisect_left(numbers, newest - span, key=came)]
