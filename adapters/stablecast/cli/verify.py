"""`stablecast verify`: files, directories and patterns of traces, and captures."""

from pathlib import Path

from stablecast.capture.files import is_capture
from stablecast.capture.judging.command import run_judge
from stablecast.trace.command import CLEAN, UNREADABLE, VIOLATED, Paper, Wanted, publish, run_verify


def run(
    paths: list[Path], as_json: bool, master: str | None, report: Path | None, parquet: Path | None, ports: list[str]
) -> int:
    """Judge captures by themselves and traces together; returns the gravest exit status."""
    captures = [path for path in paths if path.is_file() and is_capture(path)]
    traces = [path for path in paths if path not in captures]
    paper, wanted = Paper(), Wanted(as_json, master, report, parquet)
    statuses = []
    if captures:
        statuses.append(run_judge(captures, ports, as_json, paper, master))
    if traces or not captures:
        statuses.append(run_verify(traces, wanted, paper))
    else:
        statuses.append(publish(paper, wanted))
    return max(statuses, key=[CLEAN, UNREADABLE, VIOLATED].index)
