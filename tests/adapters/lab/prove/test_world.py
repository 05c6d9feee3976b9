"""Possible actions, and remembered steps that equal those of the endpoints."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stablecast.lab.model.store_process import store_address
from stablecast.lab.prove import rules, story
from stablecast.lab.prove.bounds import TAKEOVERS
from stablecast.lab.prove.instance import Instance, ProofBounds, instance
from stablecast.lab.prove.sources import reduced
from stablecast.lab.prove.state import Deed, LossKind, State
from stablecast.lab.prove.world import ProofWorld
from tests.adapters.lab.prove.examples import play, read


class Forgetful(dict[Any, Any]):
    """Remembers nothing: every state is a new one, every step is taken by an endpoint of its own."""

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return default

    def get(self, key: Any, default: Any = None) -> Any:
        return default


def forgetful(made: Instance) -> ProofWorld:
    world = ProofWorld.create(made)
    for part in (world.stores, world.sources):
        part.numbers, part.taken = Forgetful(), Forgetful()
    return world


def seen(world: ProofWorld, state: State) -> object:
    source = world.source(state)
    return (story.holdings(world, state), state.safe, rules.lost(world, state), source and (source.active, source.next))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["one_group_of_three", "two_groups_of_one", "three_groups_all_active", "round_robin"]),
    st.sampled_from(["safe", "5.3"]),
    st.lists(st.integers(0, 1000), max_size=25),
)
def test_what_is_remembered_is_what_endpoints_do(name: str, profile: str, choices: list[int]) -> None:
    """One world keeps every state once, however it was come to; the other one nothing."""
    made = read(name, profile, bounds=ProofBounds(2, 2, 1, faults=TAKEOVERS))
    ours, theirs = ProofWorld.create(made), forgetful(made)
    here, there = ours.start(), theirs.start()
    for choice in choices:
        actions = list(ours.actions(here))
        if not actions:
            break
        action = actions[choice % len(actions)]
        mine, other = ours.do(here, action), theirs.do(there, action)
        assert mine.told == other.told
        here, there = mine.done(), other.done()
        assert seen(ours, here) == seen(theirs, there)
        assert set(ours.actions(here)) <= set(theirs.actions(there))


def test_equal_stores_may_change_places() -> None:
    world = ProofWorld.create(read("one_group_of_three", "safe"))
    begun = (Deed.BEGIN, (0, 1, 2))
    first, last = (
        play(world, [begun, (Deed.SEND, ()), (Deed.SYNC, (index,)), (Deed.LEAVE, (index,))]) for index in (0, 2)
    )
    assert first != last
    assert world.key(first) == world.key(last)
    assert list(world.actions(play(world, [begun]))) == [(Deed.STOP, ()), (Deed.SEND, ()), (Deed.LEAVE, (0,))]


@pytest.mark.rows("P-502")
def test_in_round_robin_no_store_is_like_another() -> None:
    """The order of the list decides."""
    world = ProofWorld.create(read("round_robin", "safe"))
    assert [there for _, there in world.actions(world.start())] == [(0, 1), (0,), (1,)]
    assert world.key(play(world, [(Deed.BEGIN, (0,))])) != world.key(play(world, [(Deed.BEGIN, (1,))]))


def test_a_store_that_comes_late_has_its_holes_filled() -> None:
    world = ProofWorld.create(read("one_group_of_three", "safe"))
    late = play(world, [(Deed.BEGIN, (0, 1)), (Deed.SEND, ()), (Deed.RETURN, (2,))])
    assert world.asks(late, 2)
    filled = world.do(late, (Deed.FILL, (2,))).done()
    assert world.store(filled, 2).content == {0: 1}
    assert world.dirty(filled, 2)


@pytest.mark.rows("P-440")
def test_what_the_source_fills_reaches_only_who_asked() -> None:
    """A late store also tells where it is; nobody answers that."""
    world = ProofWorld.create(read("one_group_of_three", "safe", bounds=ProofBounds(2)))
    run = [(Deed.BEGIN, (0, 1)), (Deed.SEND, ()), (Deed.SEND, ()), (Deed.RETURN, (2,)), (Deed.FILL, (2,))]
    filled = play(world, run)
    assert [world.store(filled, index).unsynced for index in world.indices] == [{0, 1}] * 3


@pytest.mark.rows("P-319")
def test_a_store_that_comes_when_all_is_stable_gets_nothing() -> None:
    """A stable message is let go of."""
    world = ProofWorld.create(read("one_group_of_three", "safe"))
    run = [(Deed.BEGIN, (0, 1)), (Deed.SEND, ()), (Deed.SYNC, (0,)), (Deed.SYNC, (1,)), (Deed.RETURN, (2,))]
    late = play(world, run)
    assert late.safe == {(1, 0)}
    assert [rules.lost(world, state) for state in (late, play(world, run[:-1]), late)] == [None] * 3
    assert world.store(world.do(late, (Deed.FILL, (2,))).done(), 2).content == {}


def test_a_stable_message_whose_disks_are_lost_is_gone() -> None:
    world = ProofWorld.create(read("two_groups_of_one", "5.3", bounds=ProofBounds(1, wipes=1)))
    lost = play(
        world,
        [(Deed.BEGIN, (0,)), (Deed.SEND, ()), (Deed.SYNC, (0,)), (Deed.LEAVE, (0,)), (Deed.WIPE, (0,))],
    )
    found = rules.lost(world, lost)
    assert found is not None
    assert found.kind is LossKind.GONE


@pytest.mark.rows("P-525")
@pytest.mark.parametrize(("profile", "kind"), [("5.3", LossKind.REUSED), ("safe", None)])
def test_a_source_that_returns_to_another_group_begins_anew(profile: str, kind: LossKind | None) -> None:
    """T20: formal design, 7.2; the repaired source waits for both groups."""
    world = ProofWorld.create(read("two_groups_of_one", profile))
    run = [(Deed.BEGIN, (0, 1)), (Deed.SEND, ()), (Deed.SYNC, (0,)), (Deed.STOP, (1,))]
    assert rules.lost(world, play(world, run)) is None
    found = rules.lost(world, play(world, [*run, (Deed.BEGIN, (1,))]))
    assert (found and found.kind) == kind


def test_disks_are_lost_while_no_source_runs() -> None:
    world = ProofWorld.create(read("one_group_of_three", "safe", bounds=ProofBounds(1, wipes=1)))
    down = play(world, [(Deed.BEGIN, (0, 1)), (Deed.STOP, ())])
    wipes = [indices for deed, indices in world.actions(down) if deed is Deed.WIPE]
    assert wipes == [(0,)]  # The second one is like the first, the third one has nothing.
    away = play(world, [(Deed.BEGIN, (0, 1)), (Deed.LEAVE, (0,))])
    assert [action for action in world.actions(away) if action[0] is Deed.WIPE] == [(Deed.WIPE, (0,))]


def test_after_the_last_restart_nothing_begins() -> None:
    world = ProofWorld.create(read("one_group_of_three", "safe", bounds=ProofBounds(1, restarts=0)))
    begun = play(world, [(Deed.BEGIN, (0, 1, 2))])
    assert Deed.STOP not in [deed for deed, _ in world.actions(begun)]
    assert list(world.actions(world.do(begun, (Deed.STOP, ())).done())) == []


@pytest.mark.rows("P-511")
@pytest.mark.parametrize(("profile", "kind"), [("5.3", LossKind.UNRECOVERABLE), ("safe", None)])
def test_a_receiver_gives_up_what_the_stores_there_do_not_have(profile: str, kind: LossKind | None) -> None:
    """Formal design, 7.2; the repaired receiver waits for a quorum of every group."""
    world = ProofWorld.create(read("two_groups_of_one", profile))
    run = [(Deed.BEGIN, (0, 1)), (Deed.LEAVE, (1,)), (Deed.SEND, ()), (Deed.SYNC, (0,))]
    found = rules.lost(world, play(world, [*run, (Deed.RETURN, (1,)), (Deed.LEAVE, (0,))]))
    assert (found and found.kind) == kind


def test_a_store_that_is_listed_twice_is_one() -> None:
    options = ["ume_store=10.0.0.1:14567:1", "ume_store=10.0.0.2:14567:2", "ume_store=10.0.0.1:14567:1"]
    made = instance([], options, "safe", ProofBounds())
    assert [store.address for store in reduced(made.source, 1).stores] == list(map(store_address, (0, 1, 0)))
    assert ProofWorld.create(made).indices == [0, 1]
