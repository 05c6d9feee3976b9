"""The report of a verification as one HTML page that needs no other file: verdicts, violations, timelines of sessions.

A session is one life of a source with all endpoints that mention it. Its timeline shows the progress of each endpoint
by its own clock. Clocks of different hosts do not agree, so compare shapes, not instants.
"""

from collections import defaultdict
from collections.abc import Iterable
from html import escape
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import Incarnation
from stablecast.evidence.rules import RULES
from stablecast.evidence.trace.cross_rules import Told
from stablecast.evidence.trace.reports import FileReport, VerificationSummary

WIDTH: Final = 920
HEIGHT: Final = 260
MARGIN: Final = 56
"""Margin of a timeline, in pixels."""

COLOURS: Final = ("#3b6fb6", "#c8662b", "#3d8f5f", "#8a5bb0", "#a8893a", "#4a9aa8", "#b5476b", "#6b7280")

DRAWN: Final = ("sent", "stable", "held", "delivered")
"""Kinds of facts that a timeline shows."""

MAX_SESSIONS: Final = 50
"""Timelines of one page at most."""

MAX_POINTS: Final = 200
"""Points of one line at most."""

MAX_OPEN: Final = 20
"""Violations that are shown at once; the others unfold."""

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1c2330;--paper:#fbfaf7;--line:#d9d6cd;--bad:#b3261e;--good:#2f7d4f;--soft:#6b7280}
@media(prefers-color-scheme:dark){
:root{--ink:#e6e3dc;--paper:#15181e;--line:#343a45;--bad:#ff8a80;--good:#7fd1a0;--soft:#9aa3b2}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
body{max-width:980px;margin:2.5rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.05rem;margin:2.2rem 0 .5rem}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.3rem .7rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600;color:var(--soft);font-size:.8rem}td.n{text-align:right;font-variant-numeric:tabular-nums}
code{font:12.5px ui-monospace,monospace;overflow-wrap:anywhere}.bad{color:var(--bad)}.good{color:var(--good)}
.soft{color:var(--soft)}svg{width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:var(--soft)}
.key span{margin-right:1.2rem;white-space:nowrap}
.key i{display:inline-block;width:.8rem;height:.25rem;margin-right:.35rem;vertical-align:middle}
"""


@attrs.frozen
class Point:
    """The progress of an endpoint at a time of its own clock, ns."""

    trace: str
    role: str
    endpoint: str
    kind: str
    life: Incarnation
    time: int
    number: int


def points_of(told: Iterable[Told], files: Iterable[FileReport]) -> list[Point]:
    """Return the points that a page draws of these facts."""
    owners = {str(report.path): (report.role, report.endpoint) for report in files}
    lines: dict[tuple[str, str, Incarnation], list[Point]] = defaultdict(list)
    for one in told:
        fact = one.fact
        if fact.kind in DRAWN:
            point = Point(one.trace, *owners[one.path], fact.kind, fact.life, fact.time, fact.last)
            lines[one.trace, fact.kind, fact.life].append(point)
    points = []
    for line in lines.values():
        step = 1 + len(line) // MAX_POINTS
        points += line[:-1:step] + line[-1:]
    return points


def render(summary: VerificationSummary, points: Iterable[Point]) -> str:
    """Return the whole page as HTML."""
    verdict = '<span class="good">clean</span>' if summary.clean else '<span class="bad">violated or unreadable</span>'
    counts = summary.counts()
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>stablecast verify</title><style>{_STYLE}</style>",
        f"<h1>Verification: {verdict}</h1><p class=soft>{counts}</p>",
        _violations(summary),
        _files(summary),
        *_timelines(summary, points),
        _untold(summary),
    ]
    return "\n".join(part for part in parts if part)


def _violations(summary: VerificationSummary) -> str:
    rows = [
        f"<tr><td class=bad>{escape(RULES[one.rule].title)}<td>{escape(report.role)} {escape(report.endpoint)}"
        f"<td class=n>{one.record}<td>{escape(one.text)}<br><code class=soft>{escape(str(one.path))}</code>"
        for report in summary.files
        for one in report.violations
    ]
    if not rows:
        return ""
    head = "<tr><th>rule<th>endpoint<th>record, frame<th>what"
    first, rest = "".join(rows[:MAX_OPEN]), "".join(rows[MAX_OPEN:])
    more = f"<details><summary>and {len(rows) - MAX_OPEN} more</summary><table>{head}{rest}</table></details>"
    hint = "<p class=soft>Run <code>stablecast rules ID</code> to read what a rule means and what to do."
    return f"<h2>Violations</h2>{hint}<table>{head}{first}</table>{more if rest else ''}"


def _files(summary: VerificationSummary) -> str:
    rows = [
        f"<tr><td>{escape(report.role)} {escape(report.endpoint)}<td class=n>{report.records}<td class=n>{report.gaps}"
        f"<td>{'yes' if report.closed else 'no'}<td>{_verdict(report)}<td><code>{escape(str(report.path))}</code>"
        for report in summary.files
    ]
    head = "<th>endpoint<th>records<th>dropped<th>ended<th>verdict<th>file"
    return f"<h2>Endpoints</h2><table><tr>{head}{''.join(rows)}</table>"


def _verdict(report: FileReport) -> str:
    if report.error is not None:
        return f"<span class=bad>{escape(report.error)}</span>"
    if report.doubts and report.clean:
        return f"cannot tell: {', '.join(RULES[rule].title for rule in report.doubts)}"
    return "<span class=good>clean</span>" if report.clean else "<span class=bad>violated</span>"


def _untold(summary: VerificationSummary) -> str:
    if not summary.untold:
        return ""
    return f"<h2>Cannot be decided</h2><ul>{''.join(f'<li>{escape(one)}' for one in summary.untold)}</ul>"


def _timelines(summary: VerificationSummary, points: Iterable[Point]) -> list[str]:
    sessions: dict[Incarnation, list[Point]] = defaultdict(list)
    for point in points:
        sessions[point.life].append(point)
    drawn = [_timeline(summary, life, some) for life, some in sorted(sessions.items())[:MAX_SESSIONS]]
    rest = len(sessions) - len(drawn)
    return [*drawn, f"<p class=soft>and {rest} sessions more</p>"] if rest else drawn


@attrs.frozen
class _Scale:
    start: int
    span: int
    low: int
    height: int

    @classmethod
    def of(cls, points: list[Point]) -> "_Scale":
        times, numbers = [point.time for point in points], [point.number for point in points]
        low = min(numbers)
        return cls(min(times), max(1, max(times) - min(times)), low, max(1, max(numbers) - low))

    def x(self, time: int) -> float:
        return round(MARGIN + (WIDTH - 2 * MARGIN) * min(1.0, max(0.0, (time - self.start) / self.span)), 1)

    def y(self, number: int) -> float:
        return round(HEIGHT - MARGIN / 2 - (HEIGHT - MARGIN) * (number - self.low) / self.height, 1)


def _timeline(summary: VerificationSummary, life: Incarnation, points: list[Point]) -> str:
    scale = _Scale.of(points)
    lines: dict[tuple[str, str, str], list[Point]] = defaultdict(list)
    for point in points:
        lines[f"{point.role} {point.endpoint}", point.kind, point.trace].append(point)
    shapes, keys = [], []
    for place, ((owner, kind, _), line) in enumerate(sorted(lines.items())):
        colour = COLOURS[place % len(COLOURS)]
        ends = " ".join(f"{scale.x(point.time)},{scale.y(point.number)}" for point in sorted(line, key=_instant))
        dash = " stroke-dasharray='4 3'" if kind == "held" else ""
        style = f"fill=none stroke='{colour}' stroke-width=1.6{dash}"
        shapes.append(f"<polyline {style} points='{ends}'><title>{escape(owner)}: {kind}</title></polyline>")
        last = line[-1]
        shapes.append(f"<circle cx={scale.x(last.time)} cy={scale.y(last.number)} r=2 fill='{colour}'/>")
        keys.append(f"<span><i style='background:{colour}'></i>{escape(owner)}: {kind}</span>")
    return (
        f"<h2>Session {life:#x}</h2><svg viewBox='0 0 {WIDTH} {HEIGHT}' role=img>{_axes(scale)}{''.join(shapes)}"
        f"{_marks(summary, points, scale)}</svg><p class='key soft'>{''.join(keys)}</p>"
    )


def _instant(point: Point) -> tuple[int, int]:
    return point.time, point.number


def _axes(scale: _Scale) -> str:
    left, right, bottom = MARGIN, WIDTH - MARGIN, HEIGHT - MARGIN / 2
    base = f"<path d='M{left} {MARGIN / 2}V{bottom}H{right}' fill=none stroke='#9aa3b2' stroke-width=.7 />"
    return (
        f"{base}<text x={left} y={HEIGHT - 8}>0 s</text>"
        f"<text x={right} y={HEIGHT - 8} text-anchor=end>{scale.span / SECOND:.3f} s</text>"
        f"<text x={left - 6} y={bottom} text-anchor=end>{scale.low}</text>"
        f"<text x={left - 6} y={MARGIN / 2 + 4} text-anchor=end>{scale.low + scale.height}</text>"
    )


def _marks(summary: VerificationSummary, points: list[Point], scale: _Scale) -> str:
    """Draw a red line at each violation of an endpoint in the session."""
    owners = {(point.role, point.endpoint) for point in points}
    marks = []
    for report in summary.files:
        for one in report.violations if (report.role, report.endpoint) in owners else []:
            at = one.time if one.time is not None else scale.start
            title = f"<title>{escape(RULES[one.rule].title)}: {escape(one.text)}</title>"
            path = f"M{scale.x(at)} {MARGIN / 2}V{HEIGHT - MARGIN / 2}"
            marks.append(f"<path d='{path}' stroke='#d33' stroke-width=1.2>{title}</path>")
    return "".join(marks)
