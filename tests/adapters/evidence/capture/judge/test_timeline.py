"""Lines of a timeline stay short, and end where they end."""

from stablecast.evidence.capture.judge.timeline import MAX_POINTS, Timeline, TimelineLine


def test_a_long_line_keeps_some_points_and_the_newest() -> None:
    line = TimelineLine()
    for number in range(10 * MAX_POINTS):
        line.add(5 * number, number)
        assert len(line.drawn()) <= MAX_POINTS + 1
        assert line.drawn()[-1] == (5 * number, number)
    assert line.drawn() == sorted(line.drawn())
    assert line.drawn()[0] == (0, 0)


def test_each_endpoint_and_life_has_a_line() -> None:
    timeline = Timeline()
    for life in (1, 1, 2):
        timeline.add(("store", "a:1"), "held", life, 0, 7)
    assert {key: line.drawn() for key, line in timeline.lines.items()} == {
        ("store", "a:1", "held", 1): [(0, 7), (0, 7)],
        ("store", "a:1", "held", 2): [(0, 7)],
    }
