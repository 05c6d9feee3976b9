"""The names of trace files, and the files that form one trace.

`<role>-<name>-<pid>-<n>.sct` is a trace, or its first part; `<role>-<name>-<pid>-<n>.<part>.sct` continues the part
before. The oldest parts of a long trace may have been deleted.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from stablecast.core.errors import StablecastError
from stablecast.evidence.trace.errors import TraceError
from stablecast.runtime import machine
from stablecast.text import unread

SUFFIX: Final = ".sct"


def part_path(first: Path, part: int) -> Path:
    return first.with_name(f"{first.name.removesuffix(SUFFIX)}.{part}{SUFFIX}") if part else first


def part_of(path: Path) -> tuple[str, int]:
    """Return the trace of a file, as the path of its first part, and the number of the part.

    >>> part_of(Path("a/store-x-1-0.12.sct")), part_of(Path("a/store-127.0.0.1_80-1-0.sct"))
    (('a/store-x-1-0.sct', 12), ('a/store-127.0.0.1_80-1-0.sct', 0))
    """
    stem, dot, part = path.name.removesuffix(SUFFIX).rpartition(".")
    if dot and path.name.endswith(SUFFIX) and part.isascii() and part.isdigit() and part[0] != "0":
        return str(path.with_name(stem + SUFFIX)), int(part)
    return str(path), 0


def _by_number(path: Path) -> tuple[str, int, int]:
    """Sort the traces of a process by their number, because 10 is later than 9."""
    first, part = part_of(path)
    stem, _, number = first.removesuffix(SUFFIX).rpartition("-")
    return (stem, int(number), part) if number.isascii() and number.isdigit() else (first, 0, part)


def traces_of(paths: Iterable[Path]) -> list[list[Path]]:
    """Group the files by trace, each in the order of its parts; a file that is named twice counts once."""
    traces: dict[str, list[Path]] = {}
    for path in dict.fromkeys(paths):
        traces.setdefault(part_of(path)[0], []).append(path)
    return [sorted(parts, key=part_of) for parts in traces.values()]


def traces_in(directory: Path) -> list[Path]:
    """Return the traces of a directory in the order in which a process began them, perhaps none.

    Raises OSError, where a pattern would match nothing.
    """
    found = (directory / name for name in machine.files.names(directory) if name.endswith(SUFFIX))
    return sorted(found, key=_by_number)


def find(paths: Iterable[Path]) -> list[Path]:
    """Return the files, the traces of the directories, and the files that patterns match.

    Raises:
        TraceError: If a directory or a pattern has none, or cannot be read.
    """
    return search(paths, traces_in, f"traces (*{SUFFIX})", "name the one recorded to", TraceError)


def search(
    paths: Iterable[Path], members: Callable[[Path], list[Path]], kind: str, remedy: str, error: type[StablecastError]
) -> list[Path]:
    """Return the files that names stand for: a file itself, the `members` of a directory, the matches of a pattern.

    Raises:
        StablecastError: The `error`, if a directory or a pattern has none of this `kind`, or cannot be read.
    """
    found: list[Path] = []
    for path in paths:
        try:
            some = members(path) if machine.files.is_directory(path) else matching(path) if is_pattern(path) else [path]
        except OSError as reason:
            raise error(unread(path, reason)) from reason
        if not some:
            where = "in the directory" if machine.files.is_directory(path) else "that match"
            raise error(f"there are no {kind} {where} {path}: {remedy}")
        found += some
    return found


def is_pattern(path: Path) -> bool:
    """Return whether a name is no file and has `*`, `?` or `[`."""
    return not machine.files.exists(path) and any(letter in path.name for letter in "*?[")


def matching(pattern: Path) -> list[Path]:
    """Return the files that a pattern matches, perhaps none. Raise OSError if its directory cannot be read."""
    found = [pattern.parent / name for name in machine.files.names(pattern.parent)]
    return sorted((one for one in found if one.match(pattern.name) and machine.files.is_file(one)), key=_by_number)
