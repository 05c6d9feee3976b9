"""A client's chart beside the model: what an edited trace shows is no step of it."""

from pathlib import Path

import pytest

from stablecast.evidence.trace.converter import Json
from tests.adapters.lab.model.views.trace_edits import edited, followed, having, said

VIEW = "Registration.client"


@pytest.mark.rows("P-217", "P-602")
def test_a_source_asks_is_granted_and_asks_again(traced: Path) -> None:
    tally = followed(traced)[VIEW]
    assert (tally.strangers, dict(tally.outside)) == (0, {})
    seen = {(step.before, step.action, step.after, step.says) for step in tally.seen["any"]}
    assert {
        ("IDLE", "Start", "REGISTERING", "ask"),
        ("REGISTERING", "ToClient(grant)", "REGISTERED", ""),
        ("REGISTERED", "ToStore", "AWAY", "ask"),
    } <= seen


def test_a_late_grant_that_is_taken_is_found(traced: Path, tmp_path: Path) -> None:
    """T6: the answer is to an earlier request."""

    def late(records: list[Json]) -> None:
        for record in records:
            message = record["in"].get("message", {})
            if message.get("_") == "Registered":
                message["generation"] += 1

    (first, *_) = followed(edited(having(traced, "source", "Registered"), tmp_path, late))[VIEW].told
    assert (first.before, first.actions, first.after) == ("REGISTERING", ("ToClient(late grant)",), "REGISTERED")


@pytest.mark.rows("P-217")
def test_believing_in_a_registration_that_nobody_granted_is_found(traced: Path, tmp_path: Path) -> None:
    def believe(records: list[Json]) -> None:
        granted = next(record for record in records if said(record, "RegistrationSuccess"))
        granted["in"] = {"_": "Tick"}

    (first, *_) = followed(edited(having(traced, "source", "Registered"), tmp_path, believe))[VIEW].told
    assert (first.actions, first.after) == (("ClientTimer",), "REGISTERED")
