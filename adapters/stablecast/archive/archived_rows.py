"""The messages of an archive: the rows of a range, and the first message since a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from stablecast.archive.manifest import ArchivedFile, ArchiveError, Manifest

BATCH_ROWS = 8192
"""Rows of an Arrow batch."""


def archived_rows(
    folder: Path, manifest: Manifest, source: str, first: int, stop: int, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the messages [first, stop) of a source in the order of their numbers. Raises ArchiveError."""
    columns = list(dict.fromkeys([*names, "number"]))
    for files in _clusters(manifest.within(source, first, stop)):
        if len(files) == 1:
            yield from _of_file(folder / files[0].path, first, stop, columns, names)
            continue
        # Messages that were recovered late are in the file of another day than their neighbours.
        parts = [list(_of_file(folder / file.path, first, stop, columns, columns)) for file in files]
        table = pa.Table.from_batches([batch for part in parts for batch in part])
        yield from table.sort_by("number").select(list(names)).to_batches(max_chunksize=BATCH_ROWS)


def first_since(folder: Path, manifest: Manifest, source: str, time: int) -> int | None:
    """Return the lowest number of a source that came at a time (ns) or later; None if none did. Raises ArchiveError."""
    found = []
    for file in manifest.files:
        if file.source != source or file.newest is None or file.oldest is None or file.newest < time:
            continue
        if file.oldest >= time:
            found.append(file.first)
            continue
        for batch in _of_file(folder / file.path, file.first, file.stop, ["number", "received"], None):
            late = pc.greater_equal(pc.cast(batch.column("received"), pa.int64()), time // 1000)
            numbers = batch.column("number").filter(late)
            if len(numbers):
                found.append(numbers[0].as_py())
                break
    return min(found, default=None)


def _of_file(
    path: Path, first: int, stop: int, columns: list[str], names: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=columns):
                numbers = batch.column(batch.schema.names.index("number"))
                wanted = batch.filter(pc.and_(pc.greater_equal(numbers, first), pc.less(numbers, stop)))
                if wanted.num_rows:
                    yield wanted.select(list(names or columns))
    except (OSError, pa.ArrowException) as error:
        raise ArchiveError(f"the archived file {path} cannot be read: {error}") from error


def _clusters(files: list[ArchivedFile]) -> Iterator[list[ArchivedFile]]:
    """Yield runs of files, by first number, whose numbers overlap."""
    cluster: list[ArchivedFile] = []
    stop = 0
    for file in files:
        if cluster and file.first >= stop:
            yield cluster
            cluster, stop = [], 0
        cluster.append(file)
        stop = max(stop, file.stop)
    if cluster:
        yield cluster
