"""`stablecast sim` as a command."""

import json
from pathlib import Path

from tests.support.program import outcome


def test_seeds_run_and_are_counted(tmp_path: Path) -> None:
    status, out, err = outcome("sim", "--seeds", "3", "--first", "7", "--jobs", "1", "--directory", tmp_path, "--json")
    assert (status, err) == (0, "")
    said = json.loads(out)
    assert (said["seeds"], said["violations"]) == (3, 0)
    assert set(said["coverage"]) >= {"registration", "lifetime", "source", "receiver"}
    assert list(tmp_path.iterdir()) == []


def test_a_seed_has_one_digest(tmp_path: Path) -> None:
    options = ("--seeds", "1", "--first", "7", "--jobs", "1", "--directory", tmp_path, "--digests")
    _, printed, _ = outcome("sim", *options)
    _, out, _ = outcome("sim", *options, "--json")
    assert f"seed 7: digest {json.loads(out)['digests']['7']}" in printed


def test_a_schedule_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    path.write_text("{}")
    status, out, err = outcome("sim", "--replay", path)
    assert (status, out) == (1, "")
    assert err.startswith("stablecast: ")
    assert err.count("\n") == 1


def test_whole_worlds_refuse_to_wipe_disks() -> None:
    status, out, err = outcome("sim", "--whole", "--wipe")
    assert (status, out) == (2, "")
    assert "leave out --wipe, or --whole" in err
