"""The shortest runs to a loss, and that there are none."""

import pytest

from stablecast.lab.prove.instance import Bounds, instance
from stablecast.lab.prove.search import Search, Verdict
from stablecast.lab.prove.state import Deed, Kind
from stablecast.lab.prove.world import World
from tests.adapters.lab.prove.examples import play, search


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
    """P-415, P-511, P-525, P-526, P-523, T5, T20: formal design, 7.1 and 7.2."""
    world, result = search(name, "5.3")
    assert result.verdict is Verdict.LOSS
    assert result.loss is not None
    assert result.loss.loss is not None
    assert (result.loss.loss.kind, len(result.loss.run)) == (Kind.REUSED, steps)
    assert world.loss(play(world, result.loss.run)) == result.loss.loss
    assert world.loss(play(world, result.loss.run[:-1])) is None


@pytest.mark.no_cover
def test_documented_a_store_acknowledges_what_it_never_stored() -> None:
    """P-440: formal design, 7.3; the consensus of release 6.17 is the highest."""
    _, result = search("one_group_of_three", "6.17")
    assert result.loss is not None
    assert result.loss.loss is not None
    assert (result.loss.loss.kind, result.loss.loss.life) == (Kind.UNRECOVERABLE, 2)
    assert result.stall is not None
    assert len(result.stall.run) < len(result.loss.run)


def test_round_robin_loses_what_one_store_has() -> None:
    """P-505."""
    for profile in ("5.3", "safe"):
        _, result = search("round_robin", profile)
        assert result.loss is not None
        assert [action[0] for action in result.loss.run] == [Deed.BEGIN, Deed.SEND, Deed.SYNC, Deed.LEAVE]


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("two_groups_of_one", Bounds(2)),
        ("three_groups_all_active", Bounds(1)),
        ("one_group_of_three", Bounds(1)),
    ],
)
def test_repaired_nothing_is_lost_and_nothing_stalls(name: str, bounds: Bounds) -> None:
    """T5, P-415, P-511, P-523."""
    _, result = search(name, "safe", bounds=bounds)
    assert (result.verdict, result.complete) == (Verdict.NONE, True)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["one_group_of_five", "three_groups_five_stores"])
def test_five_stores_as_far_as_the_bound_lets_look(name: str) -> None:
    _, result = search(name, "safe", bounds=Bounds(states=3000))
    assert (result.verdict, result.complete, result.states) == (Verdict.NONE, False, 3000)


def test_a_lost_disk_is_a_loss_even_so() -> None:
    """T20: one store of the quorum forgot, one was never told."""
    _, result = search("one_group_of_three", "safe", bounds=Bounds(1, wipes=1))
    assert result.loss is not None
    assert Deed.WIPE in [action[0] for action in result.loss.run]


@pytest.mark.no_cover
def test_holes_that_nobody_fills_stall_the_source() -> None:
    """T15: formal design, 7.5."""
    name = "one_group_of_three"
    options = ("ume_consensus_sequence_number_behavior=highest", "ume_retention_intragroup_stability_behavior=all")
    _, result = search(name, "5.3", *options, bounds=Bounds(2, states=3000))
    assert (result.verdict, result.complete) == (Verdict.STALL, False)
    assert result.stall is not None
    assert result.stall.loss is None


def test_a_group_that_is_larger_than_its_list_never_starts() -> None:
    """T2: a quorum is one of the configured size."""
    stalled = instance([], ["ume_store=10.0.0.1:14567:1", "ume_store_group=0:3"], "safe", Bounds(1))
    result = Search(World.create(stalled)).run()
    assert (result.verdict, result.complete) == (Verdict.STALL, True)
    assert result.stall is not None
    assert result.stall.run == ()
