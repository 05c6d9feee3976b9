"""The processes of a cluster, and the effects of faults on them."""

from pathlib import Path

import pytest

from stablecast.core.errors import InvariantError
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.sim.cluster import Cluster, seeded
from stablecast.lab.sim.quiescence import trouble
from stablecast.lab.sim.receiver import ReceiverProcess
from stablecast.lab.sim.setup import EVERYBODY, RECEIVERS, SOURCE, STORES, WorldSetup
from stablecast.lab.sim.source import SourceProcess


@pytest.fixture
def cluster() -> Cluster:
    """Everybody is up, and something was sent."""
    cluster = Cluster(seeded(1))
    cluster.world.run(SECOND)
    cluster.want(10)
    cluster.world.run(2 * SECOND)
    assert trouble(cluster) is None
    return cluster


def suffer(cluster: Cluster, act: Kind, who: str, other: str = "", span_ms: int = 100) -> None:
    cluster.suffer(Fault(0, act, who, other=other, span_ms=span_ms))


def test_a_fault_of_programs_is_refused(cluster: Cluster) -> None:
    with pytest.raises(InvariantError):
        suffer(cluster, Kind.POWER, SOURCE)


def test_in_peace_everything_is_delivered_and_stable(cluster: Cluster) -> None:
    assert set(cluster.processes) == set(EVERYBODY)
    assert cluster.checkers.facts.counts["delivered"] == 20
    assert cluster.checkers.facts.counts["stable"] == 10


@pytest.mark.parametrize("who", EVERYBODY)
def test_a_crashed_process_is_started_again(cluster: Cluster, who: str) -> None:
    suffer(cluster, Kind.KILL, who)
    assert not cluster.processes[who].alive
    cluster.world.run(3 * SECOND)
    assert cluster.processes[who].alive


def test_what_a_dead_source_was_to_send_the_next_one_sends(cluster: Cluster) -> None:
    suffer(cluster, Kind.KILL, SOURCE)
    cluster.want(7)
    cluster.world.run(4 * SECOND)
    assert trouble(cluster) is None
    assert cluster.checkers.facts.counts["stable"] == 17


def test_a_full_disk_stops_a_store(cluster: Cluster) -> None:
    suffer(cluster, Kind.FULL, "store0")
    cluster.want(1)
    cluster.world.run(cluster.world.now + 50 * MILLISECOND)
    assert not cluster.processes["store0"].alive
    cluster.world.run(4 * SECOND)
    assert cluster.processes["store0"].alive


def test_a_source_that_was_taken_over_ends_when_it_wakes(cluster: Cluster) -> None:
    """7.6: the stores say that another source holds its RegID."""
    first = cluster.processes[SOURCE]
    suffer(cluster, Kind.TAKEOVER, SOURCE, span_ms=3000)
    assert cluster.processes[SOURCE] is not first
    assert (first.alive, first.frozen) == (True, True)
    cluster.world.run(6 * SECOND)
    assert (first.alive, first.frozen) == (False, False)
    cluster.calm()
    assert cluster.checkers.facts.violations == []


def lively(setup: WorldSetup) -> Cluster:
    """Everybody is up, and something was sent."""
    cluster = Cluster(seeded(1), setup=setup)
    cluster.world.run(SECOND)
    cluster.want(10)
    cluster.world.run(2 * SECOND)
    return cluster


@pytest.mark.rows("P-203", "P-207")
def test_stores_with_a_name_may_move() -> None:
    """Source and receivers follow."""
    cluster = lively(WorldSetup(named=True))
    cluster.suffer(Fault(0, Kind.KILL, "store0", 100, amount=1))
    cluster.world.run(6 * SECOND)
    store, source, receiver = (cluster.processes[name] for name in ("store0", SOURCE, RECEIVERS[0]))
    assert isinstance(source, SourceProcess)
    assert isinstance(receiver, ReceiverProcess)
    moved = f"{store.host}:14568"
    assert moved in cluster.network.listeners
    for client in (source, receiver):
        assert next(held.address for held in client.registrations() if held.counts) == moved
    assert trouble(cluster) is None


@pytest.mark.rows("P-584", "P-586")
def test_a_receiver_that_leaves_is_forgotten_and_comes_back_as_a_new_one() -> None:
    cluster = lively(WorldSetup())
    first = cluster.processes[RECEIVERS[0]]
    suffer(cluster, Kind.LEAVE, RECEIVERS[0], span_ms=500)
    cluster.world.run(cluster.world.now + 400 * MILLISECOND)
    assert isinstance(first, ReceiverProcess)
    assert first.left
    cluster.world.run(6 * SECOND)
    assert not first.alive
    assert trouble(cluster) is None
    assert cluster.checkers.facts.counts["delivered"] == 30


def test_a_receiver_that_is_gone_does_not_leave(cluster: Cluster) -> None:
    suffer(cluster, Kind.KILL, RECEIVERS[0])
    suffer(cluster, Kind.LEAVE, RECEIVERS[0])
    receiver = cluster.processes[RECEIVERS[0]]
    assert isinstance(receiver, ReceiverProcess)
    assert not receiver.leaving


@pytest.mark.rows("P-540", "P-541")
@pytest.mark.parametrize("quorate", [False, True])
def test_an_orphaned_world_has_a_proxy_until_the_source_is_back(quorate: bool) -> None:
    """C-40."""
    cluster = lively(WorldSetup(proxies=True, quorate=quorate, orphaned=True))
    cluster.calm()
    assert trouble(cluster) is not None
    cluster.world.run(cluster.world.now + 3 * SECOND)
    assert trouble(cluster) is None
    assert cluster.checkers.facts.counts["proxies"] >= 1
    cluster.adopt()
    found = trouble(cluster)
    assert found is not None
    cluster.world.run(cluster.world.now + 3 * SECOND)
    assert trouble(cluster) is None


