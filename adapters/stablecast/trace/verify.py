"""Judging traces: the same core, fed the same inputs, must answer with the same effects.

| rule | says |
|---|---|
| schema | inputs, effects and snapshots are what the core's classes say |
| numbering | records are numbered one after the other, frames too, and each frame holds as many as it says |
| time | the machine's clock never falls |
| chain | a frame starts with the snapshot that the one before it ended with, unless records are missing between them |
| replay | the machine, restored from the snapshot, answers each input with the recorded effects, and ends as recorded |

and, independent of replay, those of `stablecast.trace.rules`. Each rule is reported once for each frame, with the first
record that breaks it: what follows a difference differs, too.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import attrs

from stablecast.trace.errors import TraceError, TruncatedError
from stablecast.trace.frames import Frame, digest, read_frames
from stablecast.trace.judge import FrameJudge
from stablecast.trace.reports import FileReport, Summary, Violation
from stablecast.trace.rules import Rule

MAX_VIOLATIONS: Final = 100
"""Violations of one file that are listed."""


@attrs.frozen
class Link:
    """What the next frame must fit to: its index, its first record, its snapshot, the clock, whose trace it is."""

    frame: int
    first: int
    digest: str
    time: int
    owner: tuple[str, str]

    @classmethod
    def behind(cls, frame: Frame) -> "Link":
        """What must come after this frame."""
        head, count = frame.head, len(frame.records)
        last = frame.records[-1].get("t") if frame.records else None
        time = last if isinstance(last, int) else head.time
        return cls(head.frame + 1, head.first + count, frame.foot.digest, time, _owner(frame))


def check_link(judge: FrameJudge, link: Link) -> None:
    """Whether a frame fits to the one before it."""
    head = judge.frame.head
    expected = link.first + head.gap
    if (head.frame, head.first) != (link.frame, expected):
        text = f"expected frame {link.frame} with record {expected}, found frame {head.frame} with record {head.first}"
        judge.violate(min(expected, head.first), "numbering", text, [link.frame, expected], [head.frame, head.first])
    owner = _owner(judge.frame)
    if owner != link.owner:
        text = f"record {head.first} belongs to {' '.join(owner)}, what precedes it to {' '.join(link.owner)}"
        judge.violate(head.first, "chain", text, list(link.owner), list(owner))
    start = digest(head.snapshot)
    if not head.gap and start != link.digest:
        text = f"the snapshot before record {head.first} is not the state that the frame before ended with"
        judge.violate(head.first, "chain", text, link.digest, start)
    if head.time < link.time:
        judge.violate(head.first, "time", f"record {head.first} is earlier than what precedes it", link.time, head.time)


def check_first(judge: FrameJudge) -> None:
    """Whether a frame may be the first of a trace."""
    head = judge.frame.head
    if head.frame or head.first != head.gap:
        text = f"the trace begins with frame {head.frame}, record {head.first}: what precedes it is missing"
        judge.violate(0, "numbering", text, [0, head.gap], [head.frame, head.first])


def verify_file(path: Path, progress: Callable[[int], None] | None = None) -> FileReport:
    """Judges one trace as far as it can be read.

    Args:
        path: The trace.
        progress: Told after each frame how many records it had.
    """
    report = FileReport(path)
    link: Link | None = None
    standing: list[Rule] | None = None
    try:
        for frame in read_frames(path):
            judge = FrameJudge(path, frame)
            if link is None:
                check_first(judge)
            else:
                check_link(judge, link)
            standing = judge.run(None if frame.head.gap else standing)
            link = Link.behind(frame)
            _take(report, frame, judge.found.values())
            if progress is not None:
                progress(len(frame.records))
    except TraceError as error:
        report.error = str(error)
        report.truncated = isinstance(error, TruncatedError)
    return report


def verify_paths(paths: Iterable[Path], progress: Callable[[int], None] | None = None) -> Summary:
    """Judges each of these traces."""
    return Summary([verify_file(path, progress) for path in paths])


def _take(report: FileReport, frame: Frame, found: Iterable[Violation]) -> None:
    report.role, report.endpoint = _owner(frame)
    report.frames += 1
    report.records += len(frame.records)
    report.gaps += frame.head.gap
    report.closed = frame.foot.closed
    room = MAX_VIOLATIONS - len(report.violations)
    report.violations += sorted(found, key=lambda violation: violation.record)[:room]


def _owner(frame: Frame) -> tuple[str, str]:
    return frame.head.role.name.lower(), frame.head.endpoint
