"""Names of captures: a file, a directory, or a pattern."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from stablecast.evidence.capture.errors import CaptureError
from stablecast.evidence.trace.file_names import search

ENDINGS: Final = tuple(
    f"*.{kind}{packed}" for kind in ("pcap", "pcapng", "cap") for packed in ("", ".gz", ".zst", ".bz2", ".xz")
)
"""Patterns of the names of captures in a directory."""


def captures_in(directory: Path) -> list[Path]:
    """Return the captures of a directory by their names, perhaps none. Raise OSError."""
    return sorted(one for one in directory.iterdir() if any(map(one.match, ENDINGS)))


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Return the files, and the captures of directories and patterns. Raise CaptureError where there is none."""
    return search(paths, captures_in, "captures", "name files of pcap or pcapng", CaptureError)
