"""`stablecast prove` as people use it."""

import json

from tests.adapters.lab.prove.examples import example
from tests.support.program import outcome


def test_none_under_the_repaired_ones() -> None:
    arguments = ("--messages", "1", "--restarts", "1", "--wipes", "0", "--bound", "5000", "--json")
    status, out, err = outcome("prove", example("one_group_of_three"), *arguments)
    assert (status, err) == (0, "")
    assert json.loads(out)["verdict"] == "none"


def test_faults_are_words() -> None:
    arguments = ("--messages", "1", "--faults", "rival", "--json")
    status, out, _ = outcome("prove", example("two_groups_of_one"), *arguments)
    assert (status, json.loads(out)["bounds"]["faults"]) == (0, ["rival"])
    status, out, _ = outcome("prove", example("two_groups_of_one"), "--faults", "none", "--json")
    assert (status, json.loads(out)["bounds"]["faults"]) == (0, [])
    status, out, err = outcome("prove", example("two_groups_of_one"), "--faults", "rivals")
    assert (status, out) == (2, "")
    assert "there is no fault rivals: write rival, twin, wipe or none" in err
