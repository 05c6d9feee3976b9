"""Crashes and returns of every role, in a world whose time is virtual and whose disks forget what is not synced."""

import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol import inputs
from stablecast.core.protocol.events import (
    QuorumLost,
    RegistrationComplete,
    Stable,
    StoreUnresponsive,
    UnrecoverableLoss,
)
from stablecast.core.receiver import ReceiverState
from tests.support.cluster import Cluster
from tests.support.world import LINK_NS

SOON = 20 * MILLISECOND
"""Long enough for a run to be synced and acknowledged everywhere."""


def settled(cluster: Cluster) -> bool:
    return bool(cluster.source.machine.can_send) and not cluster.source.machine.window.unsettled_messages


def delivered(cluster: Cluster, name: str = "receiver0") -> list[int]:
    """The numbers handed over in all sessions, in order and with repetitions."""
    return [number for session in cluster.applications[name].sessions for number in session.numbers]


@pytest.mark.rows("P-001", "P-002", "P-023", "P-231")
def test_nothing_happens() -> None:
    cluster = Cluster.started(receivers=2)
    for _ in range(5):
        cluster.send(20)
        cluster.world.run(SOON)
    cluster.world.run(SECOND)
    assert settled(cluster)
    assert delivered(cluster, "receiver0") == delivered(cluster, "receiver1") == list(range(100))
    assert len(cluster.stable()) == 100
    cluster.check()


@pytest.mark.rows("P-008", "P-402", "P-417", "P-443")
def test_a_receiver_returns_right_behind_what_it_consumed() -> None:
    """Nothing twice, nothing missing."""
    cluster = Cluster.started()
    cluster.send(10)
    cluster.world.run(SECOND)
    cluster.crash_receiver("receiver0")
    cluster.send(10)
    cluster.world.run(SECOND)
    cluster.start_receiver("receiver0")
    cluster.send(5)
    cluster.world.run(2 * SECOND)
    assert delivered(cluster) == list(range(25))
    assert cluster.applications["receiver0"].sessions[-1].recovered >= 10
    cluster.check()


def test_a_receiver_that_consumed_without_acknowledging_gets_it_again() -> None:
    """At least once: the crash comes before the acknowledgement's interval."""
    cluster = Cluster.started()
    cluster.world.run(SECOND)
    cluster.send(10)
    cluster.world.run(SOON)
    assert delivered(cluster) == list(range(10))
    cluster.crash_receiver("receiver0")
    cluster.start_receiver("receiver0")
    cluster.world.run(2 * SECOND)
    assert delivered(cluster) == [*range(10), *range(10)]


@pytest.mark.rows("P-007", "P-132", "P-413")
def test_a_source_resumes_above_what_the_stores_hold() -> None:
    """The receiver goes on with the new life and is handed nothing twice."""
    cluster = Cluster.started()
    cluster.send(10)
    cluster.world.run(SECOND)
    cluster.crash_source()
    cluster.world.run(SECOND)
    cluster.start_source()
    cluster.world.run_until(lambda: bool(cluster.source.machine.can_send))
    assert cluster.source.machine.resume_point == 10
    cluster.send(5)
    cluster.world.run(2 * SECOND)
    assert delivered(cluster) == list(range(15))
    cluster.check()


@pytest.mark.rows("P-003", "P-004", "P-009", "P-027", "P-222", "P-225")
@pytest.mark.parametrize("wipe", [False, True])
def test_one_store_may_go_and_return(wipe: bool) -> None:
    """No send is refused; the returning store is registered anew, with
    its own version raised.
    """
    cluster = Cluster.started()
    cluster.send(10)
    cluster.world.run(SECOND)
    cluster.crash_store("store1", wipe)
    for _ in range(10):
        cluster.send(5)
        cluster.world.run(SECOND)
    assert cluster.source.seen(QuorumLost) == []
    assert len(cluster.source.seen(StoreUnresponsive)) == 2
    assert settled(cluster)
    cluster.start_store("store1")
    cluster.world.run((32 if wipe else 2) * SECOND)  # One that lost its memory waits for an activity timeout (7.6).
    cluster.send(5)
    cluster.world.run(2 * SECOND)
    assert [entry.version for entry in cluster.source.machine.info().stores] == [1, 2, 1]
    assert cluster.stores["store1"].machine.repositories
    assert delivered(cluster) == list(range(65))
    cluster.check()


@pytest.mark.rows("P-336", "P-337", "P-507", "P-518")
def test_without_a_quorum_the_source_waits_and_then_goes_on() -> None:
    cluster = Cluster.started()
    cluster.send(10)
    cluster.world.run(SECOND)
    cluster.crash_store("store0")
    cluster.crash_store("store2")
    cluster.world.run(SECOND)
    assert not cluster.source.machine.can_send
    assert len(cluster.source.seen(QuorumLost)) == 1
    cluster.start_store("store2")
    cluster.world.run_until(lambda: bool(cluster.source.machine.can_send))
    cluster.send(10)
    cluster.world.run(2 * SECOND)
    assert settled(cluster)
    assert delivered(cluster) == list(range(20))
    cluster.check()


@pytest.mark.rows("P-005")
def test_everybody_crashes_at_once_and_returns() -> None:
    """Messages of the last instant were not stable and may be gone."""
    cluster = Cluster.started(receivers=2)
    cluster.send(10)
    cluster.world.run(SECOND)
    cluster.send(10)
    cluster.crash_source()
    for name in cluster.stores:
        cluster.crash_store(name)
    for name in cluster.applications:
        cluster.crash_receiver(name)
    cluster.world.run(SECOND)
    cluster.heal()
    cluster.world.run_until(lambda: bool(cluster.source.machine.can_send))
    cluster.send(10)
    cluster.world.run(2 * SECOND)
    assert cluster.source.machine.resume_point == 10
    assert delivered(cluster) == list(range(20))
    cluster.check()


