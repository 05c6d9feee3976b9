"""A short form of `tests.adapters.evidence.spark.clean`, in process: the other judge is compared elsewhere."""

import json

import pytest

from tests.adapters.evidence.spark import clean


def test_worlds_without_a_fault_have_no_violation(capsys: pytest.CaptureFixture[str]) -> None:
    assert clean.main(["--first", "7000", "--seeds", "5"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["worlds"], found["violations"], found["simulator"], found["errors"]) == (5, [], [], [])
    assert found["records"] > 1000
