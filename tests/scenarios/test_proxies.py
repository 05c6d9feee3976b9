"""A source fails for good, or for a while: its stores agree on one of them, which stands in for it (P-540..P-555)."""

from typing import Any

import attrs
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.events import ProxyEnded, ProxyStarted
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.settings import ReceiverConfig, RepositoryConfig, StoreConfig
from tests.support.cluster import Cluster
from tests.support.world import ReceiverNode, SourceNode, StoreNode

KEPT = RepositoryConfig(receiver_lifetime_ns=3600 * SECOND)
LONG = 60 * SECOND
"""An activity timeout and the longest wait of an election, twice."""


class Proxied(Cluster):
    """Three stores that run proxies, and a source that wants one."""

    @classmethod
    def ready(cls, kept: RepositoryConfig = KEPT, **changes: Any) -> "Proxied":
        cluster = cls()
        for index in range(cluster.size):
            cluster.run_store(f"store{index}", kept)
        cluster.start_source(wants_proxy=True, **changes)
        cluster.world.run(SECOND)
        cluster.send(10)
        cluster.world.run(SECOND)
        return cluster

    def run_store(self, name: str, kept: RepositoryConfig = KEPT) -> None:
        config = StoreConfig(name, seed=int(name[-1]), repository=kept, allow_proxy=True)
        self.stores[name] = StoreNode.create(self.world, config, self.disks.get(name))

    def proxies(self) -> dict[str, SourceNode]:
        up = {name: store for name, store in self.stores.items() if self.up(store)}
        return {name: proxy for name, store in up.items() for proxy in store.proxies.values()}


def newcomer(cluster: Cluster, source: SourceNode, **changes: Any) -> ReceiverNode:
    """A receiver that never heard of the source before, and finds this one."""
    life = source.machine.config
    config = ReceiverConfig("topic", life.incarnation, "newcomer", life.reply_to, session_id=77)
    return ReceiverNode.create(cluster.world, attrs.evolve(config, **changes), source)


@pytest.mark.rows("P-540", "P-546", "P-547", "P-549", "P-551")
def test_new_receivers_recover_from_the_stores_of_a_dead_source() -> None:
    cluster = Proxied.ready()
    cluster.crash_source()
    cluster.world.run(LONG)
    [proxy] = cluster.proxies().values()
    assert not proxy.machine.can_send
    receiver = newcomer(cluster, proxy)
    cluster.world.run(5 * SECOND)
    assert receiver.numbers == list(range(10))


@pytest.mark.rows("P-541", "P-546")
def test_the_source_returns_and_its_proxy_ends() -> None:
    """The new life goes on behind the old one, and receivers miss nothing."""
    cluster = Proxied.ready()
    cluster.crash_source()
    cluster.world.run(LONG)
    assert len(cluster.proxies()) == 1
    cluster.start_source(wants_proxy=True)
    cluster.world.run(5 * SECOND)
    assert cluster.proxies() == {}
    assert cluster.source.machine.resume_point == 10
    cluster.send(5)
    receiver = newcomer(cluster, cluster.source)
    cluster.world.run(5 * SECOND)
    assert receiver.numbers == list(range(15))
    assert len(cluster.stable()) == 15


@pytest.mark.rows("P-544", "P-548")
def test_the_store_of_the_proxy_fails_and_another_stands() -> None:
    cluster = Proxied.ready()
    cluster.crash_source()
    cluster.world.run(LONG)
    [name] = cluster.proxies()
    cluster.crash_store(name)
    cluster.world.run(2 * LONG)
    [other] = cluster.proxies()
    assert other != name
    cluster.run_store(name)
    cluster.world.run(2 * LONG)
    assert len(cluster.proxies()) == 1
    receiver = newcomer(cluster, next(iter(cluster.proxies().values())))
    cluster.world.run(5 * SECOND)
    assert receiver.numbers == list(range(10))


@pytest.mark.rows("P-533")
def test_the_state_lifetime_of_the_source_ends_its_proxy() -> None:
    """T7."""
    cluster = Proxied.ready(attrs.evolve(KEPT, source_lifetime_ns=2 * LONG))
    cluster.crash_source()
    cluster.world.run(LONG)
    assert len(cluster.proxies()) == 1
    cluster.world.run(LONG + SECOND)
    assert cluster.proxies() == {}
    assert all(store.machine.repositories == {} for store in cluster.stores.values())


@pytest.mark.rows("P-535", "P-550")
@pytest.mark.parametrize("wants_proxy", [False, True])
def test_without_a_wish_nobody_stands_in_and_the_state_goes(wants_proxy: bool) -> None:
    """T7."""
    cluster = Proxied.ready(attrs.evolve(KEPT, source_lifetime_ns=0))
    cluster.crash_source()
    cluster.start_source(wants_proxy=wants_proxy, session_id=5)
    cluster.world.run(SECOND)
    cluster.crash_source()
    cluster.world.run(LONG)
    told = [event for store in cluster.stores.values() for event in store.seen(ProxyStarted)]
    ended = [event for store in cluster.stores.values() for event in store.seen(ProxyEnded)]
    assert len(told) - len(ended) == 1 + wants_proxy
    assert [len(store.machine.repositories) for store in cluster.stores.values()] == [1 + wants_proxy] * 3


@pytest.mark.rows("P-569", "P-951")
def test_a_proxy_keeps_the_receivers_pace() -> None:
    """It registers as its source did, and lets receivers go on."""
    cluster = Proxied.ready(attrs.evolve(KEPT, allow_rpp=True), pace=Pace.RECEIVERS, flight_bytes=10_000)
    receiver = newcomer(cluster, cluster.source, pace=Pace.RECEIVERS)
    cluster.send(5)
    cluster.world.run(SECOND)
    cluster.world.crash(receiver)
    cluster.send(5)
    cluster.world.run(SECOND)
    cluster.crash_source()
    cluster.world.run(LONG)
    [proxy] = cluster.proxies().values()
    returned = newcomer(cluster, proxy, pace=Pace.RECEIVERS)
    cluster.world.run(5 * SECOND)
    assert returned.numbers == list(range(15, 20))
