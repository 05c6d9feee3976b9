"""Names of captures: a file, a directory that has some, a pattern."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from stablecast.evidence.capture.errors import CaptureError
from stablecast.text import unread

ENDINGS: Final = tuple(
    f"*.{kind}{packed}" for kind in ("pcap", "pcapng", "cap") for packed in ("", ".gz", ".zst", ".bz2", ".xz")
)
"""What captures in a directory are called."""


def files_of(paths: Iterable[Path]) -> list[Path]:
    """The files, and the captures of directories and patterns. Raises CaptureError where there is none to be found."""
    found: list[Path] = []
    for path in paths:
        try:
            found += _found(path)
        except OSError as error:
            raise CaptureError(unread(path, error)) from error
    return found


def captures_in(directory: Path) -> list[Path]:
    """The captures of a directory by their names, perhaps none. Raises OSError."""
    return sorted(one for one in directory.iterdir() if any(map(one.match, ENDINGS)))


def is_pattern(path: Path) -> bool:
    """Whether a name is no file, and stands for several."""
    return not path.exists() and any(letter in path.name for letter in "*?[")


def matching(pattern: Path) -> list[Path]:
    """The files and directories that a pattern names, perhaps none. Raises OSError."""
    return sorted(one for one in pattern.parent.iterdir() if one.match(pattern.name))


def _found(path: Path) -> list[Path]:
    """What one name stands for. Raises CaptureError and OSError."""
    if path.is_dir():
        some, where = captures_in(path), f"in {path}"
    elif is_pattern(path):
        some, where = matching(path), f"that match {path}"
    else:
        return [path]
    if not some:
        raise CaptureError(f"there are no captures {where}: name files of pcap or pcapng")
    return some
