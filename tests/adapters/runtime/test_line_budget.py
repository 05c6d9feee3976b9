"""Lines about clients: a stranger that comes again and again does not fill the log."""

import pytest

from stablecast.runtime.line_budget import LINES, PERIOD_SECONDS, LineBudget
from tests.support.machine import replace


def test_lines_beyond_the_budget_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 7.0
    replace(monkeypatch, "clock", monotonic=lambda: now)
    told: list[str] = []
    write = LineBudget(told.append)
    for number in range(LINES + 5):
        write(f"line {number}")
    assert told == [f"line {number}" for number in range(LINES)]
    now += PERIOD_SECONDS
    write("later")
    assert told[LINES:] == [f"5 lines about clients were left out: {LINES} a minute are written", "later"]


def test_a_budget_that_was_used_up_left_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 7.0
    replace(monkeypatch, "clock", monotonic=lambda: now)
    told: list[str] = []
    write = LineBudget(told.append)
    for _ in range(LINES):
        write("line")
    now += PERIOD_SECONDS
    write("later")
    assert told[LINES:] == ["later"]
