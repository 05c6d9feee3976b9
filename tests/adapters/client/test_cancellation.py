"""An application that is cancelled at each of its awaits loses nothing. `cancellation` has the long form."""

import re

from tests.adapters.client.cancellation import Ledger, Reading, cancelled, judge, main

RUNS = 45
"""Enough for each await of the application once."""


def test_nothing_is_lost_and_nothing_is_left() -> None:
    ledger = cancelled(RUNS, seed=1)
    assert not judge(ledger)
    assert ledger.cancelled > RUNS // 2
    assert len(ledger.stable) > 1


def test_the_command_prints_the_counts() -> None:
    lines: list[str] = []
    assert main(["--times", "2"], lines.append) == 0
    assert len(lines) == 1
    assert re.fullmatch(r"2 runs, 2 cancelled, up to \d awaits; 1 stable messages, 1 processed, 0 faults", lines[0])


def test_faults_are_found() -> None:
    one = Reading({0: b"a", 1: b"b", 2: b"c"}, {0, 2})
    ledger = Ledger({b"a", b"d"}, [one, Reading({0: b"a", 1: b"b"}, {0, 1}, closing=True), Reading({1: b"b"}, {1})])
    ledger.leaks.append("run 1, await 2: a task")
    assert judge(ledger) == ["d is lost", "a came again although it was acknowledged", "run 1, await 2: a task"]
