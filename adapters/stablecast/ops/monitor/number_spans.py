"""Where the numbers of one source are: what a picture of its repository needs beside the counts of `SourceView`."""

import attrs

from stablecast.core.store.status import RepositoryStatus
from stablecast.store.observatory import WatchedStore

MAX_SPANS = 64
"""Holes and losses that are named, the oldest first; all of them are counted."""

Span = tuple[int, int]
"""First and last number, both included."""


@attrs.frozen
class Spans:
    """Of one source: the newest number known to exist, the first not acknowledged to it, and what is missing where.

    `in_memory` counts messages; what is kept beside them is on the disk only.
    """

    newest: int
    acknowledged: int
    in_memory: int
    holes: tuple[Span, ...]
    lost: tuple[Span, ...]


async def spans(watched: WatchedStore, reg_id: int) -> Spans | None:
    """The spans of one source, now; None: it is not there."""

    async def look() -> Spans | None:
        repository = watched.store.machine.status.repositories.get(reg_id)
        return None if repository is None else spans_of(repository)

    return await watched.ask(look)


def spans_of(repository: RepositoryStatus) -> Spans:
    """The spans of a repository."""
    high, newest = repository.high, repository.newest
    _, in_memory, _ = repository.memory
    return Spans(
        newest=newest if high is None else max(newest, high),
        acknowledged=repository.acked,
        in_memory=in_memory,
        holes=_inclusive([] if repository.resume_point is None else repository.holes),
        lost=_inclusive(repository.lost.within(repository.trail, newest + 1)),
    )


def _inclusive(ranges: list[Span]) -> tuple[Span, ...]:
    return tuple((first, stop - 1) for first, stop in ranges[:MAX_SPANS])
