"""A store's numbers beside the model: what an edited trace shows is no step of it."""

from pathlib import Path

import pytest

from stablecast.evidence.trace.converter import Json
from tests.adapters.evidence.trace.traced import records, take_apart, traces_by
from tests.adapters.lab.model.views.trace_edits import edited, followed, having, said

VIEW = "Stability.store"


@pytest.mark.rows("P-302")
def test_what_comes_is_written_synced_and_acknowledged(traced: Path) -> None:
    """T15."""
    tally = followed(traced)[VIEW]
    assert (tally.strangers, dict(tally.outside)) == (0, {})
    seen = {(step.before, step.action, step.after) for step in tally.seen["any"]}
    assert {
        ("new", "ToStore", "new mine"),
        ("new", "Fill", "new mine"),
        ("new mine", "Sync", "new mine synced told"),
        ("new mine synced told", "Ask", "asked older synced"),
        ("asked older synced", "Inform", "old older synced"),
    } <= seen


@pytest.mark.rows("P-302")
def test_an_acknowledgement_before_the_sync_is_found_with_its_record(traced: Path, tmp_path: Path) -> None:
    """T15."""

    def early(records: list[Json]) -> None:
        """The synced messages are reported with the data already."""
        written = next(record for record in records if record["in"]["_"] == "Data" and record["out"])
        synced = next(record for record in records if said(record, "StableAck"))
        acks = [effect for effect in synced["out"] if effect.get("message", {}).get("_") == "StableAck"]
        synced["out"] = [effect for effect in synced["out"] if effect not in acks]
        written["out"] += acks
        at.append(written["n"])

    at: list[int] = []
    tally = followed(edited(having(traced, "store", "StableAck"), tmp_path, early))[VIEW]
    (first, *_) = tally.told
    assert (first.record, first.before, first.after) == (at[0], "new", "new mine told")
    assert first.actions == ("ToStore",)
    assert first.window.startswith("registration ID ")


@pytest.mark.rows("P-302")
def test_an_acknowledgement_of_what_never_came_is_found(traced: Path, tmp_path: Path) -> None:
    def further(records: list[Json]) -> None:
        for record in records:
            for ack in said(record, "StableAck"):
                ack["last"] += 1

    tally = followed(edited(having(traced, "store", "StableAck"), tmp_path, further))[VIEW]
    assert ("new", "new told") in {(one.before, one.after) for one in tally.told}


@pytest.mark.rows("P-413")
def test_a_tail_that_is_cut_of_its_own_life_is_found(traced: Path, tmp_path: Path) -> None:
    def cut(records: list[Json]) -> None:
        synced = next(record for record in records if said(record, "StableAck"))
        (write,) = [effect for record in records for effect in record["out"] if effect["_"] == "PersistMessages"][:1]
        number, reg_id = write["first"], write["source_reg_id"]
        after = next(record for record in records if record["n"] > synced["n"])
        after["out"].append({"_": "Cut", "ticket": 10**6, "source_reg_id": reg_id, "number": number})

    tally = followed(edited(having(traced, "store", "StableAck"), tmp_path, cut))[VIEW]
    assert ("new mine synced told", "new") in {(one.before, one.after) for one in tally.told}


def test_a_life_that_was_replaced_and_comes_again_is_out_of_bounds(traced: Path, tmp_path: Path) -> None:
    """Two processes that are the source at once are in no model."""

    def of_source(records: list[Json]) -> list[tuple[Json, Json]]:
        clients = [(record, effect) for record in records for effect in record["out"] if effect["_"] == "PersistClient"]
        return [(record, effect) for record, effect in clients if effect["client"]["role"] == 2]

    def lives(path: Path) -> int:
        found = of_source(list(records(take_apart(path))))
        return len({effect["client"]["incarnation"] for _, effect in found})

    def again(records: list[Json]) -> None:
        (_, first), *_, (last, newest) = of_source(records)
        assert first["client"]["incarnation"] != newest["client"]["incarnation"]
        last["out"].append(first)

    path = max(traces_by(traced, "store"), key=lives)
    tally = followed(edited(path, tmp_path, again))[VIEW]
    assert (tally.strangers, tally.outside["a life that was replaced registers again"]) == (0, 1)
