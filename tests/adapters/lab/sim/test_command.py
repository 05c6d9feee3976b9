"""`stablecast sim`: what it prints, writes and returns."""

import gc
import json
from pathlib import Path
from typing import Any

import pytest

from stablecast.core.source.stability import StabilityWindow
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.lab.schedules import seeds
from stablecast.lab.schedules.faults import ScheduleError
from stablecast.lab.schedules.seeds import SeedRange
from stablecast.lab.sim import command
from stablecast.lab.sim.command import Worlds, run_sim
from stablecast.lab.sim.schedule import draw


def test_json_has_what_machines_ask_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run_sim(SeedRange(4, jobs=2, directory=tmp_path), as_json=True) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["seeds"], result["violations"], result["failures"]) == (4, 0, [])
    assert {"registration", "lifetime", "source", "receiver", "election"} == set(result["coverage"])
    assert result["coverage"]["source"]["states"]["ACTIVE"] > 0
    assert list(tmp_path.iterdir()) == []


def test_chunks_go_to_several_processes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "CHUNK_SEEDS", 1)
    assert run_sim(SeedRange(3, first=7, jobs=2), as_json=False) == 0
    assert "3 seeds, 0 violations" in capsys.readouterr().out


def acknowledge_one_more(patch: pytest.MonkeyPatch) -> None:
    """The source takes an acknowledgement to speak for one message more than it does."""
    on_acked = StabilityWindow.on_acked

    def more(self: StabilityWindow, store: int, start: int, stop: int, out: list[Any]) -> None:
        on_acked(self, store, start, stop + 1, out)

    patch.setattr(StabilityWindow, "on_acked", more)


def test_a_failing_seed_is_shrunk_traced_and_replayed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        acknowledge_one_more(patch)
        assert run_sim(SeedRange(1, first=5, jobs=1, directory=tmp_path), as_json=True) == 1
        result = json.loads(capsys.readouterr().out)
        failure = result["failures"][0]
        assert result["violations"] >= 1
        assert (failure["seed"], failure["violations"][0]["name"]) == (5, "S1 StableByQuorum")
        schedule = Path(failure["schedule"])
        assert run_sim(SeedRange(1, directory=tmp_path / "again"), as_json=False, replay=schedule) == 1
        assert "S1 StableByQuorum" in capsys.readouterr().out
    assert run_sim(SeedRange(1), as_json=True, replay=schedule) == 0  # the fault is mended
    summary = verify_paths(sorted((schedule.parent / "traces").iterdir()))
    assert {report.role for report in summary.files} == {"source", "store", "receiver"}
    assert "S1" in {violation.rule for violation in summary.violations}


def test_after_the_first_few_failing_seeds_are_only_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(seeds, "MAX_SHRUNK", 0)
    acknowledge_one_more(monkeypatch)
    assert run_sim(SeedRange(1, first=5, jobs=1, directory=tmp_path), as_json=False) == 1
    said = capsys.readouterr().out
    assert "seed 5: VIOLATED" in said
    assert "again:" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_failing_seed_is_told_with_its_faults(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "shrink", lambda report: report)
    acknowledge_one_more(monkeypatch)
    assert run_sim(SeedRange(1, first=5, jobs=1, directory=tmp_path), as_json=False) == 1
    said = capsys.readouterr().out.splitlines()
    assert all(f"  {fault}" in said for fault in draw(5).faults)
    assert f"  replay: stablecast sim --replay {tmp_path / 'seed-5' / 'schedule.json'}" in said


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_is_collected_between_worlds_and_then_as_before(
    monkeypatch: pytest.MonkeyPatch, collecting: bool
) -> None:
    state = [collecting]
    monkeypatch.setattr(gc, "isenabled", lambda: state[-1])
    monkeypatch.setattr(gc, "disable", lambda: state.append(False))
    monkeypatch.setattr(gc, "enable", lambda: state.append(True))
    command.run_seeds(range(2), Worlds())
    assert state == ([True, False, True] if collecting else [False, False])


@pytest.mark.parametrize("text", ["{", "[]", '{"seed": 1}'])
def test_what_is_no_schedule_is_one_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScheduleError, match="give a file that"):
        run_sim(SeedRange(1), as_json=True, replay=path)
