"""The report of an incident as one HTML page that needs no other file: the cause first, then lanes of the endpoints."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.incident.incident_finding import clock
from stablecast.evidence.incident.report import Incident

LEFT: Final = 210
WIDTH: Final = 920
LANE: Final = 18
"""Pixels: where the lanes begin, the width of the picture, and the height of a lane."""

MAX_LANES: Final = 60
"""Endpoints of one picture at most."""

TICKS: Final = 6

FEW_PROOFS: Final = 5
"""Records of a finding that are shown at once; more are folded."""


@attrs.frozen
class _Mark:
    x: float
    width: float
    title: str


@attrs.frozen
class _Lane:
    name: str
    y: int
    bars: list[_Mark]


@attrs.frozen
class _Axis:
    """The wall times of the picture, ns of the epoch."""

    since: int
    until: int

    @classmethod
    def of(cls, report: Incident) -> "_Axis":
        lives = [life for one in report.members for life in one.lives]
        since = min((life.wall(life.began) for life in lives), default=0)
        return cls(since, max((life.wall(life.ended) for life in lives), default=since + 1))

    def x(self, time: int) -> float:
        share = (time - self.since) / max(1, self.until - self.since)
        return round(LEFT + (WIDTH - LEFT - 30) * min(1.0, max(0.0, share)), 1)

    def mark(self, since: int, until: int, title: str) -> _Mark:
        """Return the mark of a span, at least two pixels wide."""
        return _Mark(self.x(since), max(2.0, round(self.x(until) - self.x(since), 1)), title)


def render(report: Incident) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - the text needs no page

    pages = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined)
    axis = _Axis.of(report)
    lanes = [
        _Lane(
            one.name,
            LANE * at,
            [axis.mark(life.wall(life.began), life.wall(life.ended), str(life.path)) for life in one.lives],
        )
        for at, one in enumerate(sorted(report.members, key=lambda one: (one.role, one.name))[:MAX_LANES])
    ]
    step = (axis.until - axis.since) // TICKS
    return pages.get_template("page.html").render(
        report=report,
        clocks=report.clock_lines(),
        height=LANE * max(1, len(lanes)) + 22,
        lanes=lanes,
        bands=[axis.mark(one.since, one.until, one.text) for one in report.happenings if one.since],
        ticks=[axis.mark(at, at, clock(at)) for at in (axis.since + step * number for number in range(TICKS + 1))],
        few=FEW_PROOFS,
        day=f"{datetime.fromtimestamp(axis.since // SECOND, UTC):%Y-%m-%d}",
        **{"from": clock(axis.since), "until": clock(axis.until)},
    )
