"""Traces beside the models: what is counted, what is told, what cannot be read."""

from pathlib import Path

import pytest

from stablecast.evidence.trace.errors import TraceError
from stablecast.lab.sim.runner import run as simulate
from stablecast.lab.sim.schedule import draw
from tests.adapters.evidence.trace.traced import first_trace, put_together, take_apart
from tests.adapters.lab.model.views.conftest import traced
from tests.adapters.lab.model.views.trace_edits import KEPT, followed

__all__ = ["traced"]

SEEDS = (1, 6, 8, 18)
"""Takeovers, proxies, stores that crash, disks that forget nothing, and a source that lives three times."""


@pytest.mark.rows("P-302", "P-306", "P-402")
def test_every_step_of_simulated_runs_is_one_of_the_models_or_told_as_out_of_bounds(tmp_path: Path) -> None:
    """T4, T5, T15."""
    for seed in SEEDS:
        simulate(draw(seed), traces=tmp_path / str(seed))
    tallies = followed(*(tmp_path / str(seed) for seed in SEEDS))
    for name, tally in tallies.items():
        seen, there = tally.coverage(KEPT)
        print(f"{name}: {tally.members} members, {seen} of {there} steps seen, {dict(tally.outside)}")
        assert [stranger.sentence() for stranger in tally.told] == []
        assert tally.members > 50
        assert 0 < seen <= there


def test_a_view_says_what_it_saw(traced: Path) -> None:
    tally = followed(traced)["Stability.source"]
    told = tally.as_json(KEPT)
    assert (told["view"], told["traces"], told["strangers"], told["out_of_bounds"]) == ("Stability.source", 2, 0, {})
    assert (told["steps_seen"], told["steps"], told["told"]) == (3, 4, [])


def test_after_a_gap_it_begins_anew_and_a_missing_frame_is_told(traced: Path, tmp_path: Path) -> None:
    path = max(traced.glob("store-*.sct"), key=lambda one: one.stat().st_size)
    frames = take_apart(path)
    missing = [*frames[:1], *frames[2:]]
    with pytest.raises(TraceError, match="is missing"):
        followed(put_together(tmp_path / path.name, missing))
    missing[1][0]["gap"] = missing[1][0]["first"]
    tally = followed(put_together(tmp_path / path.name, missing))["Stability.store"]
    assert (tally.traces, tally.strangers) == (2, 0)


def test_a_record_that_is_none_is_refused(traced: Path, tmp_path: Path) -> None:
    path = first_trace(traced, "source")
    frames = take_apart(path)
    del next(lines for lines in frames if len(lines) > 2)[1]["out"]
    with pytest.raises(TraceError, match="no record of n, t, in and out"):
        followed(put_together(tmp_path / path.name, frames))
