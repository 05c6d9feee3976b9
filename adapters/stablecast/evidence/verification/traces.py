"""`stablecast verify PATH...`: the place of the work, the output, and the exit status."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.evidence.rules import RULES
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.report_page import Point, points_of, render
from stablecast.evidence.trace.reports import FileReport, VerificationSummary, write_table
from stablecast.evidence.trace.trace_judge import judge_paths, summarize
from stablecast.text import plural, refusal
from stablecast.text.console import note, show, spinning
from stablecast.text.exit_status import failed

CLEAN: Final = 0
VIOLATED: Final = 1
UNREADABLE: Final = 2
"""Exit statuses: all was read and nothing is wrong; a rule is broken; something could not be read."""

SPARK_BYTES: Final = 64 << 20
"""Compressed bytes from which traces are judged on Spark, if there is one: some millions of records."""

EVERY_CORE: Final = "local[*]"
"""The master that runs here, on all cores."""

EXPLAINED: Final = "`stablecast rules ID` prints what a rule means, who judges it, and what to do when it is broken"
"""The last line about broken rules."""

SHOWN_UNTOLD: Final = 5
"""Undecided questions that are printed for people."""


def worst(statuses: Iterable[int]) -> int:
    """Return the exit status that says most: a broken rule, then a file that cannot be read."""
    return max(statuses, key=[CLEAN, UNREADABLE, VIOLATED].index, default=CLEAN)


@attrs.frozen
class VerificationRequest:
    """Outputs and place: `master` names a Spark, `report` a page, `parquet` a directory for the table."""

    as_json: bool = False
    master: str | None = None
    report: Path | None = None
    parquet: Path | None = None


@attrs.define
class Paper:
    """The contents of a page and a table: traces, and captures in the same form."""

    summary: VerificationSummary = attrs.field(factory=VerificationSummary)
    points: list[Point] = attrs.field(factory=list)

    def add(self, summary: VerificationSummary, points: Iterable[Point]) -> None:
        self.summary.files += summary.files
        self.summary.untold += summary.untold
        self.summary.noted += summary.noted
        self.points += points


def publish(paper: Paper, wanted: VerificationRequest) -> int:
    """Write the page and the table, if they are wanted; return an exit status, and print a sentence if it fails."""
    try:
        if wanted.report is not None:
            wanted.report.write_text(render(paper.summary, paper.points), encoding="utf-8")
        if wanted.parquet is not None:
            write_table(paper.summary, wanted.parquet)
    except TraceError as error:
        return failed(error, UNREADABLE)
    except OSError as error:
        what = error.filename or wanted.report or wanted.parquet
        return failed(f"{what} cannot be written: {refusal(error)}; name another place", UNREADABLE)
    return CLEAN


def run_verify(
    paths: Iterable[Path], wanted: VerificationRequest = VerificationRequest(), paper: Paper | None = None
) -> int:
    """Verify traces, print the outcome, and return the exit status. `paper` has other findings for the same page.

    The status is 0 if every trace is whole and clean, 1 for a violation, 2 if something cannot be read. The outcome
    goes to stdout; a sentence about each file that cannot be read to its end goes to stderr.
    """
    try:
        summary, points = _judge(find(paths), wanted)
    except StablecastError as error:
        return failed(error, UNREADABLE)
    show(summary.as_json(), _lines(summary), wanted.as_json)
    for report in summary.files:
        if report.error is not None:
            note(report.error)
    paper = Paper() if paper is None else paper
    paper.add(summary, points)
    written = publish(paper, wanted)
    if summary.violations:
        return VIOLATED
    return written if summary.clean else UNREADABLE


def _judge(files: list[Path], wanted: VerificationRequest) -> tuple[VerificationSummary, list[Point]]:
    master = wanted.master or _master_for(files)
    if master is not None:
        return _judge_on_spark(files, master, wanted)
    total = 0
    with spinning(wanted.as_json) as show:

        def count(records: int) -> None:
            nonlocal total
            total += records
            show(f"verify, {total} records")

        judges = judge_paths(files, count)
        summary = summarize(judges)
    told = (one for judge in judges for one in judge.told)
    return summary, points_of(told, summary.files) if wanted.report is not None else []


def _master_for(files: list[Path]) -> str | None:
    """Return Spark on all cores for large input, if it is installed; None: judge here."""
    if sum(path.stat().st_size for path in files if path.is_file()) < SPARK_BYTES:
        return None
    try:
        from stablecast.evidence.spark.spark_session import check_java  # noqa: PLC0415 - an extra that small input does not need

        check_java()
    except (ModuleNotFoundError, StablecastError):
        return None
    return EVERY_CORE


def _judge_on_spark(
    files: list[Path], master: str, wanted: VerificationRequest
) -> tuple[VerificationSummary, list[Point]]:
    spark = spark_extra()
    with spinning(wanted.as_json) as show:
        outcome = spark.verify_on(spark.connect(master), files, timeline=wanted.report is not None, show=show)
    return outcome.summary, outcome.points


def spark_extra() -> Any:
    """Return the package that judges on Spark. Raise TraceError if its extra is not installed."""
    try:
        return import_module("stablecast.evidence.spark")
    except ModuleNotFoundError as error:
        raise TraceError(str(error)) from error


def _lines(summary: VerificationSummary) -> Iterator[str]:
    for report in summary.files:
        yield _sentence(report)
        for violation in report.violations:
            yield f"  {RULES[violation.rule].title}: {violation.text}"
        if report.pauses:
            longest = max(report.pauses, key=lambda pause: pause.ended - pause.began)
            seconds = (longest.ended - longest.began) / SECOND
            yield (
                f"  no rule is broken by this, but nothing became stable for {seconds:.1f} s until record "
                f"{longest.record}: `stablecast incident` names the cause"
            )
    yield from summary.noted
    yield from summary.untold[:SHOWN_UNTOLD]
    if len(summary.untold) > SHOWN_UNTOLD:
        yield f"and {len(summary.untold) - SHOWN_UNTOLD} more that cannot be decided"
    if summary.violations:
        yield EXPLAINED
    yield summary.counts()


def _sentence(report: FileReport) -> str:
    verdict = "unreadable" if report.error is not None else "clean" if report.clean else "VIOLATED"
    notes = [plural(report.records, "record")]
    if report.gaps:
        notes.append(f"{report.gaps} dropped by the recorder")
    if report.missing:
        notes.append(f"{report.missing:,} before them in parts that are gone")
    if report.frames and not report.closed and report.error is None:
        notes.append("not closed: its process was killed, or still runs")
    who = f"{report.role} {report.endpoint}: " if report.role else ""
    return f"{report.path}: {verdict}: {who}{', '.join(notes)}"
