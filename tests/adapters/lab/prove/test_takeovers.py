"""Two living processes of one RegID: what they do to each other, and that faults in the rules for it are found.

A process that is cut off loses its place to another one, which may die before every store has heard of it; the first
one comes back through other stores. Two sources of one context have no leases that end.
"""

from collections.abc import Callable
from typing import Any

import pytest

from stablecast.core.source import SourceEndpoint
from stablecast.core.source.lineage import Lineage
from stablecast.core.store import clients
from stablecast.core.store.source_history import SourceHistory
from stablecast.lab.prove import story
from stablecast.lab.prove.bounds import TAKEOVERS, ProofFault
from stablecast.lab.prove.instance import ProofBounds
from stablecast.lab.prove.search import FoundRun, ProofVerdict
from stablecast.lab.prove.state import NOBODY, Deed, Loss, LossKind
from stablecast.lab.prove.world import ProofWorld
from tests.adapters.lab.prove.examples import play, read, search

RIVAL = ProofBounds(1, faults=(ProofFault.RIVAL,))
ALL = (0, 1, 2)

Patch = Callable[[pytest.MonkeyPatch], None]
_RESUME = SourceHistory.resume


def _at_the_resume_point(self: SourceHistory, number: int, info: Any, newest: int) -> tuple[int, bool]:
    """The cut of a store that does not ask whether it was told of the returning life before."""
    newest_here = self.lives[-1:] == [(self.incarnation, number)]
    cut, forgotten = _RESUME(self, number, info, newest)
    return (cut if newest_here else min(cut, number)), forgotten


FAULTS: dict[str, tuple[Patch, ProofVerdict, LossKind | None]] = {
    "a store cuts a returning life back to where that began": (
        lambda patch: patch.setattr(SourceHistory, "resume", _at_the_resume_point),
        *(ProofVerdict.LOSS, LossKind.UNRECOVERABLE),
    ),
    "a life that comes back does not see that another followed": (
        lambda patch: patch.setattr(Lineage, "succeeded", lambda *_: False),
        *(ProofVerdict.LOSS, LossKind.REUSED),
    ),
    "a life that comes back takes no newer term": (
        lambda patch: patch.setattr(SourceEndpoint, "renew_term", lambda self, now: None),
        *(ProofVerdict.LOSS, LossKind.REUSED),
    ),
    "a store does not note the newer term of a life that it knows": (
        lambda patch: patch.setattr(SourceHistory, "affirm", lambda self, term: None),
        *(ProofVerdict.STALL, None),
    ),
}
"""Planted in the core: each with what it comes to in a group of three."""


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["one_group_of_three", "two_groups_of_one"])
def test_two_processes_take_nothing_stable_from_each_other(name: str) -> None:
    """Formal design, 7.3 and 7.6: one that is cut off and comes back, and two sources of one context."""
    _, result = search(name, "safe", bounds=ProofBounds(1, faults=TAKEOVERS))
    assert (result.verdict, result.complete) == (ProofVerdict.NONE, True)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_rules_of_two_processes_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, verdict, kind = FAULTS[name]
    patch(monkeypatch)
    _, result = search("one_group_of_three", "safe", bounds=RIVAL)
    assert result.verdict is verdict
    found = result.loss or result.stall
    assert found is not None
    assert (found.loss and found.loss.kind) == kind
    assert Deed.TAKE_OVER in [deed for deed, _ in found.run]
    assert Deed.COME_BACK in [deed for deed, _ in found.run]


