"""The store's process: worlds of every kind, and what seldom comes to it."""

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Gone
from stablecast.core.protocol.messages import Keepalive, Role, StableAck
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.sim.cluster import Cluster, seeded
from stablecast.lab.sim.quiescence import trouble
from stablecast.lab.sim.setup import SOURCE, STORES, WorldSetup
from stablecast.lab.sim.store import StoreProcess
from tests.adapters.lab.sim.setups import KINDS, lively, world
from tests.support.abstract_states import abstract


@pytest.mark.rows("P-023", "P-101", "P-103", "P-302", "P-306", "P-336", "P-402", "P-410", "P-438", "P-443", "P-584")
@pytest.mark.parametrize("kind", KINDS)
def test_all_get_through_worlds_of_every_kind(kind: str) -> None:
    report = world(kind)
    assert report.violations == ()
    assert report.counts["delivered"] > 0
    assert report.counts["stable"] > 0 or not KINDS[kind].rules.sizes


def store_of(cluster: Cluster, name: str = STORES[0]) -> StoreProcess:
    store = cluster.processes[name]
    assert isinstance(store, StoreProcess)
    return store


@pytest.mark.parametrize("setup", [WorldSetup(), WorldSetup(memory=True)], ids=["disk", "memory"])
def test_a_store_that_was_killed_comes_back(setup: WorldSetup) -> None:
    """T15: with what its disk kept."""
    cluster = lively(setup)
    for act in (Kind.KILL, Kind.FULL):
        cluster.suffer(Fault(0, act, STORES[0], 500))
        cluster.want(5)
        cluster.world.run(cluster.world.now + 2 * SECOND)
    assert trouble(cluster) is None
    assert cluster.checkers.facts.violations == []
    assert cluster.checkers.facts.counts["disks failed"] == 1


@pytest.mark.parametrize(("variant", "damaged"), [(True, 2), (False, 1)])
def test_what_it_cannot_read_it_holds_no_more(variant: bool, damaged: int) -> None:
    """It answers nobody with it, and says to nobody that it has it; the source, that let go of it, cannot help."""
    cluster = lively(WorldSetup(refill=False))
    cluster.want(5)
    cluster.world.run(cluster.world.now + SECOND)
    for fault in (Fault(0, Kind.KILL, STORES[0], 1), Fault(0, Kind.ROT, STORES[0], 0, amount=int(variant))):
        cluster.suffer(fault)
        cluster.world.run(cluster.world.now + SECOND)
    store, facts, disk = store_of(cluster), cluster.checkers.facts, cluster.disks[STORES[0]]
    ((stream, repository),) = store.machine.repositories.items()
    assert list(repository.held) == [(0, 15)]
    store._perform(fx.SendStored("10.0.0.9:1", repository.incarnation, stream, 0, 14))
    cluster.world.run(cluster.world.now + SECOND)
    assert facts.counts["damage found"] == facts.counts["damaged"] == damaged
    assert len(disk.whole()) == 2 - damaged
    assert [number for low, high in repository.held for number in range(low, high)] == sorted(disk.durable[stream])
    assert trouble(cluster) is None
    assert facts.violations == []


def test_nothing_goes_bad_on_an_empty_disk() -> None:
    cluster = Cluster(seeded(1))
    cluster.world.run(SECOND)
    cluster.suffer(Fault(0, Kind.ROT, STORES[0], 0))
    assert cluster.checkers.facts.counts["damaged"] == 0


@pytest.mark.rows("P-026")
def test_a_stream_that_broke_goes_on_behind_what_it_lost() -> None:
    """It is stable without this store."""
    cluster = lively(WorldSetup())
    cluster.suffer(Fault(0, Kind.CUT, SOURCE, other=STORES[0], span_ms=400, amount=1))
    for _ in range(2):
        cluster.world.run(cluster.world.now + SECOND // 4)
        cluster.want(5)
    cluster.world.run(cluster.world.now + 2 * SECOND)
    assert trouble(cluster) is None
    (numbers,) = cluster.disks[STORES[0]].durable.values()
    assert {*range(10), *range(15, 20)} <= set(numbers)


def test_what_others_say_on_a_stream_is_heard_as_well() -> None:
    store = store_of(lively(WorldSetup()))
    before = abstract(store.machine)
    store._on_stream(1, [Keepalive(Role.STORE, 4711, 50, False, 0)])
    assert abstract(store.machine) == before


def test_a_dead_store_does_nothing_more() -> None:
    store = store_of(lively(WorldSetup()))
    store.crash()
    store._perform(fx.Send("10.0.0.9:1", Keepalive(Role.STORE, 7, 50, False, 0)))
    assert store.connections == []


def test_what_is_not_kept_is_not_sent_nor_looked_for() -> None:
    store = store_of(lively(WorldSetup()))
    before = len(store.connections)
    store._perform(fx.SendStored("10.0.0.9:1", 7, 4711, 0, 3))
    store._check_ack(StableAck(0, 4711, 0, 3))
    store.world.run(store.world.now + SECOND)
    assert len(store.connections) == before


@pytest.mark.rows("P-549")
def test_a_proxy_hears_of_broken_connections_too() -> None:
    cluster = lively(WorldSetup(proxies=True))
    cluster.suffer(Fault(0, Kind.KILL, SOURCE, 9000))
    cluster.world.run(cluster.world.now + 3 * SECOND)
    (serving,) = [store_of(cluster, name) for name in STORES if store_of(cluster, name).proxies]
    (proxy,) = serving._proxies.values()
    other = next(held for held in proxy.machine.enrollment.registrations.values() if held.counts)
    serving.broken(Gone(other.address))
    assert not other.present


def test_what_goes_wrong_with_a_proxy_goes_wrong_once() -> None:
    store = store_of(lively(WorldSetup()))
    happened = list[bool]()
    store.falter = lambda: happened.append(True)
    store._falter()
    store._falter()
    assert happened == [True]
