"""The work of a task on a piece of a trace: judge each frame by itself. Its verdict is a row.

A task has one frame in memory, and 32 KiB of its records decoded at a time. Only a frame with a defect is decoded
whole: about 100 bytes of JSON text are 1 kB there. So 1 MiB takes some 20 MB beside the 100 MB of the Python worker
itself.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa  # type: ignore[import-untyped]

from stablecast.evidence.spark.arrow_task import arrow_task
from stablecast.evidence.trace import container
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.frame_judge import KnownState, judged_alone
from stablecast.evidence.trace.frames import FrameReader, unread_frames
from stablecast.evidence.trace.reports import FrameVerdict
from stablecast.text.spark_table import sql_schema

TYPES: Final = {"path": pa.string(), "offset": pa.int64(), "outcome": pa.binary()}
"""Every column: the file, where a frame begins (bytes), and the pickled verdict on it, or the error behind the last."""

SCHEMA: Final = sql_schema(TYPES)

Row = dict[str, Any]

UNSEEN: Final = "this worker does not see it, and the driver does; give every worker the folder under this path"

PIECE_BYTES: Final = 1 << 20
"""Compressed bytes of a piece, at least one frame. A task holds one frame at a time, however long its piece."""


@attrs.frozen
class TracePiece:
    """The frames of a file that begin in [start, stop), in bytes; `seen`: the driver saw the file."""

    path: str
    start: int
    stop: int
    seen: bool = attrs.field(default=True, eq=False)

    def __str__(self) -> str:
        return self.path

    def check(self) -> None:
        """Raise TraceError, on a worker, if it does not see a file that the driver saw."""
        if self.seen and not Path(self.path).exists():
            raise TraceError(f"{self.path} cannot be read: {UNSEEN}")


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
        return [TracePiece(str(path), start, END, path.exists())]
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


def judge_with(pieces: list[TracePiece]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow` that gets numbers of these pieces and returns their rows."""
    return arrow_task(lambda number: judge_piece(pieces[number]), TYPES)


def judge_piece(piece: TracePiece) -> Iterator[list[Row]]:
    """Yield the row of each frame, and that of an error."""
    path, offset, known = Path(piece.path), piece.start, KnownState()
    outcome: FrameVerdict | TraceError
    try:
        piece.check()
        for portion in FrameReader.at(path, piece.start).read(ended=True):
            offset = portion.offset
            if offset >= piece.stop:
                return
            outcome = judged_alone(path, portion, known)
            yield [{"path": piece.path, "offset": offset, "outcome": pickle.dumps(outcome)}]
    except TraceError as error:
        yield [{"path": piece.path, "offset": offset + 1, "outcome": pickle.dumps(error)}]


END: Final = 1 << 62
"""An offset after the end of every file."""
