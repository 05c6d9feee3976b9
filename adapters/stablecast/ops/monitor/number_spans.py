"""Where the numbers of one source are: what a picture of its repository needs beside the counts of `SourceView`."""

import attrs

from stablecast.core.store.repository import Repository
from stablecast.store.observatory import Watched

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


async def spans(watched: Watched, reg_id: int) -> Spans | None:
    """The spans of one source, now; None: it is not there."""

    async def look() -> Spans | None:
        repository = watched.store.repositories.get(reg_id)
        return None if repository is None else spans_of(repository)

    return await watched.ask(look)


def spans_of(repository: Repository) -> Spans:
    """The spans of a repository."""
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
