"""The report of a verification as one HTML page that needs no other file: verdicts, violations, timelines of sessions.

A session is one life of a source with all endpoints that mention it. Its timeline shows the progress of each endpoint
by its own clock. Clocks of different hosts do not agree, so compare shapes, not instants.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import Incarnation
from stablecast.evidence.rules import RULES
from stablecast.evidence.trace.cross_ground import Told
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

OUTLIERS: Final = 0.2
"""Share of the points of a timeline that may lie outside its axis."""

MAX_OPEN: Final = 20
"""Violations that are shown at once; the others unfold."""


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
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - most verifications have no page

    loader = FileSystemLoader(Path(__file__).parent)
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    sessions: dict[Incarnation, list[Point]] = defaultdict(list)
    for point in points:
        sessions[point.life].append(point)
    drawn = sorted(sessions.items())[:MAX_SESSIONS]
    return pages.get_template("report_page.html").render(
        summary=summary,
        violations=[(report, one) for report in summary.files for one in report.violations],
        open=MAX_OPEN,
        rules=RULES,
        area=(WIDTH, HEIGHT, MARGIN),
        sessions=[_Session.of(life, some) for life, some in drawn],
        more_sessions=len(sessions) - len(drawn),
    )


@attrs.frozen
class _Scale:
    start: int
    span: int
    low: int
    height: int

    @classmethod
    def of(cls, points: list[Point]) -> "_Scale":
        times, numbers = _without_outliers([point.time for point in points]), [point.number for point in points]
        low = min(numbers)
        return cls(times[0], max(1, times[-1] - times[0]), low, max(1, max(numbers) - low))

    @property
    def seconds(self) -> float:
        return self.span / SECOND

    def x(self, time: int) -> float:
        return round(MARGIN + (WIDTH - 2 * MARGIN) * min(1.0, max(0.0, (time - self.start) / self.span)), 1)

    def y(self, number: int) -> float:
        return round(HEIGHT - MARGIN / 2 - (HEIGHT - MARGIN) * (number - self.low) / self.height, 1)


def _without_outliers(times: list[int]) -> list[int]:
    """Return the times in order, without a few at an end that lie further away than all others are apart.

    A machine's clock begins at the start of its host. The first frame of a trace has the time 0.
    """
    kept = sorted(times)
    while len(kept) > 2:
        gap, at = max((after - before, at) for at, (before, after) in enumerate(pairwise(kept), start=1))
        few = min(at, len(kept) - at)
        if gap <= (kept[-1] - kept[0]) // 2 or few > OUTLIERS * len(times):
            break
        kept = kept[at:] if at == few else kept[:at]
    return kept


@attrs.frozen
class _Line:
    """A line of a timeline: the progress of one endpoint in one respect."""

    owner: str
    kind: str
    colour: str
    ends: str
    last: Point


@attrs.frozen
class _Session:
    life: Incarnation
    scale: _Scale
    lines: list[_Line]
    owners: set[tuple[str, str]]

    @classmethod
    def of(cls, life: Incarnation, points: list[Point]) -> "_Session":
        scale = _Scale.of(points)
        lines: dict[tuple[str, str, str], list[Point]] = defaultdict(list)
        for point in points:
            lines[f"{point.role} {point.endpoint}", point.kind, point.trace].append(point)
        drawn: list[_Line] = []
        for (owner, kind, _), line in sorted(lines.items()):
            in_order = sorted(line, key=lambda point: (point.time, point.number))
            ends = " ".join(f"{scale.x(point.time)},{scale.y(point.number)}" for point in in_order)
            drawn.append(_Line(owner, kind, COLOURS[len(drawn) % len(COLOURS)], ends, line[-1]))
        return cls(life, scale, drawn, {(point.role, point.endpoint) for point in points})
