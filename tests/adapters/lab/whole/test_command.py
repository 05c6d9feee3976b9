"""`stablecast sim --whole`: what it prints, writes and returns."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stablecast.core.source.stability import StabilityWindow
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.lab.schedules.seeds import SeedRange
from stablecast.lab.whole import command
from stablecast.lab.whole.command import SIMULATOR
from stablecast.lab.whole.drawn_schedule import draw
from stablecast.lab.whole.schedule import Setup, WorldSchedule
from tests.support.tree import PYTHON_PATH


def test_json_has_what_machines_ask_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert SIMULATOR.run(SeedRange(2, jobs=1, directory=tmp_path), as_json=True) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["seeds"], result["violations"], result["failures"]) == (2, 0, [])
    assert result["counts"]["delivered"] > result["counts"]["sent"] > 0
    assert list(tmp_path.iterdir()) == []


def stable_at_once(patch: pytest.MonkeyPatch) -> None:
    """The source believes that each acknowledgement stands for one message more."""
    on_acked = StabilityWindow.on_acked

    def more(self: StabilityWindow, store: int, start: int, stop: int, out: list[object]) -> None:
        on_acked(self, store, start, stop + 1, out)  # type: ignore[arg-type]

    patch.setattr(StabilityWindow, "on_acked", more)


def test_a_failing_seed_is_shrunk_traced_and_replayed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "draw", lambda seed: WorldSchedule(seed, Setup(burst=3), draw(4).faults[:1]))
    with monkeypatch.context() as patch:
        stable_at_once(patch)
        assert SIMULATOR.run(SeedRange(1, first=5, jobs=1, directory=tmp_path), as_json=False) == 1
        printed = capsys.readouterr().out
        schedule = tmp_path / "whole-5" / "schedule.json"
        assert "seed 5: VIOLATED" in printed
        assert f"replay: stablecast sim --whole --replay {schedule}" in printed
        assert SIMULATOR.run(SeedRange(1, directory=tmp_path / "again"), as_json=True, replay=schedule) == 1
        assert json.loads(capsys.readouterr().out)["failures"][0]["seed"] == 5
    assert json.loads(schedule.read_text())["faults"] == []
    assert SIMULATOR.run(SeedRange(1), as_json=True, replay=schedule) == 0  # the fault is mended
    summary = verify_paths(sorted((schedule.parent / "traces").glob("*/*.sct")))
    assert {report.role for report in summary.files} == {"source", "store", "receiver"}
    assert summary.violations


def test_a_missing_extra_is_named_in_one_sentence() -> None:
    code = (
        "import sys\n"
        "sys.modules['greenlet'] = None\n"
        "sys.argv = ['stablecast', 'sim', '--whole', '--seeds', '1']\n"
        "from stablecast.cli.main import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": PYTHON_PATH}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "pip install 'stablecast[testing]'" in done.stderr
