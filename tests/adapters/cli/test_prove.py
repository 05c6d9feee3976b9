"""`stablecast prove` as people use it."""

import json

import pytest

from tests.adapters.lab.prove.examples import example
from tests.support.program import outcome


@pytest.mark.rows("P-525")
def test_a_loss_under_the_documented_rules() -> None:
    """P-525, formal design, 7.2."""
    status, out, err = outcome("prove", example("two_groups_of_one"), "--profile", "5.3")
    assert (status, err) == (1, "")
    assert "LOSS: 0 was reported stable" in out


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


def test_what_cannot_be_read_is_one_sentence() -> None:
    assert outcome("prove") == (
        2,
        "",
        "stablecast: no stores are configured: no message of this source is persistent\n",
    )
    status, out, err = outcome("prove", example("two_groups_of_one"), "-o", "ume_store_group=9")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
