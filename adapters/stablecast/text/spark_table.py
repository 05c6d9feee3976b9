"""Tables on Spark: options, paths and columns of every format of stablecast, and a sentence for each mistake."""

import re
from collections.abc import Collection, Mapping, MutableMapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from stablecast.core.errors import StablecastError
from stablecast.text.json_text import from_json

_SQL: Mapping[Any, str] = {
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.list_(pa.string()): "array<string>",
}

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""The scheme of a URI; one letter is a drive."""

_OF_QUERIES = ("checkpointLocation", "outputMode", "queryName")
"""Options that Spark gives to every format along with those of the user."""


class TableSource(DataSource):
    """A format of tables.

    Attributes:
        FORMAT: Its name.
        COLUMNS: Name and Arrow type of each column, in order.
        KIND: What it has rows of, in the plural.
        ERROR: The error of a wrong option or column.
    """

    FORMAT: ClassVar[str]
    COLUMNS: ClassVar[Mapping[str, Any]]
    KIND: ClassVar[str]
    ERROR: ClassVar[type[StablecastError]]

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return cls.FORMAT

    def schema(self) -> str:
        return sql_schema(self.COLUMNS)

    @classmethod
    def names(cls, schema: StructType) -> list[str]:
        """Return the columns that a query asks for. Raise `ERROR` for one that does not exist or has another type."""
        for field in schema.fields:
            if field.name not in cls.COLUMNS:
                raise cls.ERROR(f"{cls.KIND} have no column {field.name!r}; they have {', '.join(cls.COLUMNS)}")
            wanted, asked = _SQL[cls.COLUMNS[field.name]], field.dataType.simpleString()
            if asked != wanted:  # In a task it would be a page of Java.
                text = f"the column {field.name!r} of {cls.KIND} is {wanted}, not {asked}: cast it after the load"
                raise cls.ERROR(text)
        return list(schema.names)


def sql_schema(columns: Mapping[str, Any]) -> str:
    """Return the schema of Arrow columns as Spark writes it."""
    return ", ".join(f"{name} {_SQL[kind]}" for name, kind in columns.items())


def known_options(given: Mapping[str, str], names: Collection[str], error: type[StablecastError]) -> dict[str, str]:
    """Return the options by their right names, whatever the case they were written in.

    Raise the `error` for an option that the format does not have, with the nearest name that it has.
    """
    right, found = {name.lower(): name for name in (*names, *_OF_QUERIES)}, {}
    for name, value in given.items():
        if name.lower() not in right:
            near = get_close_matches(name.lower(), {one.lower(): one for one in names}, 1)
            hint = f"did you mean {right[near[0]]}?" if near else f"there are {', '.join(names)}"
            raise error(f"there is no option {name!r}: {hint}")
        found[right[name.lower()]] = value
    return found


def named_paths(options: Mapping[str, str], kind: str, error: type[StablecastError]) -> list[Path]:
    """Return the paths of a query's options `paths` and `path`: separated by commas, or a JSON list as Spark gives it.

    They are absolute, because workers have other working directories.
    Raise the `error` if there is none, or if one is not on a local file system.
    """
    named = options.get("paths") or options.get("path")
    if not named:
        raise error(f'name the {kind}: .load("PATH"), or the option "paths" for several')
    return [local_path(name.strip(), kind, error) for name in listed(named)]


def listed(named: str) -> list[str]:
    """Return the names in an option: separated by commas, or a JSON list as Spark gives it."""
    if named.startswith("["):
        with suppress(ValueError):
            found = from_json(named)
            if all(isinstance(name, str) for name in found):
                return list(found)
    return named.split(",")


def local_path(name: str, kind: str, error: type[StablecastError]) -> Path:
    """Return the path of a name, which may be a `file:` URI. Raise the `error` for another kind of URI."""
    scheme = _SCHEME.match(name)
    if scheme is None:
        return Path(name).absolute()
    if scheme[1].lower() != "file":
        raise error(f"{name!r} is not on a local file system: copy the {kind} to a folder that every worker has")
    return Path(unquote(urlsplit(name).path))


def positive(options: Mapping[str, str], name: str, error: type[StablecastError]) -> int | None:
    """Return an option that is a number of bytes, None if it is not given. Raise the `error` if it is another."""
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        raise error(f"the option {name} is a number of bytes, not {text!r}")
    return int(text)
