"""The parts that both data sources and both jobs share: options, columns, and tasks over Arrow batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.types import StructType

from stablecast.core.errors import StablecastError
from stablecast.runtime import garbage_collection

_SQL: Mapping[Any, str] = {
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.list_(pa.string()): "array<string>",
}


def sql_schema(columns: Mapping[str, Any]) -> str:
    """Return the schema of Arrow columns as Spark writes it."""
    return ", ".join(f"{name} {_SQL[kind]}" for name, kind in columns.items())


def named_paths(options: Mapping[str, str], kind: str, error: type[StablecastError]) -> list[Path]:
    """Return the paths of a query's options `paths` and `path`. Raise the `error` if there is none."""
    named = options.get("paths") or options.get("path")
    if not named:
        raise error(f'name the {kind}: .load("PATH"), or the option "paths" for several')
    return [Path(name) for name in named.split(",")]


def piece_bytes(options: Mapping[str, str], default: int, error: type[StablecastError]) -> int:
    """Return the option `pieceBytes`. Raise the `error` if it is no positive number."""
    text = options.get("pieceBytes", str(default))
    if not text.isdecimal() or not int(text):
        raise error(f"the option pieceBytes is a number of bytes, not {text!r}")
    return int(text)


def column_names(schema: StructType, columns: Mapping[str, Any], kind: str, error: type[StablecastError]) -> list[str]:
    """Return the columns that a query asks for. Raise the `error` for one that does not exist."""
    unknown = [name for name in schema.names if name not in columns]
    if unknown:
        raise error(f"{kind} have no column {unknown[0]!r}; they have {', '.join(columns)}")
    return list(schema.names)


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
