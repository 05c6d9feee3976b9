"""Judge traces and captures from files, directories and patterns, for `stablecast verify`."""

from pathlib import Path

from stablecast.evidence.capture.files import captures_in, is_capture
from stablecast.evidence.trace.file_names import is_pattern, matching, traces_in
from stablecast.evidence.verification.captures import run_judge
from stablecast.evidence.verification.traces import Paper, VerificationRequest, publish, run_verify, worst


def run(
    paths: list[Path], as_json: bool, master: str | None, report: Path | None, parquet: Path | None, ports: list[str]
) -> int:
    """Judge captures one by one and traces together; return the worst exit status."""
    named = [one for path in paths for one in _found(path)]
    captures = [path for path in named if not path.is_dir() and path.exists() and is_capture(path)]
    traces = [path for path in named if path not in captures]
    paper, wanted = Paper(), VerificationRequest(as_json, master, report, parquet)
    statuses = []
    if captures:
        statuses.append(run_judge(captures, ports, as_json, paper, master))
    if traces or not captures:
        statuses.append(run_verify(traces, wanted, paper))
    else:
        statuses.append(publish(paper, wanted))
    return worst(statuses)


def _found(path: Path) -> list[Path]:
    """Return the captures that a path stands for, else the path itself.

    The reader of traces reports a path that is wrong.
    """
    try:
        if path.is_dir():
            captures = captures_in(path)
            return captures + ([path] if traces_in(path) or not captures else [])
        if is_pattern(path) and any(map(is_capture, found := matching(path))):
            return found
    except OSError:
        pass
    return [path]
