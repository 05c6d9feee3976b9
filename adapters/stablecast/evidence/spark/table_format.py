"""The parts that both data sources and both jobs share: options, columns, and tasks over Arrow batches."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.types import StructType

from stablecast.core.errors import StablecastError
from stablecast.runtime import garbage_collection
from stablecast.text.json_text import from_json

_SQL: Mapping[Any, str] = {
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.list_(pa.string()): "array<string>",
}

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""The scheme of a URI; one letter is a drive."""


def sql_schema(columns: Mapping[str, Any]) -> str:
    """Return the schema of Arrow columns as Spark writes it."""
    return ", ".join(f"{name} {_SQL[kind]}" for name, kind in columns.items())


def named_paths(options: Mapping[str, str], kind: str, error: type[StablecastError]) -> list[Path]:
    """Return the paths of a query's options `paths` and `path`: separated by commas, or a JSON list as Spark gives it.

    They are absolute, because workers have other working directories.
    Raise the `error` if there is none, or if one is not on a local file system.
    """
    named = options.get("paths") or options.get("path")
    if not named:
        raise error(f'name the {kind}: .load("PATH"), or the option "paths" for several')
    return [_local(name.strip(), kind, error) for name in _listed(named)]


def _listed(named: str) -> list[str]:
    if named.startswith("["):
        with suppress(ValueError):
            found = from_json(named)
            if all(isinstance(name, str) for name in found):
                return list(found)
    return named.split(",")


def _local(name: str, kind: str, error: type[StablecastError]) -> Path:
    """Return the path of a name, which may be a `file:` URI. Raise the `error` for another kind of URI."""
    scheme = _SCHEME.match(name)
    if scheme is None:
        return Path(name).absolute()
    if scheme[1].lower() != "file":
        raise error(f"{name!r} is not on a local file system: copy the {kind} to a folder that every worker has")
    return Path(unquote(urlsplit(name).path))


def refuse_unknown(options: Mapping[str, str], names: Collection[str], error: type[StablecastError]) -> None:
    """Raise the `error` for an option that the format does not have, with the nearest name that it has."""
    right = {name.lower(): name for name in names}
    for name in options:
        if name.lower() not in right:
            near = get_close_matches(name.lower(), right, 1)
            hint = f"did you mean {right[near[0]]}?" if near else f"there are {', '.join(names)}"
            raise error(f"there is no option {name!r}: {hint}")


def piece_bytes(options: Mapping[str, str], default: int, error: type[StablecastError]) -> int:
    """Return the option `pieceBytes`. Raise the `error` if it is no positive number."""
    return positive(options, "pieceBytes", error) or default


def positive(options: Mapping[str, str], name: str, error: type[StablecastError]) -> int | None:
    """Return an option that is a number of bytes, None if it is not given. Raise the `error` if it is another."""
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        raise error(f"the option {name} is a number of bytes, not {text!r}")
    return int(text)


def column_names(schema: StructType, columns: Mapping[str, Any], kind: str, error: type[StablecastError]) -> list[str]:
    """Return the columns that a query asks for. Raise the `error` for one that does not exist or has another type."""
    for field in schema.fields:
        if field.name not in columns:
            raise error(f"{kind} have no column {field.name!r}; they have {', '.join(columns)}")
        wanted, asked = _SQL[columns[field.name]], field.dataType.simpleString()
        if asked != wanted:  # In a task it would be a page of Java.
            raise error(f"the column {field.name!r} of {kind} is {wanted}, not {asked}: cast it after the load")
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
