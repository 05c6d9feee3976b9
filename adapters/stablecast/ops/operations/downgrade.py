"""Name the releases that read the journal of a directory, for `stablecast store downgrade-check`.

Each segment names the version of its format. A release refuses a journal with a segment of a newer version.
"""

import re
from pathlib import Path
from typing import Any, Final

from stablecast.ops.operations.target import OperationError
from stablecast.runtime import machine
from stablecast.store.journal.record_format import FILE_HEADER_BYTES, VERSION, file_salt, file_version
from stablecast.store.journal.segments import list_segments
from stablecast.text import plural

FIRST_READER: Final = {1: "0.1.0", 2: "0.1.0", 3: "0.1.0", VERSION: "0.2.0"}
"""The first release that reads a version of the format."""

Report = dict[str, Any]
"""Record that is printed as JSON."""


def releases(directory: Path) -> Report:
    """Return the versions of the segments of a directory, and the oldest release that reads all of them.

    A segment whose header is damaged or not yet written tells nothing, and is left out.

    Raises:
        OperationError: There is no such directory.
        JournalError: A newer release wrote a segment.
        OSError: A segment cannot be read.
    """
    if not directory.is_dir():
        raise OperationError(f"there is no directory {directory}; name the directory of a store's journal")
    paths, _ = list_segments(directory)
    versions = {number: version for number in sorted(paths) if (version := _version(paths[number], number)) is not None}
    newest = max(versions.values(), default=VERSION)
    return {
        "directory": str(directory),
        "segments": {str(number): version for number, version in versions.items()},
        "newest_format": newest if versions else None,
        "oldest_release": FIRST_READER[newest] if versions else None,
    }


def _version(path: Path, number: int) -> int | None:
    with machine.files.file(path, "rb") as file:
        header = file.read(FILE_HEADER_BYTES)
    return None if file_salt(header, number) is None else file_version(header)


def reads(report: Report, release: str) -> bool:
    """Return whether a release, such as 0.1.0, reads the directory of this report.

    Raises:
        OperationError: The release is not named by its numbers.
    """
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*", release):
        raise OperationError(f"'{release}' names no release; write its numbers, such as 0.1.0")
    oldest = report["oldest_release"]
    return oldest is None or _numbers(release) >= _numbers(oldest)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def sentences(report: Report) -> list[str]:
    directory, newest = report["directory"], report["newest_format"]
    if newest is None:
        return [f"{directory} has no segment: every release reads it"]
    written = plural(sum(version == newest for version in report["segments"].values()), "segment")
    return [f"{directory} has {written} of format {newest}: release {report['oldest_release']} or newer reads it"]
