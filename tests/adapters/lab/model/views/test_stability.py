"""A source's numbers beside the model: what an edited trace shows is no step of it."""

from pathlib import Path

import pytest

from stablecast.evidence.trace.converter import Json
from tests.adapters.evidence.trace.traced import traces_by
from tests.adapters.lab.model.views.trace_edits import edited, followed, having, said

VIEW = "Stability.source"


@pytest.mark.rows("P-302", "P-306")
def test_every_number_is_sent_acknowledged_and_stable(traced: Path) -> None:
    tally = followed(traced)[VIEW]
    assert (tally.strangers, dict(tally.outside)) == (0, {})
    seen = {(step.before, step.action, step.after) for step in tally.seen["groups of 3, quorum"]}
    assert seen == {
        ("next", "Send", "sent, held by 0 of 3"),
        ("sent, held by 0 of 3", "ToSource(acks)", "sent, held by 1 of 3"),
        ("sent, held by 1 of 3", "ToSource(acks)", "stable"),
    }


@pytest.mark.rows("P-302")
def test_a_number_that_is_skipped_is_found(traced: Path, tmp_path: Path) -> None:
    def skip(records: list[Json]) -> None:
        sent = next(record["in"] for record in records if record["in"]["_"] == "Sent")
        sent["first"] += 1
        sent["count"] -= 1

    tally = followed(edited(having(traced, "source", "Sent"), tmp_path, skip))[VIEW]
    first = tally.told[0]
    assert (first.before, first.after, first.actions) == ("later", "sent, held by 0 of 3", ("Send",))


@pytest.mark.rows("P-413")
def test_a_number_that_is_used_again_is_found(traced: Path, tmp_path: Path) -> None:
    """T5: the second life begins at a number that was stable."""

    def again(records: list[Json]) -> None:
        for record in records:
            for event in said(record, "RegistrationComplete"):
                at.append(record["n"])
                event["number"] += 5
        sent.extend(record["n"] for record in records if record["in"]["_"] == "Sent")

    at: list[int] = []
    sent: list[int] = []
    second = traces_by(traced, "source")[1]
    tally = followed(edited(second, tmp_path, again))[VIEW]
    assert tally.told[0].before == "before"
    assert tally.told[0].record == sent[0] > at[0]


@pytest.mark.rows("P-306")
def test_stability_that_nobody_bears_out_is_found(traced: Path, tmp_path: Path) -> None:
    def silence(records: list[Json]) -> None:
        """One store acknowledged another life's messages; the messages that it made stable are still reported."""
        stable = next(record for record in records if any(event["flags"] & 4 for event in said(record, "Stable")))
        stable["in"]["message"]["incarnation"] += 1

    tally = followed(edited(having(traced, "source", "Sent"), tmp_path, silence))[VIEW]
    (first, *_) = tally.told
    assert (first.before, first.after) == ("sent, held by 1 of 3", "stable")
    assert "is no step of the model by ToSource(late acks)" in first.sentence()


@pytest.mark.rows("P-306")
def test_copies_that_go_before_they_may_are_found(traced: Path, tmp_path: Path) -> None:
    """T13."""

    def release(records: list[Json]) -> None:
        sent = next(record for record in records if record["in"]["_"] == "Sent")
        tick = next(record for record in records if record["n"] > sent["n"])
        tick["out"].append({"_": "Release", "number": sent["in"]["first"] + 1})

    tally = followed(edited(having(traced, "source", "Sent"), tmp_path, release))[VIEW]
    assert "dropped" in [one.after for one in tally.told]
