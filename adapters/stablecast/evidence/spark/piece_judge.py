"""The work of a task on a piece of a trace: judge each frame by itself, and list its facts about others.

All kinds of rows share one table, distinguished by `what`:

| what | is |
|---|---|
| frame | beginning and end of a frame, its owner, its value as evidence |
| fact | a row of `stablecast.evidence.trace.facts` |
| violation | a broken rule (`stablecast.evidence.trace.frame_judge`) |
| error | the reason why the piece cannot be read to its end |

A task has one frame in memory, and 32 KiB of its records decoded at a time. Only a frame with a defect is decoded
whole: about 100 bytes of JSON text are 1 kB there. So 1 MiB takes some 20 MB beside the 100 MB of the Python worker
itself.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa  # type: ignore[import-untyped]

from stablecast.evidence.spark.table_format import arrow_task, sql_schema
from stablecast.evidence.trace import container
from stablecast.evidence.trace.errors import TraceError, TruncatedError
from stablecast.evidence.trace.file_names import part_of
from stablecast.evidence.trace.frame_judge import FrameJudge, KnownState
from stablecast.evidence.trace.frames import FramePortion, FrameReader, unread_frames
from stablecast.evidence.trace.reports import row_of
from stablecast.evidence.trace.trace_judge import FrameLink

_TEXTS: Final = "what trace path role endpoint address life peer kind started_as ended_as rule text expected found"
_NUMBERS: Final = "part offset frame record time first last count gap ended patience"

TYPES: Final = {
    **dict.fromkeys(_TEXTS.split(), pa.string()),
    **dict.fromkeys(_NUMBERS.split(), pa.int64()),
    **dict.fromkeys(("closed", "truncated"), pa.bool_()),
}
"""Every column; a kind of row uses some. Numbers, times (ns) and offsets (bytes) have 64 bits, lives are hexadecimal.
"""

SCHEMA: Final = sql_schema(TYPES)

Row = dict[str, Any]


PIECE_BYTES: Final = 1 << 20
"""Compressed bytes of a piece, at least one frame. A task holds one frame at a time, however long its piece."""


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


def judge_with(pieces: list[TracePiece]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow` that gets numbers of these pieces and returns their rows."""
    return arrow_task(lambda number: judge_piece(pieces[number]), TYPES)


def judge_piece(piece: TracePiece) -> Iterator[list[Row]]:
    """Yield the rows of each frame."""
    path = Path(piece.path)
    trace, part = part_of(path)
    same: Row = {"trace": trace, "path": piece.path, "part": part}
    offset, known = piece.start, KnownState()
    try:
        for portion in FrameReader.at(path, piece.start).read(ended=True):
            offset = portion.offset
            if offset >= piece.stop:
                return
            yield [{**same, "offset": offset, **row} for row in _judge(path, portion, known)]
    except TraceError as error:
        truncated = isinstance(error, TruncatedError)
        yield [{**same, "what": "error", "offset": offset, "text": str(error), "truncated": truncated}]


def _judge(path: Path, portion: FramePortion, known: KnownState) -> Iterator[Row]:
    head, frame = portion.head, portion.frame
    judge = FrameJudge.of(path, portion, known)
    judge.begin()
    judge.judge(portion)
    begin, behind = FrameLink.before(head), FrameLink.behind(judge, frame.foot)
    yield {
        "what": "frame",
        "role": begin.role,
        "endpoint": begin.endpoint,
        "address": judge.address,
        "life": f"{judge.life:#x}",
        "frame": head.frame,
        "record": head.first,
        "count": frame.count,
        "gap": head.gap,
        "time": head.time,
        "ended": behind.time,
        "patience": judge.patience,
        "started_as": begin.digest,
        "ended_as": behind.digest,
        "closed": frame.foot.closed,
    }
    for fact in judge.book.facts:
        yield {"what": "fact", **attrs.asdict(fact, recurse=False), "life": f"{fact.life:#x}"}
    for one in judge.found.values():
        yield {"what": "violation", **row_of(one)}


def loads(text: str | None) -> Any:
    """Return an expected or found value from the text of its column."""
    return None if text is None else json.loads(text)


END: Final = 1 << 62
"""An offset after the end of every file."""
