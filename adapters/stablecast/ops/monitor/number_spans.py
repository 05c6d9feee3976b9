"""Report which numbers of one source are missing or lost, for the picture of its repository."""

import attrs

from stablecast.core.store.status import RepositoryStatus
from stablecast.store.observatory import WatchedStore

MAX_SPANS = 64
"""Most holes and most losses that are listed, the oldest first; counts include all."""

Span = tuple[int, int]
"""First and last number, both included."""


@attrs.frozen
class Spans:
    """Hold the spans of one source.

    Attributes:
        newest: Newest number known to exist.
        acknowledged: First number that the store has not acknowledged to the source.
        in_memory: Messages in memory; the others are on disk only.
        holes: Missing numbers that the store still requests.
        lost: Numbers that the store gave up.
    """

    newest: int
    acknowledged: int
    in_memory: int
    holes: tuple[Span, ...]
    lost: tuple[Span, ...]


async def spans(watched: WatchedStore, reg_id: int) -> Spans | None:
    """Return the current spans of one source; None if it is not registered."""

    async def look() -> Spans | None:
        repository = watched.store.machine.status.repositories.get(reg_id)
        return None if repository is None else spans_of(repository)

    return await watched.ask(look)


def spans_of(repository: RepositoryStatus) -> Spans:
    """Return the spans of a repository."""
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
