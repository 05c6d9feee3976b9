"""`stablecast trace prune`: copies of traces with only some of the frames.

Frames are copied whole: each begins with a snapshot and can be verified. If the beginning of a trace is left out, the
copy is named as a later part, so that nobody mistakes it for a whole trace.
"""

from collections.abc import Iterable
from pathlib import Path

import attrs

from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.file_names import find, part_of, part_path, traces_of
from stablecast.evidence.trace.frames import places, unread_frames
from stablecast.evidence.trace.tools.records import TraceWindow


@attrs.frozen
class Pruned:
    """The size before and after, in frames and bytes."""

    frames: int
    kept: int
    size: int
    kept_bytes: int


def prune(paths: Iterable[Path], target: Path, window: TraceWindow) -> Pruned:
    """Copy the frames of the window into a new directory. Raise TraceError, also if it exists."""
    try:
        target.mkdir(parents=True)
    except FileExistsError:
        raise TraceError(f"{target} is there already: name a new directory for what is left") from None
    total = Pruned(0, 0, 0, 0)
    for parts in traces_of(find(paths)):
        whole = True
        for path in parts:
            found = _copy(path, target, window, whole)
            whole = whole and found.kept == found.frames
            total = Pruned(*(a + b for a, b in zip(attrs.astuple(total), attrs.astuple(found), strict=True)))
    return total


def _copy(path: Path, target: Path, window: TraceWindow, whole: bool) -> Pruned:
    """Copy a part; `whole`: everything before it was kept."""
    bounds = [*places(path), path.stat().st_size]
    kept: list[tuple[int, int]] = []
    for (frame, offset), end in zip(unread_frames(path), bounds[1:], strict=True):
        if window.meets(" ".join(frame.owner), frame.head.time, frame.end):
            kept.append((offset, end))
    data = path.read_bytes()
    blocks = [data[start:end] for start, end in kept]
    if kept:
        first, part = part_of(path)
        complete = whole and kept[0][0] == 0
        name = part_path(Path(first), part if complete else part + 1).name
        (target / name).write_bytes(b"".join(blocks))
    return Pruned(len(bounds) - 1, len(kept), len(data), sum(map(len, blocks)))
