"""The tests that a machine leaves out are counted once, named with the remedy, and fail where CI is set."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import left_out


def skipped(why: str) -> Any:
    return SimpleNamespace(skipped=True, outcome="skipped", longrepr=("test_x.py", 1, f"Skipped: {why}"))


def test_tests_that_tests_start_are_not_counted() -> None:
    """Some must fail: they look for a planted fault."""
    assert "STABLECAST_COUNTS" not in os.environ


@pytest.mark.parametrize("ci", [False, True])
def test_what_is_left_out_fails_on_a_build_machine_only(
    ci: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(left_out, "CI", ci)
    assert (left_out.judge(skipped("groff is missing")).outcome == "failed") is ci
    left_out.write({"passed": [1, 2], "skipped": [skipped(left_out.missing("groff"))]}, tmp_path)
    assert left_out.main([str(tmp_path), "mypy needs Spark"]) == int(ci)
    assert left_out.main([str(tmp_path)]) == int(ci)
    told = capsys.readouterr().out
    assert "sudo apt-get install -y groff-base" in told
    assert "mypy needs Spark" in told
    assert told.splitlines()[-1] == "2 passed, 0 failed, 2 skipped"


@pytest.mark.parametrize("stats", [{}, {"passed": [1], "failed": [1]}, {"passed": [1], "error": [1]}])
def test_failures_and_runs_without_a_test_fail(stats: dict[str, list[Any]], tmp_path: Path) -> None:
    left_out.write(stats, tmp_path)
    assert left_out.main([str(tmp_path)]) == 1
