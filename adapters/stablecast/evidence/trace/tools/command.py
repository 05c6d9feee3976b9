"""`stablecast trace`: output and exit status of its tools."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from stablecast.evidence.trace.tools.analysis import TraceDifference, analyze, diff
from stablecast.evidence.trace.tools.prune import prune
from stablecast.evidence.trace.tools.records import RecordFilter, TraceWindow, read_records, sentence
from stablecast.evidence.trace.tools.travel import TravelSession, story
from stablecast.text import plural
from stablecast.text.console import say, show

DIFFERENT, WRONG = 1, 1
"""Exit statuses: two runs differ; a line of a script was wrong."""

PROMPT = "> "


def run_dump(paths: list[Path], wanted: RecordFilter, as_json: bool) -> int:
    """Print records. Return 0. Raise TraceError."""
    for records in read_records(paths):
        for record in records:
            if record in wanted:
                show(record.as_json(), sentence(record), as_json)
    return 0


def run_diff(left: Path, right: Path, times: bool, as_json: bool) -> int:
    """Print the first differences of two runs; return 1 if there are any. Raise TraceError."""
    found = diff(left, right, times=times)
    show({"differences": [one.as_json() for one in found]}, _differences(found), as_json)
    return DIFFERENT if found else 0


def _differences(found: Sequence[TraceDifference]) -> Iterator[str]:
    for one in found:
        yield f"{one.role}: record {one.number} differs"
        for side, record in (("left", one.left), ("right", one.right)):
            yield f"  {side}: {'ends before' if record is None else record.path}"
            for line in () if record is None else sentence(record):
                yield f"  {line}"
    if not found:
        yield "no difference"


def run_analyze(paths: list[Path], as_json: bool) -> int:
    """Print counts and latencies of each trace. Raise TraceError."""
    found = list(analyze(paths))
    lines = (line for one in found for line in one.lines())
    show({"traces": [one.as_json() for one in found]}, lines, as_json)
    return 0


def run_prune(paths: list[Path], target: Path, window: TraceWindow, as_json: bool) -> int:
    """Copy the frames in the window and print their share. Raise TraceError."""
    done = prune(paths, target, window)
    counts = {"frames": done.frames, "kept": done.kept, "bytes": done.size, "kept_bytes": done.kept_bytes}
    frames, octets = plural(done.frames, "frame"), plural(done.size, "byte")
    show(counts, [f"{target}: {done.kept:,} of {frames}, {done.kept_bytes:,} of {octets}"], as_json)
    return 0


def run_why(paths: list[Path], number: int) -> int:
    """Print the history of a message. Raise TraceError."""
    for line in story(paths, number):
        say(line)
    return 0


def run_open(paths: list[Path]) -> int:
    """Run commands from standard input; return 1 if one from a script was wrong. Raise TraceError."""
    session = TravelSession.open(paths)
    people = sys.stdin.isatty()
    if people:
        session.prepare()
        for line in (*session.do("traces"), "'help' shows what may be typed"):
            say(line)
    wrong = session.run(_asked() if people else sys.stdin, say)
    return 0 if people or not wrong else WRONG


def _asked() -> Iterator[str]:
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            return
