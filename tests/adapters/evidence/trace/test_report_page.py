"""The page of a report: it needs nothing else, escapes what traces say, and stays small."""

import re
from pathlib import Path

import pytest

from stablecast.evidence.trace import report_page
from stablecast.evidence.trace.cross_ground import Told
from stablecast.evidence.trace.facts import Fact
from stablecast.evidence.trace.report_page import MAX_POINTS, Point, points_of, render
from stablecast.evidence.trace.reports import FileReport, TraceViolation, VerificationSummary

LIFE = 7
PATH = Path("a<b>.sct")


def report(**more: object) -> FileReport:
    return FileReport(PATH, "source", "<orders>", frames=1, records=9, closed=True, **more)  # type: ignore[arg-type]


def point(time: int, number: int, kind: str = "sent", life: int = LIFE) -> Point:
    return Point(str(PATH), "source", "<orders>", kind, life, time, number)


def test_a_clean_page() -> None:
    text = render(VerificationSummary([report()]), [])
    assert '<span class="good">clean</span>' in text
    assert "Violations" not in text
    assert "Cannot be told" not in text
    assert "<svg" not in text


def test_a_page_needs_nothing_else_and_nothing_that_traces_say_is_markup() -> None:
    broken = TraceViolation(PATH, 3, "S1", "<script>alert(1)</script>", None, None, 500)
    untimed = TraceViolation(PATH, 4, "D1", "text")
    summary = VerificationSummary(
        [report(violations=[broken, untimed]), FileReport(Path("b.sct"), error="b is <cut>")], ["<what>"]
    )
    text = render(summary, [point(0, 5), point(1000, 9), point(500, 7, "held")])
    assert "<script" not in text
    assert not re.search(r"(?:src|href|url)\s*[=(]", text)
    assert "&lt;orders&gt;" in text
    assert "a&lt;b&gt;.sct" in text
    assert "b is &lt;cut&gt;" in text
    assert "<li>&lt;what&gt;" in text
    assert text.count("stroke='#d33'") == 2, "one mark for each violation"
    assert text.count("<polyline") == 2
    assert "stroke-dasharray" in text


def test_the_page_folds_most_of_many_violations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_page, "MAX_OPEN", 2)
    broken = [TraceViolation(PATH, record, "S1", f"text {record}") for record in range(5)]
    text = render(VerificationSummary([report(violations=broken)]), [])
    assert "<summary>and 3 more</summary>" in text
    assert all(f"text {record}" in text for record in range(5))
    assert "<details>" not in render(VerificationSummary([report(violations=broken[:2])]), [])


def test_violations_of_others_are_not_marked_in_a_session() -> None:
    other = FileReport(Path("c.sct"), "store", "s", violations=[TraceViolation(Path("c.sct"), 1, "P1", "text")])
    assert "stroke='#d33'" not in render(VerificationSummary([report(), other]), [point(0, 1)])


def test_a_page_has_so_many_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_page, "MAX_SESSIONS", 2)
    points = [point(0, 1, life=life) for life in range(5)]
    text = render(VerificationSummary([report()]), points)
    assert text.count("<svg") == 2
    assert "and 3 sessions more" in text


def test_points_are_thinned_and_the_last_one_stays() -> None:
    told = [Told("t", str(PATH), 0, Fact("sent", at, at, LIFE, "", at, at)) for at in range(1000)]
    told.append(Told("t", str(PATH), 0, Fact("asks", 0, 0, LIFE, "", 0, 2)))
    points = points_of(told, [report()])
    assert len(points) <= MAX_POINTS + 1
    assert points[0].number == 0
    assert points[-1].number == 999
    assert {one.kind for one in points} == {"sent"}


def test_an_outlier_does_not_flatten_the_axis() -> None:
    """The first frame of a trace has the time 0. The machine's clock began 4,514 s before."""
    line = [point(4_514_000_000_000 + at * 10_000_000, at) for at in range(100)]
    text = render(VerificationSummary([report()]), [point(0, 0), *line])
    assert ">0.990 s</text>" in text
    assert ">4514" not in text


def test_two_bursts_are_both_on_the_axis() -> None:
    line = [point(at + pause, at) for pause in (0, 10_000_000_000) for at in range(50)]
    assert ">10.000 s</text>" in render(VerificationSummary([report()]), line)
