"""A printed counterexample becomes a story."""

from pathlib import Path

import pytest

from stablecast.lab.model import counterexample
from stablecast.lab.model.catalog import Configuration

MODULE = r"""---- MODULE Door ----
Open(d) ==  \* somebody opens it,
            \* and lets the cold in
    /\ door' = 1
Wait ==
    /\ TRUE
Shut ==  \* X1: it is never open
    door = 0
====
"""
OUTPUT = r"""Error: Invariant Shut is violated.
Error: The behavior up to this point is:
State 1: <Initial predicate>
/\ door = << [ open |-> FALSE, by |-> {} ], [ open |-> FALSE, by |-> {} ] >>
/\ now = 0

State 2: <Open(2) line 3, col 5 to line 4, col 9 of module Door>
/\ door = << [ open |-> FALSE, by |-> {} ], [ open |-> TRUE,
     by |-> {[who |-> "me"]} ] >>
/\ now = 0

State 3: <Wait line 5, col 5 to line 5, col 9 of module Door>
/\ door = << [ open |-> FALSE, by |-> {} ], [ open |-> TRUE, by |-> {[who |-> "me"]} ] >>
/\ now = 1
"""


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    folder = tmp_path / "Door"
    folder.mkdir()
    (folder / "Door.tla").write_text(MODULE)
    return Configuration(folder / "mut_open_bug.cfg", "violates Shut", "", {}, ("Shut",), ())


def test_a_counterexample_is_told_by_actions_and_what_they_change(configuration: Configuration) -> None:
    found = counterexample.read(OUTPUT + "3 states generated, 3 distinct\n", configuration, "Shut")
    assert found is not None
    assert list(found.story()) == [
        "Door/mut_open_bug: a run that breaks Shut (X1: it is never open)",
        "   1  Open(2): somebody opens it, and lets the cold in",
        "      door 2: by is {(who me)} (was {}), open is true (was false)",
        "   2  Wait",
        "      now: is 1 (was 0)",
    ]


def test_a_run_that_goes_on_for_ever_says_from_where(configuration: Configuration) -> None:
    found = counterexample.read(OUTPUT + "Back to state 2: <Open>\n", configuration, "Shut")
    assert found is not None
    assert list(found.story())[-1] == "      and so on for ever, from step 1"
    found = counterexample.read(OUTPUT + "State 4: Stuttering\n", configuration, "Shut")
    assert found is not None
    assert list(found.story())[-1] == "   3  Stuttering: no action follows, although one is enabled"


def test_without_a_counterexample_there_is_no_story(configuration: Configuration) -> None:
    assert counterexample.read("Model checking completed.", configuration, "Shut") is None


def test_values_that_come_and_go_are_told(configuration: Configuration) -> None:
    output = (
        "State 1: <Initial predicate>\n/\\ q = <<1>>\nState 2: <Put line 1>\n/\\ q = <<1, [a |-> {2}, b |-> <<>>]>>\n"
    )
    found = counterexample.read(output, configuration, "Shut")
    assert found is not None
    assert list(found.story())[-1] == "      q: is [1, (a {2}, b [])] (was [1])"
