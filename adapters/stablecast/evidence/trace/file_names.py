"""The names of trace files, and which files are one trace.

`<role>-<name>-<pid>-<n>.sct` is a trace, or its first part; `<role>-<name>-<pid>-<n>.<part>.sct` goes on where the part
before it ended. The oldest parts of a long trace may have been deleted.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from stablecast.evidence.trace.errors import TraceError
from stablecast.text import unread

SUFFIX: Final = ".sct"


def part_path(first: Path, part: int) -> Path:
    """The file of a part of the trace whose first part is `first`."""
    return first.with_name(f"{first.name.removesuffix(SUFFIX)}.{part}{SUFFIX}") if part else first


def part_of(path: Path) -> tuple[str, int]:
    """The trace that a file belongs to, as the path of its first part, and which part it is.

    >>> part_of(Path("a/store-x-1-0.12.sct")), part_of(Path("a/store-127.0.0.1_80-1-0.sct"))
    (('a/store-x-1-0.sct', 12), ('a/store-127.0.0.1_80-1-0.sct', 0))
    """
    stem, dot, part = path.name.removesuffix(SUFFIX).rpartition(".")
    if dot and path.name.endswith(SUFFIX) and part.isascii() and part.isdigit() and part[0] != "0":
        return str(path.with_name(stem + SUFFIX)), int(part)
    return str(path), 0


def traces_of(paths: Iterable[Path]) -> list[list[Path]]:
    """The files, put together to traces, each in the order of its parts; a file that is named twice counts once."""
    traces: dict[str, list[Path]] = {}
    for path in dict.fromkeys(paths):
        traces.setdefault(part_of(path)[0], []).append(path)
    return [sorted(parts, key=part_of) for parts in traces.values()]


def find(paths: Iterable[Path]) -> list[Path]:
    """The files, and the traces of the directories; a name with `*`, `?` or `[` is a pattern.

    Raises:
        TraceError: If a directory or a pattern has none, or cannot be looked into.
    """
    found: list[Path] = []
    for path in paths:
        try:
            found += _found(path)
        except OSError as error:
            raise TraceError(unread(path, error)) from error
    return found


def traces_in(directory: Path) -> list[Path]:
    """The traces of a directory, perhaps none. Raises OSError; a pattern would find none where nobody may look."""
    return sorted(path for path in directory.iterdir() if path.name.endswith(SUFFIX))


def _found(path: Path) -> list[Path]:
    """What one name stands for. Raises TraceError and OSError."""
    if path.is_dir():
        if not (found := traces_in(path)):
            raise TraceError(f"there are no traces (*{SUFFIX}) in the directory {path}: name the one recorded to")
        return found
    if path.exists() or not any(letter in path.name for letter in "*?["):
        return [path]
    if not (found := sorted(one for one in path.parent.iterdir() if one.match(path.name) and one.is_file())):
        raise TraceError(f"no file matches {path}: correct the pattern")
    return found
