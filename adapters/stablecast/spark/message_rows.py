"""The rows of a piece, read by a task straight from the stores, as Arrow batches."""

import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final, cast

import pyarrow as pa  # type: ignore[import-untyped]

from stablecast.archive.archived_rows import archived_rows
from stablecast.archive.manifest import Manifest
from stablecast.archive.message_columns import arrow_batch, joined, schema_of
from stablecast.client import Context, RangeReader
from stablecast.runtime import machine
from stablecast.spark.message_options import ReadTerms, interface_to
from stablecast.spark.message_ranges import TopicError, TopicPiece

log = logging.getLogger("stablecast")

BATCH_ROWS = 8192
"""Rows of an Arrow batch at most, unless one run of messages has more."""

SKIPPABLE: Final = "set the option missing to skip to go on without them"


def rows(terms: ReadTerms, piece: TopicPiece, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a piece with these columns. Raises TopicError if messages are missing, unless they may be."""
    if piece.archived:
        yield from _archived(terms, piece, names)
        return
    loop = machine.process.new_loop()
    batches = _batches(terms, piece, names)
    try:
        while (found := loop.run_until_complete(anext(batches, None))) is not None:
            yield found
    finally:
        try:
            loop.run_until_complete(cast("Any", batches).aclose())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


def _archived(terms: ReadTerms, piece: TopicPiece, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    assert terms.archive is not None
    manifest = Manifest.load(terms.archive)
    for hole in manifest.holes(piece.source, piece.first, piece.stop):
        text = f"messages {hole.first} to {hole.last} of '{terms.topic}' are missing in {terms.archive}: {hole.reason}"
        if terms.fail_on_missing:
            raise TopicError(f"{text}; {SKIPPABLE}")
        log.warning("%s", text)
    yield from archived_rows(terms.archive, manifest, piece.source, piece.first, piece.stop, names)


async def _batches(terms: ReadTerms, piece: TopicPiece, names: Sequence[str]) -> AsyncIterator[pa.RecordBatch]:
    topic = piece.topic(terms)
    async with Context(interface=interface_to(terms.stores, terms.interface)) as context:
        context.prompt = False
        reader = context.reader(
            topic,
            stores=terms.stores,
            sources=[piece.chosen],
            since=piece.first,
            until=piece.stop,
            patience=terms.patience,
            quorum=terms.quorum,
            stable=False,
            new=True,
            times="received" in names,
        )
        schema = schema_of(names)
        async with reader:
            if not reader.sources:
                raise TopicError(
                    f"messages {piece.first} to {piece.stop - 1} of source {piece.name} of '{topic}' are "
                    "missing: no store that answers knows the source"
                )
            pending: list[pa.RecordBatch] = []
            async for batch in reader.batches():
                _check(reader, terms)
                pending.append(arrow_batch(batch, piece.name, schema))
                if sum(one.num_rows for one in pending) >= BATCH_ROWS:
                    yield joined(pending)
                    pending = []
            _check(reader, terms)
            if pending:
                yield joined(pending)


def _check(reader: RangeReader, terms: ReadTerms) -> None:
    """Report missing messages. Raises TopicError if the query must fail."""
    if not reader.holes:
        return
    if terms.fail_on_missing:
        raise TopicError(f"{reader.holes[0]}; {SKIPPABLE}")
    for hole in reader.holes:
        log.warning("%s", hole)
    reader.holes.clear()