@pytest.mark.parametrize("variant", [False, True])
@pytest.mark.parametrize(
    ("act", "who", "other"),
    [
        (Kind.RESET, SOURCE, "store0"),
        (Kind.CUT, SOURCE, "store0"),
        (Kind.CUT, "store1", ""),
        (Kind.MUTE, "store1", RECEIVERS[0]),
        (Kind.STOP, "store2", ""),
        (Kind.LEAP, RECEIVERS[1], ""),
        (Kind.SLOW, "store0", ""),
        (Kind.WIPE, "store2", ""),
        (Kind.TAKEOVER, RECEIVERS[0], ""),
        (Kind.FALTER, "store1", ""),
    ],
)
def test_no_fault_does_lasting_harm(cluster: Cluster, act: Kind, who: str, other: str, variant: bool) -> None:
    cluster.suffer(Fault(0, act, who, other=other, span_ms=300, amount=int(variant)))
    cluster.want(5)
    cluster.world.run(cluster.world.now + 2 * SECOND)
    cluster.calm()
    cluster.world.run(cluster.world.now + 2 * SECOND)
    assert trouble(cluster) is None
    assert cluster.checkers.facts.violations == []
    assert cluster.checkers.facts.counts["stable"] == 15


def test_nothing_happens_to_those_who_are_not_there_yet() -> None:
    cluster = Cluster(seeded(1))
    suffer(cluster, Kind.KILL, SOURCE)
    assert cluster.processes == {}


def test_the_dead_do_not_die_nor_are_they_taken_over(cluster: Cluster) -> None:
    for act in (Kind.KILL, Kind.KILL, Kind.TAKEOVER):
        suffer(cluster, act, SOURCE)
    cluster.world.run(cluster.world.now + SECOND)
    assert trouble(cluster) is None


def test_a_store_falters_when_it_starts_a_proxy() -> None:
    """T18: it stands and knows nothing of what comes; or it is too late for that."""
    cluster = lively(WorldSetup(proxies=True, orphaned=True))
    for store in STORES:
        cluster.suffer(Fault(0, Kind.FALTER, store, 3000))
    suffer(cluster, Kind.KILL, SOURCE, span_ms=4000)
    cluster.world.run(cluster.world.now + 1800 * MILLISECOND)
    stopped = [process for process in cluster.processes.values() if process.frozen]
    assert 1 <= len(stopped) <= len(STORES)
    cluster.calm()
    assert not any(process.frozen for process in cluster.processes.values())
    cluster.world.run(cluster.world.now + 3 * SECOND)
    assert trouble(cluster) is None


def test_a_life_that_was_replaced_ends_and_another_begins_if_there_is_none(cluster: Cluster) -> None:
    """Formal design, 7.6."""
    first = cluster.source
    assert first is not None
    cluster._on_over(first)
    cluster.world.run(cluster.world.now + SECOND)
    second = cluster.source
    assert second is not None
    assert (first.alive, second.alive) == (False, True)
    cluster._on_over(first)
    cluster.world.run(cluster.world.now + SECOND)
    assert cluster.source is second
    assert cluster.checkers.facts.counts["overtaken"] == 2


def test_who_comes_late_comes_late() -> None:
    cluster = Cluster(seeded(1), setup=WorldSetup(late_ms=1500))
    cluster.world.run(SECOND)
    assert RECEIVERS[1] not in cluster.processes
    cluster.world.run(2 * SECOND)
    assert RECEIVERS[1] in cluster.processes


def test_what_was_wanted_of_nobody_is_sent_by_the_first() -> None:
    cluster = Cluster(seeded(1))
    cluster.want(3)
    cluster.world.run(2 * SECOND)
    assert cluster.checkers.facts.counts["stable"] == 3


@pytest.mark.rows("P-586")
def test_a_client_that_leaves_is_rid_of_its_stores_also_if_the_first_does_not_hear_it_at_first() -> None:
    for seed in (1, 2, 3):
        cluster = Cluster(seeded(seed))
        cluster.world.run(2 * SECOND)
        cluster.leave(SOURCE)
        cluster.world.run(4 * SECOND)
        assert trouble(cluster) is None


@pytest.mark.rows("P-502", "P-503")
def test_stores_have_their_turns() -> None:
    """And what an earlier one had goes with it."""
    cluster = lively(WorldSetup(turns=True))
    source = cluster.source
    assert source is not None
    (turn,) = [held.request.store_index for held in source.registrations() if held.counts]
    suffer(cluster, Kind.KILL, STORES[turn], span_ms=9000)
    cluster.want(5)
    cluster.world.run(cluster.world.now + 2 * SECOND)
    (following,) = [held.request.store_index for held in source.registrations() if held.counts]
    assert following == (turn + 1) % len(STORES)
    assert trouble(cluster) is None
    cluster.calm()
    assert cluster.processes[STORES[turn]].alive
    assert cluster.checkers.facts.violations == []


def test_everybody_leaves_a_trace(tmp_path: Path) -> None:
    cluster = Cluster(seeded(1), tmp_path)
    cluster.world.run(SECOND)
    cluster.want(1)
    cluster.world.run(2 * SECOND)
    cluster.close()
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == {"source", "store", "receiver"}
