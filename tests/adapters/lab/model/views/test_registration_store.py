"""A registration ID at a store beside the model: what an edited trace shows is no step of it."""

from pathlib import Path

import pytest

from stablecast.evidence.trace.converter import Json
from tests.adapters.lab.model.views.trace_edits import edited, followed, having, said

VIEW = "Registration.store"


@pytest.mark.rows("P-217", "P-532")
def test_who_asks_is_written_down_and_then_granted(traced: Path) -> None:
    tally = followed(traced)[VIEW]
    assert (tally.strangers, dict(tally.outside)) == (0, {})
    assert {step.says for step in tally.seen["any"]} >= {"grant A"}


@pytest.mark.rows("P-532")
def test_a_grant_before_the_sync_is_found(traced: Path, tmp_path: Path) -> None:
    """T7."""

    def early(records: list[Json]) -> None:
        asked = next(record for record in records if record["in"].get("message", {}).get("role") == 2)
        granted = next(record for record in records if said(record, "Registered"))
        asked["out"] += [effect for effect in granted["out"] if effect["_"] == "Send"]
        granted["out"] = [effect for effect in granted["out"] if effect["_"] != "Send"]

    (first, *_) = followed(edited(having(traced, "store", "Registered"), tmp_path, early))[VIEW].told
    assert (first.actions, first.says) == (("ToStore(ask) A",), "grant A")
    assert first.after == "holder A, unsynced A, disk -"


@pytest.mark.rows("P-584")
def test_a_holder_who_is_forgotten_before_he_is_silent_is_out_of_bounds(traced: Path, tmp_path: Path) -> None:
    """Acts of an operator are no business of the model."""

    def forget(records: list[Json]) -> None:
        persisted = next(record for record in records if said(record, "Registered"))
        grant = said(persisted, "Registered")[0]
        data = next(record for record in records if record["in"]["_"] == "Data")
        data["out"].append({"_": "Forget", "ticket": 10**6, "role": 2, "reg_id": grant["reg_id"]})

    tally = followed(edited(having(traced, "store", "Registered"), tmp_path, forget))[VIEW]
    assert tally.outside["removed by force"] == 1
