"""`stablecast trace`: output and exit status of its tools."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from stablecast.evidence.trace.tools import prune as pruning
from stablecast.evidence.trace.tools.analysis import analyze
from stablecast.evidence.trace.tools.diff import diff
from stablecast.evidence.trace.tools.records import RecordFilter, TraceRecord, read_records, sentence
from stablecast.evidence.trace.tools.travel_prompt import TravelSession, story
from stablecast.text import plural

Say = Callable[[object], None]
DIFFERENT, WRONG = 1, 1
"""Exit statuses: two runs differ; a line of a script was wrong."""

PROMPT = "> "


def run_dump(paths: list[Path], wanted: RecordFilter, as_json: bool, say: Say) -> int:
    """Print records. Return 0. Raise TraceError."""
    for records in read_records(paths):
        for record in records:
            if record in wanted:
                _print(record, as_json, say)
    return 0


def _print(record: TraceRecord, as_json: bool, say: Say) -> None:
    if as_json:
        say(record.as_json())
        return
    for line in sentence(record):
        say(line)


def run_diff(left: Path, right: Path, times: bool, as_json: bool, say: Say) -> int:
    """Print the first differences of two runs; return 1 if there are any. Raise TraceError."""
    found = diff(left, right, times=times)
    if as_json:
        say({"differences": [one.as_json() for one in found]})
        return DIFFERENT if found else 0
    for one in found:
        say(f"{one.role}: record {one.number} differs")
        for side, record in (("left", one.left), ("right", one.right)):
            say(f"  {side}: {'ends before' if record is None else record.path}")
            for line in () if record is None else sentence(record):
                say(f"  {line}")
    if not found:
        say("no difference")
    return DIFFERENT if found else 0


def run_analyze(paths: list[Path], as_json: bool, say: Say) -> int:
    """Print counts and latencies of each trace. Raise TraceError."""
    found = list(analyze(paths))
    if as_json:
        say({"traces": [one.as_json() for one in found]})
        return 0
    for one in found:
        for line in one.lines():
            say(line)
    return 0


def run_prune(paths: list[Path], target: Path, window: pruning.PruneWindow, as_json: bool, say: Say) -> int:
    """Copy the frames in the window and print their share. Raise TraceError."""
    done = pruning.prune(paths, target, window)
    if as_json:
        say({"frames": done.frames, "kept": done.kept, "bytes": done.size, "kept_bytes": done.kept_bytes})
    else:
        frames, octets = plural(done.frames, "frame"), plural(done.size, "byte")
        say(f"{target}: {done.kept:,} of {frames}, {done.kept_bytes:,} of {octets}")
    return 0


def run_why(paths: list[Path], number: int, say: Say) -> int:
    """Print the history of a message. Raise TraceError."""
    for line in story(paths, number):
        say(line)
    return 0


def run_open(paths: list[Path], say: Say) -> int:
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
