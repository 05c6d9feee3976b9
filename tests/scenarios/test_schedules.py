"""Random schedules: sends, crashes and returns of anybody at any moment, then everybody returns.

The seed names the schedule. A failing seed is a defect: run the test with it alone and read what the schedule did.
"""

from random import Random

import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from tests.support.cluster import Cluster
from tests.support.world import LINK_NS

SEEDS = 60
STEPS = 30
PAUSES = (0, LINK_NS // 2, LINK_NS, MILLISECOND, 10 * MILLISECOND, 100 * MILLISECOND, 600 * MILLISECOND, 2 * SECOND)
"""From less than a message's way to longer than every interval of the configuration."""


def step(cluster: Cluster, random: Random) -> None:
    """Somebody sends, crashes or returns."""
    match random.choice(["send", "send", "send", "store", "store", "source", "receiver", "brown-out"]):
        case "send":
            cluster.send(random.randint(1, 20))
        case "store":
            name = random.choice(sorted(cluster.stores))
            if cluster.up(cluster.stores[name]):
                cluster.crash_store(name)
            else:
                cluster.start_store(name)
        case "source":
            if cluster.up(cluster.source):
                cluster.crash_source()
            else:
                cluster.start_source()
        case "receiver":
            name = random.choice(sorted(cluster.applications))
            if cluster.applications[name].wanted:
                cluster.crash_receiver(name)
            else:
                cluster.start_receiver(name)
        case _:
            leave_a_tail(cluster, random)


def leave_a_tail(cluster: Cluster, random: Random) -> None:
    """All stores but one crash, the source sends on for a moment and crashes: one store is left with a tail."""
    up = [name for name in sorted(cluster.stores) if cluster.up(cluster.stores[name])]
    random.shuffle(up)
    for name in up[1:]:
        cluster.crash_store(name)
    cluster.send(random.randint(1, 20))
    cluster.world.run(random.choice(PAUSES[:5]))
    if cluster.up(cluster.source):
        cluster.crash_source()
    for name in up[:1]:
        cluster.crash_store(name)
    for name in up[1:]:
        cluster.start_store(name)
    cluster.start_source()


@pytest.mark.rows("P-004", "P-005", "P-023")
@pytest.mark.no_cover
@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_stable_is_lost(seed: int) -> None:
    """With any crash at any time."""
    random = Random(seed)
    cluster = Cluster.started(receivers=2, size=random.choice([1, 3, 3, 3, 5]))
    for _ in range(STEPS):
        step(cluster, random)
        cluster.world.run(random.choice(PAUSES))
    cluster.heal()
    cluster.world.run(3 * SECOND)
    assert cluster.source.machine.can_send
    cluster.send(5)
    cluster.world.run(30 * SECOND)
    assert cluster.source.machine.window.unsettled_messages == 0
    cluster.check()
