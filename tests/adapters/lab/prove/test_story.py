"""Runs as people follow them."""

import pytest

from stablecast.lab.prove import story
from stablecast.lab.prove.instance import ProofBounds, instance
from stablecast.lab.prove.search import FoundRun
from stablecast.lab.prove.state import Deed, Loss, LossKind
from stablecast.lab.prove.world import ProofWorld
from tests.adapters.lab.prove.examples import read, search


@pytest.mark.rows("P-525")
def test_a_timeline() -> None:
    """Two groups of one store."""
    world, result = search("two_groups_of_one", "5.3")
    assert result.loss is not None
    told = story.steps(world, result.loss)
    assert [step.action for step in told] == [
        "the source starts and reaches A, B",
        "the source sends 0",
        "A syncs and acknowledges",
        "the source crashes; B loses what is not synced",
        "the source returns and reaches B; A cannot be reached",
    ]
    assert told[1].stores == {"A": "(0)", "B": "(0)"}
    assert told[2].told == ("stable: 0",)
    assert told[4].told == ("registration complete, the next message is 0'",)
    assert told[4].stores == {"A": "0 (away)", "B": "-"}
    assert story.ending(result.loss).startswith("LOSS: 0 was reported stable, and the source will use its number again")
    assert story.loss_json(result.loss.loss) == {"kind": "reused", "message": "0"}
    assert story.legend(world.instance) == ["A = 127.0.0.1:14567, group 0", "B = 127.0.0.1:14568, group 1"]


def test_everything_that_can_happen_has_words() -> None:
    world = ProofWorld.create(read("one_group_of_three", "safe", bounds=ProofBounds(2, wipes=1)))
    run = (
        (Deed.BEGIN, (0, 1)),
        (Deed.SEND, ()),
        (Deed.RETURN, (2,)),
        (Deed.FILL, (2,)),
        (Deed.CRASH, (2,)),
        (Deed.LEAVE, (0,)),
        (Deed.WIPE, (0,)),
        (Deed.STOP, (1,)),
        (Deed.BEGIN, (0, 1, 2)),
        (Deed.STOP, ()),
    )
    told = story.steps(world, FoundRun(run))
    assert [step.action for step in told[2:8]] == [
        "C returns",
        "C recovers its holes from the source",
        "C crashes and loses what is not synced",
        "A is partitioned, its messages are synced",
        "A loses its disk",
        "the source crashes; B loses what is not synced",
    ]
    assert told[5].told == ("too few stores are registered: sending is refused",)
    assert told[9].action == "the source crashes"
    both = story.steps(world, FoundRun(((Deed.BEGIN, (0, 1)), (Deed.SEND, ()), (Deed.STOP, (0, 1)))))
    assert both[2].action == "the source crashes; A, B lose what is not synced"


def test_each_ending() -> None:
    assert story.ending(FoundRun(())).startswith("STALL: ")
    assert "no store has it" in story.ending(FoundRun((), Loss(LossKind.GONE, 2, 0)))
    assert "0' was reported stable; a receiver" in story.ending(FoundRun((), Loss(LossKind.UNRECOVERABLE, 2, 0)))
    assert story.loss_json(None) is None


def test_what_helps_is_found_by_trying() -> None:
    """Formal design, 7.1: the consensus alone."""
    world, result = search("one_group_of_three", "5.3")
    assert result.loss is not None
    assert story.remedies(world.instance, result.loss) == [
        "ume_consensus_sequence_number_behavior highest: this run is harmless",
        "profile safe: this run is harmless",
    ]


@pytest.mark.rows("P-526")
@pytest.mark.no_cover
def test_a_remedy_may_be_not_to_start() -> None:
    world, result = search("backup_stores", "5.3")
    assert result.loss is not None
    *_, last = story.remedies(world.instance, result.loss)
    assert last.startswith("profile safe: the source does not start, group 0 of size 3 lists 5 stores")


@pytest.mark.rows("P-505", "P-523", "P-525")
@pytest.mark.no_cover
def test_groups_and_rotation_have_remedies_of_their_own() -> None:
    """P-505, P-523, P-525; formal design, 7.2."""
    world, result = search("three_groups_all_active", "5.3")
    assert result.loss is not None
    assert "the repair EVERY_GROUP of profile safe: this run is harmless" in story.remedies(world.instance, result.loss)
    world, result = search("round_robin", "safe")
    assert result.loss is not None
    assert story.remedies(world.instance, result.loss) == ["ume_store_behavior qc: this run is harmless"]


@pytest.mark.rows("P-514")
def test_the_rule_that_is_there_is_no_remedy() -> None:
    world, result = search("two_groups_of_one", "5.3")
    assert result.loss is not None
    majority = read("two_groups_of_one", "5.3", "ume_retention_intergroup_stability_behavior=majority")
    assert not any("majority: this" in text for text in story.remedies(majority, result.loss))
    assert any("behavior majority: this" in text for text in story.remedies(world.instance, result.loss))


def test_what_cannot_happen_in_another_instance_does_not() -> None:
    """A group that is never complete: nothing is sent, and nothing ends well."""
    never = instance([], ["ume_store=10.0.0.1:14567:1", "ume_store_group=0:3"], "safe", ProofBounds(1))
    run = ((Deed.BEGIN, (0,)), (Deed.SEND, ()), (Deed.SYNC, (0,)), (Deed.FILL, (0,)), (Deed.RETURN, (0,)))
    assert not story.harmless(never, FoundRun((*run, (Deed.STOP, ()), (Deed.WIPE, (0,)))))


def test_many_stores_have_names() -> None:
    assert [story.label(index) for index in (0, 25, 26, 53)] == ["A", "Z", "A1", "B2"]
    assert [story.message(life, 7) for life in (1, 2, 3)] == ["7", "7'", "7''"]
