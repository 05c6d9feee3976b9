"""Small pictures."""

import re

import pytest

from stablecast.ops.monitor.board import Spans
from stablecast.ops.monitor.pictures import EMPTY, gauge, sparkline, strip


def rects(picture: str) -> list[tuple[str, float, float]]:
    found = re.findall(r'<rect class="(\w+)" x="([\d.]+)" width="([\d.]+)"', picture)
    return [(kind, float(x), float(width)) for kind, x, width in found]


def test_a_line_needs_two_points() -> None:
    assert "polyline" not in sparkline([])
    assert "polyline" not in sparkline([5])
    assert 'points="0.0,26.0 60.0,14.0 120.0,2.0"' in sparkline([0, 5, 10])


def test_a_line_of_nothing_lies_at_the_bottom() -> None:
    assert 'points="0.0,26.0 120.0,26.0"' in sparkline([0, 0])


def test_a_gauge_warms_up() -> None:
    assert gauge(5, 0) == ""
    assert 'class="cool" width="500.0"' in gauge(5, 10)
    assert 'class="warm" width="800.0"' in gauge(8, 10)
    assert 'class="hot" width="1000.0"' in gauge(80, 10, mark=5)
    assert 'class="mark" x="500.0"' in gauge(80, 10, mark=5)
    assert "mark" not in gauge(8, 10)


@pytest.mark.rows("P-911")
def test_the_strip_shows_where_what_is() -> None:
    """Trail, memory trail, lead; and the holes between."""
    spans = Spans(newest=99, acknowledged=50, in_memory=20, holes=((50, 59), (99, 99)), lost=((10, 10),))
    assert rects(strip(0, 80, 98, spans)) == [
        ("disk", 0, 800),
        ("memory", 800, 190),
        ("lost", 100, 10),
        ("hole", 500, 100),
        ("hole", 990, 10),
    ]


def test_a_single_hole_in_a_million_is_seen() -> None:
    spans = Spans(newest=999_999, acknowledged=0, in_memory=0, holes=((999_999, 999_999),), lost=())
    assert rects(strip(0, 0, 999_998, spans))[-1] == ("hole", 996.0, 4.0)


def test_nothing_held_is_an_empty_strip() -> None:
    assert strip(5, 5, 4, Spans(4, 5, 0, (), ())) == EMPTY
