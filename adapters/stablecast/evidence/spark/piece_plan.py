"""Pieces of traces: runs of frames, each the work of one task."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import attrs

from stablecast.evidence.trace import container
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.frames import unread_frames

PIECE_BYTES: Final = 1 << 20
"""Compressed bytes of a piece, at least one frame. A task holds one frame at a time, however long its piece."""

END: Final = 1 << 62
"""An offset after the end of every file."""


@attrs.frozen
class TracePiece:
    """The frames of a file that begin in [start, stop), in bytes."""

    path: str
    start: int
    stop: int


def pieces_of(path: Path, size: int = PIECE_BYTES, start: int = 0, *, whole: bool = False) -> list[TracePiece]:
    """Return the pieces of a file from the frame at `start` on.

    A file with something wrong is one piece: whoever reads it finds out how far it can be read, and why not further.

    Raises:
        TraceError: If something is wrong with it and it must be `whole`.
    """
    try:
        offsets = sound_offsets(path, start) if whole else container.offsets(path, start)
        unfinished = next(unread_frames(path, offsets[-1]), None)
    except TraceError:
        if whole:
            raise
        return [TracePiece(str(path), start, END)]
    pieces, begin = [], start
    for offset in offsets[1:]:
        if offset - begin >= size or offset == offsets[-1]:
            pieces.append(TracePiece(str(path), begin, offset))
            begin = offset
    return [*pieces, TracePiece(str(path), begin, END)] if unfinished else pieces


def sound_offsets(path: Path, start: int = 0) -> list[int]:
    """Return the offsets of frames from `start` on, and the end of the last one.

    At the beginning of a file, check also that this core wrote it.

    Raises:
        TraceError: If a defect is visible without reading the whole file.
    """
    offsets = container.offsets(path, start)
    if not start:
        next(unread_frames(path), None)
    return offsets


def plan(paths: Iterable[Path], size: int = PIECE_BYTES, *, whole: bool = False) -> list[TracePiece]:
    """Return the pieces of all files. Raise TraceError if one is damaged and all must be `whole`."""
    return [piece for path in paths for piece in pieces_of(path, size, whole=whole)]
