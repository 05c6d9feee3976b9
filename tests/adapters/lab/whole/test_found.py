"""Schedules of whole worlds that found a defect and were made smaller: each broke a rule once, and must never again."""

import json
from pathlib import Path
from typing import Final

import pytest

from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.whole.runner import run
from stablecast.lab.whole.schedule import Setup, WorldSchedule

FOUND: Final = {
    entry["name"]: WorldSchedule.from_json(entry)
    for entry in map(json.loads, Path(__file__).with_name("found.jsonl").read_text(encoding="utf-8").splitlines())
}
"""Each line of the file has a name, the defect, and what deviates from an empty schedule."""


@pytest.mark.parametrize("name", FOUND)
def test_a_schedule_that_found_a_defect_is_clean(name: str, tmp_path: Path) -> None:
    for traces in tmp_path, None:  # To write traces takes time, so the runs differ.
        assert run(FOUND[name], traces).violations == ()


def test_a_receiver_that_stores_forgot_goes_on_behind_what_it_acknowledged() -> None:
    """The source never restarts. The store that knows the receiver is late, and the others begin at 0."""
    faults = (
        Fault(0, Kind.KILL, "store2", 3_000),
        Fault(1_500, Kind.KILL, "receiver0", 3_500),
        Fault(2_500, Kind.WIPE, "store1", 50),
        Fault(2_900, Kind.CUT, "store0", 4_000, "store1"),
        Fault(2_900, Kind.CUT, "store0", 4_000, "store2"),
        Fault(4_900, Kind.MUTE, "store0", 400, "receiver0"),
    )
    result = run(WorldSchedule(1, Setup(), faults, horizon_ms=10_000))
    assert result.violations == ()
    numbers = [line["number"] for line in result.lines if line["is"] == "delivered" and line["run"] == "receiver0.2"]
    assert isinstance(numbers[0], int)
    assert numbers[0] >= 16
