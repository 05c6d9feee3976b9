"""A process that was cut off returns over the core's machines, in runs that no recorded graph contains."""

from stablecast.core.source import SourceState
from stablecast.lab.model.store_process import data
from stablecast.lab.model.worlds.stability import StabilityWorld

GROUPS = "three and one"
"""A group of three stores and a group of one; a quorum of either group makes a message stable."""


def world(layout: str = GROUPS) -> StabilityWorld:
    return StabilityWorld.create(
        {
            "Layout": layout,
            "Inside": "quorum",
            "Between": "any",
            "Consensus": "highest",
            "Repairs": frozenset({"every_group", "holes", "one_life"}),
            "Numbers": 1,
            "Flight": 1,
            "Lives": 2,
            "Crashes": 1,
            "Faults": frozenset({"rival"}),
            "Paths": "open",
            "Memory": 9,
        }
    )


def perform(run: StabilityWorld, *actions: str) -> None:
    """Perform actions such as `Wait` and `Ask 1`."""
    for action in actions:
        name, *store = action.split()
        run.do((name, *map(int, store)))


def register(run: StabilityWorld, *stores: int) -> None:
    for store in stores:
        perform(run, f"Ask {store}", f"Sync {store}", f"ToSource {store}")


def second_life_stable_in_the_small_group(run: StabilityWorld) -> None:
    """Cut the first life off; let a second one begin and make number 1 stable in the group of one store."""
    perform(run, "Begin")
    register(run, 1, 2, 4)
    perform(run, "Wait", "Turn", "Begin")
    register(run, 1, 3, 4)
    # Store 3 crashes before it learns of the second life.
    perform(run, "Wait", "Inform 1", "Sync 1", "Crash 3", "Inform 4", "Sync 4")
    perform(run, "Send", "ToStore 4", "Sync 4", "ToSource 4")
    assert run.safe == {(2, 0)}


def test_a_process_does_not_return_through_one_group_of_several() -> None:
    run = world()
    second_life_stable_in_the_small_group(run)
    perform(run, "Turn")
    register(run, 2)
    perform(run, "Restart 3")
    register(run, 3, 2)
    assert run.life == 1
    # Stores 2 and 3 are a quorum of their group, but the other group holds number 1 of the second life.
    assert run.source is not None
    assert run.source.state is SourceState.SUSPENDED


def test_a_process_that_asks_every_group_learns_of_its_successor() -> None:
    run = world()
    second_life_stable_in_the_small_group(run)
    perform(run, "Turn")
    register(run, 2)
    perform(run, "Restart 3")
    register(run, 3, 2, 4)
    assert run.source is None  # The life is over.


def test_a_restarted_store_does_not_count_late_data_for_a_life_that_was_followed() -> None:
    """The proof found this run: no graph has it, because a connection that breaks loses its data there."""
    run = world("three")
    perform(run, "Begin")
    register(run, 1, 2)
    perform(run, "Wait", "Inform 1", "Sync 1", "Inform 2", "Sync 2", "Send", "ToStore 1", "Sync 1", "ToSource 1")
    perform(run, "Turn", "Begin")
    register(run, 2, 3)
    # Store 2 counts for the second life, which is never announced there. Store 1 drops number 1 of the first life.
    perform(run, "Wait", "Inform 3", "Sync 3")
    register(run, 1)
    perform(run, "Inform 1", "Sync 1", "Send", "ToStore 1", "Sync 1", "ToSource 1", "ToStore 3", "Sync 3", "ToSource 3")
    assert run.safe == {(2, 0)}
    # Store 2 grants the ID to the first life again, and restarts before the answer is sent.
    perform(run, "Turn", "Ask 2", "Sync 2", "Crash 2", "Restart 2")
    late = run.shared_stores[1].own()
    late.feed(data(1, 0))
    if late.unsynced:
        perform(run, "Sync 2")
    while run.stores[1].back:
        perform(run, "ToSource 2")
    assert run.safe == {(2, 0)}