def test_a_store_that_lets_two_sources_of_a_context_take_turns_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both were told *stable* for the same numbers."""
    monkeypatch.setattr(clients, "_follows", lambda client, request: client.reply_to == request.reply_to)
    _, result = search("one_group_of_three", "safe", bounds=ProofBounds(1, faults=(ProofFault.TWIN,)))
    assert result.loss is not None
    assert result.loss.loss == Loss(LossKind.REUSED, 2, 0)
    assert result.loss.run[-1] == (Deed.ALTERNATE, ())


def test_an_earlier_source_of_a_context_ends_when_it_asks_again() -> None:
    """The later one has the RegID for good, and goes on."""
    world = ProofWorld.create(read("one_group_of_three", "safe", bounds=ProofBounds(1, faults=(ProofFault.TWIN,))))
    run = ((Deed.BEGIN, ALL), (Deed.DOUBLE, ()), (Deed.ALTERNATE, ()))
    ended = play(world, run)
    source = world.source(ended)
    assert source is not None
    assert (source.life, source.active, ended.aside, ended.doubled) == (2, True, NOBODY, False)
    *_, last = story.steps(world, FoundRun(run))
    assert "another process with the same RegID took over: this source has ended" in last.told


def test_a_successor_may_die_before_every_store_has_heard_of_it() -> None:
    world = ProofWorld.create(read("one_group_of_three", "safe", bounds=RIVAL))
    begun = [(Deed.BEGIN, ALL), (Deed.TAKE_OVER, (0, 2))]
    succeeded = play(world, begun)
    source = world.source(succeeded)
    assert source is not None
    assert (source.life, source.active, succeeded.aside) != (1, False, NOBODY)
    assert [index for index in world.indices if world.uninformed(succeeded, index)] == [0, 2]
    told = play(world, [*begun, (Deed.INFORM, (0,))])
    assert [index for index in world.indices if world.uninformed(told, index)] == [2]
    alone = play(world, [*begun, (Deed.INFORM, (0,)), (Deed.STOP, ())])
    assert (alone.source, alone.aside) == (NOBODY, succeeded.aside)
    assert (Deed.COME_BACK, (0, 1, 2)) in list(world.actions(alone))


def test_a_process_that_another_one_followed_ends() -> None:
    """The one that was cut off finds out from the stores that were told of the other."""
    world = ProofWorld.create(read("one_group_of_three", "safe", bounds=RIVAL))
    run = (
        *((Deed.BEGIN, ALL), (Deed.TAKE_OVER, ALL), (Deed.INFORM, (0,)), (Deed.INFORM, (1,))),
        *((Deed.STOP, ()), (Deed.COME_BACK, ALL)),
    )
    ended = play(world, run)
    assert (ended.source, ended.aside) == (NOBODY, NOBODY)
    assert not any(world.store(ended, index).up for index in world.indices)
    *_, last = story.steps(world, FoundRun(run))
    assert last.told == ("another process with the same RegID took over: this source has ended",)


def test_takeovers_are_bounded() -> None:
    """Once, and back. A process that comes back when no other runs takes the stores from nobody."""
    world = ProofWorld.create(read("one_group_of_three", "safe", bounds=RIVAL))
    run = [(Deed.BEGIN, ALL), (Deed.TAKE_OVER, (0,)), (Deed.STOP, ()), (Deed.COME_BACK, (1, 2))]
    back = play(world, run)
    assert (back.takeovers, back.aside) == (1, NOBODY)
    assert Deed.TAKE_OVER not in [deed for deed, _ in world.actions(back)]  # No life is left to begin.
    plain = ProofWorld.create(read("one_group_of_three", "safe", bounds=ProofBounds(1, faults=())))
    assert Deed.TAKE_OVER not in [deed for deed, _ in plain.actions(play(plain, run[:1]))]


def test_two_sources_of_one_context_have_the_stores_in_turns() -> None:
    world = ProofWorld.create(read("one_group_of_three", "safe", bounds=ProofBounds(1, faults=(ProofFault.TWIN,))))
    doubled = play(world, [(Deed.BEGIN, ALL), (Deed.DOUBLE, ())])
    assert doubled.doubled
    assert all(world.store(doubled, index).up for index in world.indices)
    assert (Deed.ALTERNATE, ()) in list(world.actions(doubled))
    ended = world.do(doubled, (Deed.STOP, ())).done()
    assert (ended.source, ended.aside, ended.doubled) == (NOBODY, NOBODY, False)


def test_what_happens_to_two_processes_has_words() -> None:
    world = ProofWorld.create(read("one_group_of_three", "safe", bounds=ProofBounds(1, faults=TAKEOVERS)))
    run = ((Deed.BEGIN, ALL), (Deed.TAKE_OVER, (0, 1)), (Deed.INFORM, (1,)), (Deed.STOP, ()), (Deed.COME_BACK, (2,)))
    assert [step.action for step in story.steps(world, FoundRun(run))[1:]] == [
        "the source is partitioned; another process with its RegID starts and reaches A, B; C cannot be reached",
        "B learns where the source resumed",
        "the source crashes",
        "the partitioned process returns and reaches C; A, B cannot be reached",
    ]
    twins = ((Deed.BEGIN, ALL), (Deed.DOUBLE, ()), (Deed.ALTERNATE, ()))
    assert [step.action for step in story.steps(world, FoundRun(twins))[1:]] == [
        "the context makes a second source with the same RegID",
        "the other source of the context registers again",
    ]


def test_a_run_of_two_processes_does_harm_only_where_it_can_happen() -> None:
    """Without a life to take over from nothing of it does."""
    world = ProofWorld.create(read("one_group_of_three", "safe", bounds=RIVAL))
    run = ((Deed.COME_BACK, ALL), (Deed.ALTERNATE, ()), (Deed.INFORM, (0,)), (Deed.TAKE_OVER, ALL))
    assert not any(story.possible(world, world.start(), action) for action in run)
    assert story.possible(world, play(world, [(Deed.BEGIN, ALL)]), (Deed.TAKE_OVER, ALL))
