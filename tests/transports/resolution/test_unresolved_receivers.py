"""Receivers that wait for a source."""

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.unresolved_receivers import PATIENCE, UnresolvedTopics


def test_waiting_receivers_are_reported_ever_more_rarely() -> None:
    waiting = UnresolvedTopics()
    waiting.begin("a", 0)
    waiting.begin("b", SECOND)
    waiting.begin("a", 5 * SECOND)
    assert waiting.next() == PATIENCE
    assert waiting.due_reports(PATIENCE - 1) == {}
    assert waiting.due_reports(PATIENCE + SECOND) == {"a": PATIENCE + SECOND, "b": PATIENCE}
    assert waiting.next() == 2 * PATIENCE
    assert waiting.due_reports(9 * PATIENCE) == {"a": 9 * PATIENCE, "b": 9 * PATIENCE - SECOND}
    assert waiting.next() == 16 * PATIENCE


def test_resolved_receivers_are_not_reported() -> None:
    waiting = UnresolvedTopics()
    waiting.begin("a", 0)
    waiting.end("a")
    waiting.end("a")
    assert (waiting.next(), waiting.due_reports(10 * PATIENCE)) == (None, {})
    waiting.begin("a", 0)
    waiting.end("a")
    waiting.begin("a", SECOND)
    assert waiting.due_reports(PATIENCE) == {}
    assert waiting.due_reports(PATIENCE + SECOND) == {"a": PATIENCE}
