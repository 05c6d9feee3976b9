"""A topic of which an archive has the older messages: one range of numbers for each source, over archive and stores.

The archive has everything below a number of each source, and numbers are never used again. So a query reads below that
number from the archive and above it from the stores, and no message is missing or comes twice.
"""

from collections.abc import Iterator

import attrs

from stablecast.archive.archived_rows import first_since
from stablecast.archive.manifest import ArchivedSource, ArchiveError, Manifest
from stablecast.archive.message_columns import chosen_by
from stablecast.client.range_bounds import ReadBounds
from stablecast.spark.message_options import ReadTerms
from stablecast.spark.message_ranges import SourceSpan, TopicPiece


def archive_of(terms: ReadTerms) -> Manifest | None:
    """Return the manifest of the query's archive, None if it has none. Raises ArchiveError."""
    if terms.archive is None:
        return None
    found = Manifest.load(terms.archive)
    if found.topic != terms.topic:
        raise ArchiveError(f"{terms.archive} is the archive of '{found.topic}', not of '{terms.topic}'")
    return found


def with_archive(terms: ReadTerms, spans: list[SourceSpan]) -> list[SourceSpan]:
    """Return the range of each source between the bounds of `terms`, in archive and stores. Raises ArchiveError."""
    manifest = archive_of(terms)
    if manifest is None:
        return spans
    stored = {span.name: span for span in spans}
    found = []
    bounds = ReadBounds.of(*terms.bounds())
    for name, source in manifest.sources.items():
        span = stored.pop(name, None)
        if terms.sources is None or chosen_by(name) in terms.sources:
            found.append(_joined(terms, bounds, manifest, name, source, span))
    return [*found, *stored.values()]


def _joined(
    terms: ReadTerms, bounds: ReadBounds, manifest: Manifest, name: str, source: ArchivedSource, span: SourceSpan | None
) -> SourceSpan:
    assert terms.archive is not None
    files = [file for file in manifest.files if file.source == name]
    if span is None:
        rows = sum(file.rows for file in files)
        average = max(1, sum(file.payload_bytes for file in files) // rows) if rows else 1
        span = SourceSpan(name, source.life, source.stop, source.stop, average)
    stop = max(span.stop, source.stop) if bounds.stop_time is None else span.stop
    if bounds.stop is not None:
        stop = min(stop, bounds.stop)
    elif bounds.stop_time is not None:
        at = first_since(terms.archive, manifest, name, bounds.stop_time)
        stop = stop if at is None else at
    first = min(span.first, source.first)
    if bounds.number is not None:
        first = bounds.number
    elif bounds.time is not None:
        at = first_since(terms.archive, manifest, name, bounds.time)
        first = max(span.first, source.stop) if at is None else at
    elif bounds.count is not None:
        first = max(first, stop - bounds.count)
    elif bounds.latest:
        first = stop
    if span.remembered:
        first = span.first
    return attrs.evolve(span, first=first, stop=max(first, stop))


def divided(manifest: Manifest | None, pieces: list[TopicPiece]) -> Iterator[TopicPiece]:
    """Yield pieces that are in the archive or in the stores, each as a whole."""
    for piece in pieces:
        source = None if manifest is None else manifest.sources.get(piece.source)
        if source is None or piece.first >= source.stop or piece.stop <= source.first:
            yield piece
            continue
        parts = (
            (piece.first, min(piece.stop, source.first), False),
            (max(piece.first, source.first), min(piece.stop, source.stop), True),
            (max(piece.first, source.stop), piece.stop, False),
        )
        for first, stop, archived in parts:
            if first < stop:
                yield attrs.evolve(piece, first=first, stop=stop, archived=archived)
