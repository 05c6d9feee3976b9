"""The shortest runs to a loss, and that there are none."""

import pytest

from stablecast.lab.prove.instance import ProofBounds, instance
from stablecast.lab.prove.rules import lost
from stablecast.lab.prove.search import ProofVerdict, Search
from stablecast.lab.prove.state import Deed, LossKind
from stablecast.lab.prove.world import ProofWorld
from tests.adapters.lab.prove.examples import play, search


@pytest.mark.rows("P-415", "P-511", "P-523", "P-525", "P-526")
@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("two_groups_of_one", 5),
        ("three_groups_all_active", 5),
        ("backup_stores", 6),
        ("one_group_of_three", 6),
    ],
)
def test_documented_a_stable_message_loses_its_number(name: str, steps: int) -> None:
    """T5, T20: formal design, 7.1 and 7.2."""
    world, result = search(name, "5.3")
    assert result.verdict is ProofVerdict.LOSS
    assert result.loss is not None
    assert result.loss.loss is not None
    assert (result.loss.loss.kind, len(result.loss.run)) == (LossKind.REUSED, steps)
    assert lost(world, play(world, result.loss.run)) == result.loss.loss
    assert lost(world, play(world, result.loss.run[:-1])) is None


@pytest.mark.rows("P-440")
@pytest.mark.no_cover
def test_documented_a_store_acknowledges_what_it_never_stored() -> None:
    """Formal design, 7.3; the consensus of release 6.17 is the highest."""
    _, result = search("one_group_of_three", "6.17")
    assert result.loss is not None
    assert result.loss.loss is not None
    assert (result.loss.loss.kind, result.loss.loss.life) == (LossKind.UNRECOVERABLE, 2)
    assert result.stall is not None
    assert len(result.stall.run) < len(result.loss.run)


@pytest.mark.rows("P-505")
def test_round_robin_loses_what_one_store_has() -> None:
    for profile in ("5.3", "safe"):
        _, result = search("round_robin", profile)
        assert result.loss is not None
        assert [action[0] for action in result.loss.run] == [Deed.BEGIN, Deed.SEND, Deed.SYNC, Deed.LEAVE]


@pytest.mark.rows("P-415", "P-511", "P-523")
@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("two_groups_of_one", ProofBounds(2)),
        ("three_groups_all_active", ProofBounds(1)),
        ("one_group_of_three", ProofBounds(1)),
    ],
)
def test_repaired_nothing_is_lost_and_nothing_stalls(name: str, bounds: ProofBounds) -> None:
    """T5."""
    _, result = search(name, "safe", bounds=bounds)
    assert (result.verdict, result.complete) == (ProofVerdict.NONE, True)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["one_group_of_five", "three_groups_five_stores"])
def test_five_stores_as_far_as_the_bound_lets_look(name: str) -> None:
    _, result = search(name, "safe", bounds=ProofBounds(states=3000))
    assert (result.verdict, result.complete, result.states) == (ProofVerdict.NONE, False, 3000)


def test_a_lost_disk_is_a_loss_even_so() -> None:
    """T20: one store of the quorum forgot, one was never told."""
    _, result = search("one_group_of_three", "safe", bounds=ProofBounds(1, wipes=1))
    assert result.loss is not None
    assert Deed.WIPE in [action[0] for action in result.loss.run]


@pytest.mark.no_cover
def test_holes_that_nobody_fills_stall_the_source() -> None:
    """T15: formal design, 7.5."""
    name = "one_group_of_three"
    options = ("ume_consensus_sequence_number_behavior=highest", "ume_retention_intragroup_stability_behavior=all")
    _, result = search(name, "5.3", *options, bounds=ProofBounds(2, states=3000))
    assert (result.verdict, result.complete) == (ProofVerdict.STALL, False)
    assert result.stall is not None
    assert result.stall.loss is None


def test_a_group_that_is_larger_than_its_list_never_starts() -> None:
    """T2: a quorum is one of the configured size."""
    stalled = instance([], ["ume_store=10.0.0.1:14567:1", "ume_store_group=0:3"], "safe", ProofBounds(1))
    result = Search(ProofWorld.create(stalled)).run()
    assert (result.verdict, result.complete) == (ProofVerdict.STALL, True)
    assert result.stall is not None
    assert result.stall.run == ()
