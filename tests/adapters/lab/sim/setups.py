"""Worlds of every kind, a few faults in each: what the drivers of the endpoints are shown with."""

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import AckMode
from stablecast.lab.sim.cluster import Cluster, seeded
from stablecast.lab.sim.network import Connection
from stablecast.lab.sim.process import VirtualProcess
from stablecast.lab.sim.quiescence import trouble
from stablecast.lab.sim.runner import Report, run
from stablecast.lab.sim.schedule import draw
from stablecast.lab.sim.setup import Leaving, WorldSetup

KINDS = {
    "plain": WorldSetup(),
    "named": WorldSetup(named=True),
    "turns": WorldSetup(turns=True, leaving=Leaving.SOURCE),
    "streaming": WorldSetup(rules=GroupRules(()), late_ms=2000),
    "forgetful": WorldSetup(rules=GroupRules(()), forgetful=True, leaving=Leaving.RECEIVER),
    "paced": WorldSetup(paced=True, on_reception=True, write_delay_ms=20, non_blocking=True),
    "limited": WorldSetup(memory=True, notify=True, size_threshold=120, size_limit=1440),
    "proxies": WorldSetup(proxies=True, orphaned=True, late_ms=3999),
    "quorate": WorldSetup(proxies=True, quorate=True, orphaned=True, late_ms=3999),
    "resolved": WorldSetup(resolution=40, leaving=Leaving.RECEIVER),
    "resolved, with proxies": WorldSetup(resolution=40, proxies=True, orphaned=True, late_ms=3999),
    "lossy": WorldSetup(lossy=30, stability_ms=200),
    "large": WorldSetup(large=8),
    "large and lossy": WorldSetup(large=8, lossy=30, arrival=True, stability_ms=200),
    "large and streaming": WorldSetup(rules=GroupRules(()), forgetful=True, large=8, lossy=30),
    "leaving": WorldSetup(leaving=Leaving.RECEIVER, ack_mode=AckMode.EXPLICIT),
    "arrival": WorldSetup(arrival=True, ack_mode=AckMode.EXPLICIT, forwarding=True, write_delay_ms=20),
    "confirmed": WorldSetup(unique=1, retained=(480, 1440), leaving=Leaving.HASTY_SOURCE),
}


def world(kind: str, seed: int = 12) -> Report:
    return run(attrs.evolve(draw(seed), setup=KINDS[kind]))


def lively(setup: WorldSetup, seed: int = 1) -> Cluster:
    """Everybody is up, and ten messages were sent."""
    cluster = Cluster(seeded(seed), setup=setup)
    cluster.world.run(SECOND)
    cluster.want(10)
    cluster.world.run(2 * SECOND)
    assert trouble(cluster) is None
    return cluster


def dead_connection(process: VirtualProcess) -> Connection:
    """It was broken before it was accepted."""
    connection = Connection(process.network, process, process)
    connection.broken = True
    return connection
