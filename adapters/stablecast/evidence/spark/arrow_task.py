"""Tasks of jobs over Arrow batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from stablecast.runtime import garbage_collection


def arrow_task(
    rows_of: Callable[[int], Iterable[list[dict[str, Any]]]], columns: Mapping[str, Any]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow` that gets numbers of tasks; each list of `rows_of` becomes a batch."""
    schema = pa.schema(list(columns.items()))

    def work(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        garbage_collection.keep_worker()
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for rows in rows_of(number):
                    yield pa.RecordBatch.from_pylist(rows, schema=schema)

    return work
