"""Topic resolution in worlds: what is heard, by whom, and that nobody but it tells receivers of sources."""

from random import Random

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.core.subscription.inputs import Place
from stablecast.lab.sim.cluster import Cluster
from stablecast.lab.sim.endpoint_configs import TOPIC, source_config
from stablecast.lab.sim.network import VirtualNetwork
from stablecast.lab.sim.process import VirtualProcess
from stablecast.lab.sim.quiescence import trouble
from stablecast.lab.sim.resolution import DatagramMedium, ProcessResolution
from stablecast.lab.sim.setup import WorldSetup
from stablecast.lab.sim.virtual_time import VirtualClock, VirtualWorld
from stablecast.transports import codec
from stablecast.transports.resolution.udp.inputs import AddReceiver, Unresolved
from tests.adapters.lab.sim.setups import lively, world

SOURCE = source_config(WorldSetup(), codec.join(7, 1), "10.0.0.1:14391", "10.0.0.1:14371", 9, 40)
FOUND = Place("10.0.0.1:14371", 7, "10.0.0.1:14391")


def pair(lost: int) -> tuple[ProcessResolution, ProcessResolution, list[Place]]:
    """A process that will have a source, one that has a receiver, and what that finds."""
    network = VirtualNetwork(VirtualWorld(Random(1)))
    left, right = (VirtualProcess(network, name, name, VirtualClock(0, 0)) for name in ("left", "right"))
    air, found = DatagramMedium(lost), list[Place]()
    receiver = ProcessResolution(right, air, found.append)
    receiver.feed(AddReceiver(TOPIC))
    return ProcessResolution(left, air), receiver, found


def test_a_receiver_finds_a_source_in_spite_of_loss_and_once_more_when_it_asks_again() -> None:
    source, receiver, found = pair(lost=40)
    source.advertise(SOURCE)
    source.process.world.run(SECOND)
    assert found == [FOUND]
    receiver.feed(Unresolved(TOPIC))
    source.process.world.run(4 * SECOND)
    assert found == [FOUND, FOUND]


def test_who_is_cut_off_finds_nothing_until_it_is_not() -> None:
    source, _, found = pair(lost=0)
    network = source.process.network
    for ends in (("left", "right"), ("right", "left")):
        network.block(*ends)
    source.advertise(SOURCE)
    network.world.run(9 * SECOND)
    assert found == []
    for ends in (("left", "right"), ("right", "left")):
        network.unblock(*ends)
    network.world.run(11 * SECOND)
    assert found == [FOUND]


def test_the_dead_neither_speak_nor_hear() -> None:
    source, receiver, found = pair(lost=0)
    world = source.process.world
    source.advertise(SOURCE)
    world.run(SECOND)
    source.process.crash()
    receiver.feed(Unresolved(TOPIC))
    world.run(4 * SECOND)
    assert found == [FOUND]
    alone, deaf, found = pair(lost=0)
    deaf.process.crash()
    alone.advertise(SOURCE)
    alone.process.world.run(SECOND)
    assert found == []


def test_a_source_that_is_withdrawn_is_not_found() -> None:
    source, _, found = pair(lost=0)
    network = source.process.network
    network.block("left", "right")
    source.advertise(SOURCE)
    source.withdraw(SOURCE)
    network.unblock("left", "right")
    network.world.run(9 * SECOND)
    assert found == []


def test_without_datagrams_receivers_get_nothing() -> None:
    """So it is topic resolution, and nothing else, that finds sources in such a world."""
    cluster = Cluster(VirtualWorld(Random(1)), setup=WorldSetup(resolution=100))
    cluster.world.run(SECOND)
    cluster.want(10)
    cluster.world.run(9 * SECOND)
    rule = trouble(cluster)
    assert rule is not None
    assert rule[0] == "L1"
    assert trouble(lively(WorldSetup(resolution=40))) is None


@pytest.mark.rows("T-004", "T-012")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["resolved", "resolved, with proxies"])
def test_faults_do_no_harm(kind: str, seed: int) -> None:
    """Outages and restarts; a proxy is found like a source."""
    assert not world(kind, seed).violations
