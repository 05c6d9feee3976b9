"""Report which numbers of one source are missing or lost, for the picture of its repository."""

import attrs

from stablecast.core.store.repository import Repository
from stablecast.store.observatory import Watched

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


async def spans(watched: Watched, reg_id: int) -> Spans | None:
    """Return the current spans of one source; None if it is not registered."""

    async def look() -> Spans | None:
        repository = watched.store.repositories.get(reg_id)
        return None if repository is None else spans_of(repository)

    return await watched.ask(look)


def spans_of(repository: Repository) -> Spans:
    """Return the spans of a repository."""
    window, high = repository.window, repository.filling.high
    resumed = repository.resume_point
    holes: list[Span] = []
    if high is not None and resumed is not None and repository.terms.keeps:
        holes = repository.filling.missing(repository.held, max(resumed, repository.trail))
    return Spans(
        newest=window.lead if high is None else max(window.lead, high),
        acknowledged=repository.acked,
        in_memory=window.memory.messages,
        holes=_inclusive(holes),
        lost=_inclusive(repository.filling.lost.within(window.trail, window.lead + 1)),
    )


def _inclusive(ranges: list[Span]) -> tuple[Span, ...]:
    return tuple((first, stop - 1) for first, stop in ranges[:MAX_SPANS])
