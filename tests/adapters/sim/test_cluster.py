"""Who runs, and what faults do to them."""

import pytest

from stablecast.core.units import MILLISECOND, SECOND
from stablecast.sim.cluster import Cluster, seeded
from stablecast.sim.schedule import EVERYBODY, SOURCE, Act, Fault


@pytest.fixture
def cluster() -> Cluster:
    """Everybody is up, and something was sent."""
    cluster = Cluster(seeded(1))
    cluster.world.run(SECOND)
    cluster.want(10)
    cluster.world.run(2 * SECOND)
    assert cluster.settled()
    return cluster


def suffer(cluster: Cluster, act: Act, who: str, other: str = "", span_ms: int = 100) -> None:
    cluster.suffer(Fault(0, act, who, other, span_ms, False))


def test_in_peace_everything_is_delivered_and_stable(cluster: Cluster) -> None:
    assert set(cluster.processes) == set(EVERYBODY)
    assert cluster.checkers.counts["delivered"] == 20
    assert cluster.checkers.counts["stable"] == 10


@pytest.mark.parametrize("who", EVERYBODY)
def test_a_crashed_process_is_started_again(cluster: Cluster, who: str) -> None:
    suffer(cluster, Act.CRASH, who)
    assert not cluster.processes[who].alive
    cluster.world.run(3 * SECOND)
    assert cluster.processes[who].alive


def test_what_a_dead_source_was_to_send_the_next_one_sends(cluster: Cluster) -> None:
    suffer(cluster, Act.CRASH, SOURCE)
    cluster.want(7)
    cluster.world.run(4 * SECOND)
    assert cluster.settled()
    assert cluster.checkers.counts["stable"] == 17


def test_a_full_disk_stops_a_store(cluster: Cluster) -> None:
    suffer(cluster, Act.FULL, "store0")
    cluster.want(1)
    cluster.world.run(cluster.world.now + 50 * MILLISECOND)
    assert not cluster.processes["store0"].alive
    cluster.world.run(4 * SECOND)
    assert cluster.processes["store0"].alive


def test_who_is_taken_over_lives_on_until_peace(cluster: Cluster) -> None:
    first = cluster.processes[SOURCE]
    suffer(cluster, Act.TAKEOVER, SOURCE, span_ms=3000)
    assert cluster.processes[SOURCE] is not first
    assert (first.alive, first.frozen) == (True, True)
    cluster.world.run(6 * SECOND)
    assert (first.alive, first.frozen) == (True, False)
    cluster.calm()
    assert (first.alive, first.frozen) == (False, False)
    assert cluster.checkers.violations == []
