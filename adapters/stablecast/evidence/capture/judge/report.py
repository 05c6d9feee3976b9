"""The verdicts on a capture in the form of those on traces, for the same page and the same table.

Each judged endpoint is a file of its own in it. An undecidable rule is a doubt, and breaks nothing.
"""

from pathlib import Path

from stablecast.evidence.capture.judge.findings import CaptureFinding, CaptureFindings, RuleStanding
from stablecast.evidence.trace.report_page import Point
from stablecast.evidence.trace.reports import FileReport, TraceViolation, VerificationSummary

RECEIVER = "receiver "
"""First word of a receiver's name in verdicts."""


def summary_of(path: Path, findings: CaptureFindings) -> VerificationSummary:
    """Return a report for each endpoint, in the order of names; its records are applications of rules."""
    owners = {whose for _, whose in findings.standings}
    drawn = {endpoint: role for role, endpoint, _, _ in findings.timeline.lines}
    summary = VerificationSummary([_report(path, whose, drawn, findings) for whose in sorted(owners)])
    told = [_sentence(path, one) for one in findings.found if one.standing is RuleStanding.CANNOT_TELL]
    summary.untold += dict.fromkeys(told)
    return summary


def _sentence(path: Path, one: CaptureFinding) -> str:
    where = f"frame {one.frame}" if one.frame else "somewhere"
    return f"{path}, {where}: {one.rule} of {one.whose}: {one.text}"


def points_of(path: Path, findings: CaptureFindings) -> list[Point]:
    return [
        Point(str(path), role, endpoint, kind, life, time_ns, number)
        for (role, endpoint, kind, life), line in findings.timeline.lines.items()
        for time_ns, number in line.drawn()
    ]


def _report(path: Path, whose: str, drawn: dict[str, str], findings: CaptureFindings) -> FileReport:
    endpoint = whose.removeprefix(RECEIVER)
    role = "session" if whose.startswith(("LBTRM:", "LBTRU:")) else drawn.get(endpoint, "endpoint")
    standings = {rule: standing for (rule, one), standing in findings.standings.items() if one == whose}
    return FileReport(
        path,
        role,
        endpoint,
        records=sum(findings.asked[rule, whose] for rule in standings),
        closed=True,
        doubts=[rule for rule, standing in standings.items() if standing is RuleStanding.CANNOT_TELL],
        violations=[
            TraceViolation(path, one.frame, one.rule, f"frame {one.frame}: {one.text}", time=one.time_ns)
            for one in findings.found
            if one.whose == whose and one.standing is RuleStanding.BROKEN
        ],
    )
