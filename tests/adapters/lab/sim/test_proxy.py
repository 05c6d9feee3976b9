"""A proxy in a store's process: receivers find it and get what the store has; it ends with its process."""

from random import Random
from typing import Any

import attrs
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.messages import ElectionToken, Keepalive, Role, StoreEntry
from stablecast.lab.sim import endpoint_configs
from stablecast.lab.sim.cluster import Cluster
from stablecast.lab.sim.endpoint_configs import STORE_ADDRESSES
from stablecast.lab.sim.quiescence import trouble
from stablecast.lab.sim.setup import WorldSetup
from stablecast.lab.sim.store import StoreProcess
from stablecast.lab.sim.virtual_time import VirtualWorld
from tests.adapters.lab.sim.setups import dead_connection
from tests.support.abstract_states import abstract


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Everybody runs, and the source, which may be stood in for, sent something; no store does so by itself."""
    usual = endpoint_configs.store_config
    monkeypatch.setattr(
        "stablecast.lab.sim.endpoint_configs.store_config", lambda *args: attrs.evolve(usual(*args), allow_proxy=False)
    )
    cluster = Cluster(VirtualWorld(Random(5)), setup=WorldSetup(proxies=True))
    cluster.world.run(cluster.world.now + SECOND)
    cluster.want(20)
    cluster.world.run(cluster.world.now + 2 * SECOND)
    assert trouble(cluster) is None
    return cluster


def store_of(cluster: Cluster) -> StoreProcess:
    store = cluster.processes["store0"]
    assert isinstance(store, StoreProcess)
    return store


def start(cluster: Cluster) -> StoreProcess:
    """The source's process ends; store0 stands in."""
    source: Any = cluster.source
    entries = tuple(
        StoreEntry(entry.index, entry.group, entry.address, entry.source_reg_id, 1)
        for entry in source.machine.info().stores
    )
    assert {entry.address for entry in entries} == set(STORE_ADDRESSES)
    source.crash()
    cluster.world.run(cluster.world.now + 5 * SECOND)
    store = store_of(cluster)
    effect = fx.StartProxy(7, "sim", 1, ElectionToken(3, 0, source.config.incarnation), entries, (3,))
    store._perform(effect)
    store._perform(effect)
    return store


@pytest.mark.rows("P-540", "P-541")
def test_receivers_register_with_a_proxy(cluster: Cluster) -> None:
    store = start(cluster)
    (proxy,) = store._proxies.values()
    cluster.world.run(cluster.world.now + 5 * SECOND)
    receivers: list[Any] = [cluster.processes[name] for name in ("receiver0", "receiver1")]
    assert all(proxy.config.incarnation in receiver.sessions for receiver in receivers)
    store._perform(fx.StopProxy(7))
    store._perform(fx.StopProxy(7))
    assert store._proxies == {}
    cluster.world.run(cluster.world.now + SECOND)
    assert not any(receiver.sessions for receiver in receivers)
    assert proxy.config.reply_to not in cluster.network.listeners


def test_a_proxy_ends_with_its_process(cluster: Cluster) -> None:
    store = start(cluster)
    (proxy,) = store._proxies.values()
    cluster.world.run(cluster.world.now + SECOND)
    store.crash()
    assert proxy.config.transport not in cluster.network.listeners
    cluster.world.run(cluster.world.now + SECOND)


@pytest.mark.rows("P-549")
def test_a_proxy_minds_its_own_business(cluster: Cluster) -> None:
    """It has no messages; what is for others, and who has gone, is none of its concern."""
    store = start(cluster)
    (proxy,) = store._proxies.values()
    cluster.world.run(cluster.world.now + SECOND)
    before, subscribers = abstract(proxy.machine), list(proxy._subscribers)
    proxy._on_items([Keepalive(Role.STORE, 4711, 50, False, 0)])
    proxy._perform(fx.Release(3))
    proxy._admit(dead_connection(store))
    assert (abstract(proxy.machine), proxy._subscribers) == (before, subscribers)
    assert subscribers