@pytest.mark.rows("P-217")
def test_a_store_that_comes_late_is_taken_in() -> None:
    """Registration completes with a quorum after the first interval; the third holds what is sent later."""
    cluster = Cluster()
    for name in ("store0", "store1"):
        cluster.start_store(name)
    cluster.start_source()
    cluster.start_receiver("receiver0")
    cluster.world.run_until(lambda: bool(cluster.source.machine.can_send))
    assert cluster.world.now >= cluster.source.machine.config.times.interval_ns
    assert cluster.source.seen(RegistrationComplete)[0].number == 0
    cluster.send(10)
    cluster.world.run(SECOND)
    cluster.start_store("store2")
    cluster.world.run(2 * SECOND)
    assert len(cluster.source.machine.info().stores) == 3
    cluster.crash_store("store0")
    cluster.send(10)
    cluster.world.run(2 * SECOND)
    assert settled(cluster)
    assert delivered(cluster) == list(range(20))
    cluster.check()


@pytest.mark.rows("P-317")
def test_the_source_sends_again_messages_that_only_a_minority_held() -> None:
    """The source retains what is not stable, and the returning stores fetch it."""
    cluster = Cluster.started()
    cluster.crash_store("store0")
    cluster.crash_store("store2")
    cluster.send(10)
    cluster.world.run(SOON)
    assert cluster.stable() == set()
    cluster.start_store("store0")
    cluster.world.run(2 * SECOND)
    assert len(cluster.stable()) == 10
    assert {event.store_index for event in cluster.source.seen(Stable)} == {0, 1}
    cluster.check()


@pytest.mark.rows("P-430")
def test_stable_messages_outwait_the_stores_that_hold_them() -> None:
    """Two stores hold ten stable messages and are away for a minute; the third has none. Then one of the two is
    enough, and nobody called them lost.
    """
    cluster = Cluster.started()
    cluster.crash_receiver("receiver0")
    cluster.crash_store("store0")
    cluster.world.run(SECOND)
    cluster.send(10)
    cluster.world.run(SECOND)
    assert len(cluster.stable()) == 10
    cluster.start_store("store0")
    cluster.world.run(SECOND)
    cluster.start_receiver("receiver0")
    [*_, session] = cluster.applications["receiver0"].sessions
    while session.machine.state is not ReceiverState.ACTIVE:
        cluster.world.run(LINK_NS // 2)
    cluster.crash_store("store1")
    cluster.crash_store("store2")
    cluster.world.run(60 * SECOND)
    cluster.start_store("store1")
    cluster.world.run(5 * SECOND)
    assert session.seen(UnrecoverableLoss) == []
    assert delivered(cluster) == list(range(10))
    cluster.check()


def test_a_dead_tail_is_never_taken_for_what_is_stable() -> None:
    """Life 100 leaves 5 to 9 at one store only; life 101 uses these numbers again while that store is away, and they
    become stable; with life 102 all stores are back. The receiver must get 5 to 9 of life 101, whichever store it asks.
    """
    cluster = Cluster.started()
    cluster.send(5)
    cluster.world.run(SECOND)
    cluster.crash_receiver("receiver0")
    cluster.crash_store("store0")
    cluster.crash_store("store2")
    cluster.send(5)
    cluster.world.run(SOON)
    cluster.crash_source()
    cluster.crash_store("store1")
    cluster.start_store("store0")
    cluster.start_store("store2")
    cluster.start_source()
    cluster.world.run(2 * SECOND)
    assert cluster.source.machine.resume_point == 5
    cluster.send(5)
    cluster.world.run(SECOND)
    assert (101, 9) in cluster.stable()
    cluster.crash_source()
    cluster.start_store("store1")
    cluster.start_source()
    cluster.world.run(2 * SECOND)
    cluster.start_receiver("receiver0")
    cluster.world.run(2 * SECOND)
    assert cluster.applications["receiver0"].sessions[-1].delivered == [(101, number) for number in range(5, 10)]
    cluster.check()


def test_a_frozen_source_does_no_harm() -> None:
    """Its lease ends while it sleeps; another life takes over; what it sends on waking makes nothing stable."""
    cluster = Cluster.started()
    cluster.send(10)
    cluster.world.run(SECOND)
    sleeper = cluster.source
    sleeper.frozen = True
    del cluster.world.nodes[sleeper.address]
    cluster.start_source(reply_to="elsewhere")
    cluster.world.run(35 * SECOND)
    assert cluster.source.machine.can_send
    cluster.send(5)
    cluster.world.run(SECOND)
    sleeper.thaw()
    assert not sleeper.machine.can_send
    cluster.world.run(SECOND)
    assert (101, 14) in cluster.stable()
    cluster.check()


@pytest.mark.rows("P-432", "P-434")
@pytest.mark.no_cover
def test_a_slow_application_is_not_flooded_by_its_history() -> None:
    """Recovered messages wait for the application; so no more is asked for than it may hold, until it has
    caught up.
    """
    cluster = Cluster.started(receivers=0)
    for _ in range(8):
        cluster.source.send(1000)
        cluster.world.run(20 * MILLISECOND)
    cluster.start_receiver("slow")
    node = cluster.applications["slow"].sessions[-1]
    node.consuming = False
    cluster.world.run(10 * SECOND)
    held = len(node.delivered)
    assert node.machine.config.proximity < held <= node.machine.config.proximity + node.machine.config.window
    node.consuming = True
    node.feed(inputs.Consumed(0, held - 1))
    cluster.world.run(10 * SECOND)
    assert node.numbers == list(range(8000))
