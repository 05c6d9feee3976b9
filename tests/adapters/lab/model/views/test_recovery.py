"""A receiver's numbers beside the model: what an edited trace shows is no step of it."""

from pathlib import Path

import pytest

from stablecast.core.protocol.effects import Notify
from stablecast.core.protocol.events import UnrecoverableLoss
from stablecast.core.protocol.inputs import Arrived
from stablecast.core.protocol.messages import LateJoinInfo
from stablecast.evidence.trace.converter import Json
from stablecast.lab.model.views.edges import Seen
from stablecast.lab.model.views.recovery import FollowedSession
from tests.adapters.lab.model.views.trace_edits import edited, followed, having, said

VIEW = "Recovery.receiver"


@pytest.mark.rows("P-402", "P-443")
def test_what_comes_is_delivered_consumed_and_acknowledged(traced: Path) -> None:
    tally = followed(traced)[VIEW]
    assert tally.strangers == 0
    assert set(tally.outside) == {"the application consumed it in an earlier session"}
    after = {step.after for step in tally.seen["ordered, batched"]}
    assert {"delivered, open", "consumed, open", "consumed acked, open"} <= after


@pytest.mark.rows("P-402")
def test_a_number_that_is_delivered_out_of_its_turn_is_found(traced: Path, tmp_path: Path) -> None:
    """T4."""

    def skip(records: list[Json]) -> None:
        for record in records:
            for effect in record["out"]:
                if effect["_"] == "Deliver" and effect["count"] > 1 and not done:
                    effect["first"] += 1
                    effect["count"] -= 1
                    done.append(record["n"])

    done: list[int] = []
    tally = followed(edited(having(traced, "receiver", "Deliver"), tmp_path, skip))[VIEW]
    assert tally.told[0].record == done[0]
    assert "open, delivered" in {one.after for one in tally.told} | {one.before for one in tally.told}


@pytest.mark.rows("P-402")
def test_a_number_that_is_delivered_twice_is_found(traced: Path, tmp_path: Path) -> None:
    def again(records: list[Json]) -> None:
        record = next(record for record in records if any(effect["_"] == "Deliver" for effect in record["out"]))
        record["out"] += [effect for effect in record["out"] if effect["_"] == "Deliver"]

    (first, *_) = followed(edited(having(traced, "receiver", "Deliver"), tmp_path, again))[VIEW].told
    assert (first.before, first.after, first.says) == ("delivered", "delivered", "again")


@pytest.mark.rows("P-344")
def test_an_acknowledgement_of_what_was_not_consumed_is_found(traced: Path, tmp_path: Path) -> None:
    """T3."""

    def unread(records: list[Json]) -> None:
        for record in records:
            for ack in said(record, "ConsumptionAck"):
                ack["number"] += 1

    tally = followed(edited(having(traced, "receiver", "ConsumptionAck"), tmp_path, unread))[VIEW]
    assert any("open acked" in one.after or "delivered acked" in one.after for one in tally.told)


def test_a_loss_by_a_denial_is_one_by_a_tick() -> None:
    session = FollowedSession("ordered, batched", low=1, acked=0)
    denial = Arrived(LateJoinInfo(1, 1, 5, 9, store_index=0))
    seen = [one for one in session.take(denial, [Notify(UnrecoverableLoss(1, 4))]) if isinstance(one, Seen)]
    assert ("open, open", "lost, lost") in {(one.before, one.after) for one in seen}
    assert all("Tick" in one.actions for one in seen)
