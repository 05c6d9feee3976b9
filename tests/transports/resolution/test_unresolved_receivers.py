"""Receivers that wait for a source."""

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.unresolved_receivers import PATIENCE, UnresolvedTopics


def test_who_waits_is_told_of_ever_more_rarely() -> None:
    waiting = UnresolvedTopics()
    waiting.begin("a", 0)
    waiting.begin("b", SECOND)
    waiting.begin("a", 5 * SECOND)
    assert waiting.next() == PATIENCE
    assert waiting.take(PATIENCE - 1) == {}
    assert waiting.take(PATIENCE + SECOND) == {"a": PATIENCE + SECOND, "b": PATIENCE}
    assert waiting.next() == 2 * PATIENCE
    assert waiting.take(9 * PATIENCE) == {"a": 9 * PATIENCE, "b": 9 * PATIENCE - SECOND}
    assert waiting.next() == 16 * PATIENCE


def test_who_is_resolved_is_not_told_of() -> None:
    waiting = UnresolvedTopics()
    waiting.begin("a", 0)
    waiting.end("a")
    waiting.end("a")
    assert (waiting.next(), waiting.take(10 * PATIENCE)) == (None, {})
    waiting.begin("a", 0)
    waiting.end("a")
    waiting.begin("a", SECOND)
    assert waiting.take(PATIENCE) == {}
    assert waiting.take(PATIENCE + SECOND) == {"a": PATIENCE}
