"""Disks that are lost one after the other: a loss without refill, and none with it."""

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from stablecast.cli.app import app
from stablecast.core.store.refill import SourceRefill
from stablecast.core.store.repository import Repository
from stablecast.lab.prove import story
from stablecast.lab.prove.bounds import MAX_WIPES, ProofFault
from stablecast.lab.prove.instance import ProofBounds, instance
from stablecast.lab.prove.search import ProofVerdict, Search, SearchResult
from stablecast.lab.prove.state import Deed, LossKind
from stablecast.lab.prove.world import ProofWorld
from tests.adapters.lab.prove.examples import example, play, read

WIPES = ProofBounds(faults=(ProofFault.WIPE,))
ALL = (0, 1, 2)
LACKING = (
    *((Deed.BEGIN, ALL), (Deed.SEND, ()), (Deed.SYNC, (0,)), (Deed.SYNC, (1,)), (Deed.SYNC, (2,))),
    *((Deed.LEAVE, (1,)), (Deed.WIPE, (1,)), (Deed.RETURN, (1,)), (Deed.FILL, (1,))),
)
"""B lost its disk, returned, and the source retains nothing for it."""


def nothing(self: Any, *words: Any, **names: Any) -> None:
    """Do nothing, in place of a step."""


def world(name: str, *, refill: bool, bounds: ProofBounds = WIPES) -> ProofWorld:
    return ProofWorld.create(instance([example(name)], (), "safe", bounds, refill=refill))


def search(name: str, *, refill: bool = True, states: int = WIPES.states) -> SearchResult:
    return Search(world(name, refill=refill, bounds=ProofBounds(states=states, faults=(ProofFault.WIPE,)))).run()


def test_without_refill_a_stable_message_is_lost() -> None:
    result = search("one_group_of_three", refill=False)
    assert result.loss is not None
    assert result.loss.loss is not None
    assert (result.loss.loss.kind, len(result.loss.run)) == (LossKind.UNRECOVERABLE, 9)
    deeds = [deed for deed, _ in result.loss.run]
    assert deeds.count(Deed.WIPE) == 1
    without = world("one_group_of_three", refill=False)
    assert "allow-refill 1 at each store: this run is harmless" in story.remedies(without.instance, result.loss)


@pytest.mark.no_cover
def test_with_refill_nothing_is_lost() -> None:
    """All states of two stores; of three more than twice as many as the loss without refill needs."""
    result = search("two_groups_of_one")
    assert (result.verdict, result.complete) == (ProofVerdict.NONE, True)
    result = search("one_group_of_three", states=5_000)
    assert (result.verdict, result.states) == (ProofVerdict.NONE, 5_000)


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a store does not know what it lacks": lambda patch: patch.setattr(Repository, "lack_losses", nothing),
    "a store forgets what it lacks": lambda patch: patch.setattr(SourceRefill, "lack", nothing),
}
"""Planted in the core: a store reports that it lacks nothing."""


@pytest.mark.no_cover
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_refill_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    result = search("two_groups_of_one")
    assert result.verdict is ProofVerdict.LOSS


def test_a_store_gets_from_the_others_what_it_lacks() -> None:
    healing = world("one_group_of_three", refill=True)
    lacking = play(healing, LACKING)
    assert healing.store(lacking, 1).lacking == {0}
    assert not healing.store(lacking, 1).content
    assert not healing.whole(lacking, 1)
    assert (Deed.REFILL, (1,)) in list(healing.actions(lacking))
    refilled = play(healing, [*LACKING, (Deed.REFILL, (1,))])
    assert (healing.store(refilled, 1).lacking, healing.store(refilled, 1).content) == (frozenset(), {0: 1})
    assert not healing.whole(refilled, 1)
    synced = play(healing, [*LACKING, (Deed.REFILL, (1,)), (Deed.SYNC, (1,)), (Deed.LEAVE, (0,))])
    assert healing.whole(synced, 1)
    assert (Deed.WIPE, (0,)) in list(healing.actions(synced))


def test_no_disk_is_lost_while_another_store_lacks_a_message() -> None:
    for refill, may in ((True, False), (False, True)):
        there = world("one_group_of_three", refill=refill)
        away = play(there, [*LACKING, (Deed.LEAVE, (0,))])
        assert there.may_wipe(away, 0) is may


def test_the_number_of_lost_disks() -> None:
    assert WIPES.passes(3) == [ProofBounds(1, wipes=MAX_WIPES, faults=(ProofFault.WIPE,))]
    assert ProofBounds(wipes=3, faults=(ProofFault.WIPE,)).passes(3)[0].wipes == 3
    assert not read("one_group_of_three", "safe").refills
    assert not read("one_group_of_three", "5.3", bounds=WIPES).refills


def test_the_command() -> None:
    words = ["prove", str(example("two_groups_of_one")), "--faults", "wipe"]
    said = CliRunner().invoke(app, [*words, "--no-refill"])
    assert said.exit_code == 1
    assert "loses its disk" in said.output
    assert "disks lost 2, faults wipe, without refill; " in said.output
    said = CliRunner().invoke(app, [*words, "--refill", "--json"])
    assert said.exit_code == 0
    assert '"refill": true' in said.output
