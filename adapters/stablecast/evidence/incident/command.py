"""`stablecast incident PATH...`: sort the files, examine them, print or write the report."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.evidence.capture.files import is_capture
from stablecast.evidence.incident.logs import is_log
from stablecast.evidence.incident.page import render
from stablecast.evidence.incident.report import Incident, examine, not_read
from stablecast.evidence.trace.file_names import SUFFIX
from stablecast.text import refusal
from stablecast.text.console import show
from stablecast.text.exit_status import failed

FOUND: Final = 1
UNREADABLE: Final = 2
"""Exit statuses: something happened; something could not be read."""


@attrs.frozen
class IncidentRequest:
    """Traces, captures and logs to examine, the wait (s) that counts as a gap, and a file for the page.

    `ports` is what the caller knows of ports in captures, as `kind=port`.
    """

    paths: Sequence[Path]
    threshold: float = 1.0
    page: Path | None = None
    as_json: bool = False
    ports: Sequence[str] = ()


def run(wanted: IncidentRequest) -> int:
    """Examine and report; return 0 if nothing happened, 1 if something did, 2 if something cannot be read."""
    try:
        files = [file for path in wanted.paths for file in _files(path)]
        traces = [one for one in files if one.name.endswith(SUFFIX)]
        others = [one for one in files if not one.name.endswith(SUFFIX)]
        captures = [one for one in others if one.exists() and is_capture(one)]
        logs = [one for one in others if is_log(one)]
        foreign = [str(one) for one in others if one.exists() and one not in captures and one not in logs]
        if not traces and not captures and (logs or foreign):
            return failed(_alone(logs, foreign), UNREADABLE)
        named = traces or ([] if captures else wanted.paths)
        report = examine(named, logs, int(wanted.threshold * SECOND), captures, wanted.ports)
        report = attrs.evolve(report, foreign=foreign)
        if wanted.page is not None:
            wanted.page.write_text(render(report), encoding="utf-8")
    except StablecastError as error:
        return failed(error, UNREADABLE)
    except OSError as error:
        return failed(f"{error.filename}: {refusal(error)}; name another place", UNREADABLE)
    return _shown(report, wanted.as_json)


def _alone(logs: Sequence[Path], foreign: Sequence[str]) -> str:
    """Return the sentence about files that show no messages."""
    texts = ["there is no trace and no capture"]
    texts += [f"a log alone shows no messages: {', '.join(map(str, logs))}"] if logs else []
    texts += [not_read(foreign)] if foreign else []
    return f"{'; '.join(texts)}. Name the traces (*.sct) or captures of that time"


def _shown(report: Incident, as_json: bool) -> int:
    if not report.members:
        nothing = "no packet of a source or store is in these captures; name their ports with --port store=N"
        return failed("; ".join(report.unread) or nothing, UNREADABLE)
    show(report.as_json(), report.lines(), as_json)
    if report.happenings:
        return FOUND
    return UNREADABLE if report.unread else 0


def _files(path: Path) -> Iterator[Path]:
    """Yield the files of a directory and of the directories in it, such as one for each host."""
    if path.is_dir():
        yield from sorted(one for one in path.rglob("*") if one.is_file())
    else:
        yield path
