"""The source's process: worlds of every kind, and what seldom comes to it."""

import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Overtaken, Reclaimed
from stablecast.core.protocol.messages import Keepalive, Role
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.sim.cluster import Cluster
from stablecast.lab.sim.quiescence import trouble
from stablecast.lab.sim.setup import SOURCE, STORES, Leaving, WorldSetup
from stablecast.lab.sim.source import SourceProcess
from tests.adapters.lab.sim.setups import dead_connection, lively, world
from tests.support.abstract_states import abstract


def source_of(cluster: Cluster) -> SourceProcess:
    source = cluster.source
    assert source is not None
    return source


@pytest.mark.rows("P-129", "P-131", "P-334")
def test_messages_of_many_sizes_are_cut_and_put_together() -> None:
    """With any crash and any loss, the application has whole messages."""
    report = world("large and lossy")
    assert report.violations == ()
    assert report.counts["cut"] > 10
    assert source_of(lively(WorldSetup(large=8, paced=True))).pieces == 8


def test_what_is_for_another_life_is_not_for_this_one() -> None:
    source = source_of(lively(WorldSetup()))
    before = abstract(source.machine)
    source._on_items([Keepalive(Role.STORE, 4711, 50, False, 0)])
    assert abstract(source.machine) == before


def test_nobody_is_greeted_who_has_gone() -> None:
    source = source_of(lively(WorldSetup()))
    before = list(source._subscribers)
    source._admit(dead_connection(source))
    assert source._subscribers == before


def test_what_is_retained_no_more_is_not_sent_again() -> None:
    source = source_of(lively(WorldSetup()))
    before = len(source.connections)
    source._perform(fx.Resend("10.0.0.9:1", 7, 0, 3))
    source.world.run(source.world.now + SECOND)
    assert len(source.connections) == before


@pytest.mark.rows("P-336", "P-337")
def test_a_source_that_has_its_quorum_again_goes_on_where_it_was() -> None:
    """Sending ends with the quorum, and goes on in the same life."""
    cluster = lively(WorldSetup())
    source = source_of(cluster)
    for store in STORES[:2]:
        cluster.suffer(Fault(0, Kind.KILL, store, 1500))
    cluster.world.run(cluster.world.now + SECOND)
    assert not source.machine.can_send
    cluster.want(5)
    cluster.world.run(cluster.world.now + 3 * SECOND)
    assert cluster.source is source
    assert trouble(cluster) is None
    assert cluster.checkers.facts.counts["lives"] == 1


def test_what_the_application_is_told_the_checkers_hear() -> None:
    cluster = lively(WorldSetup())
    source = source_of(cluster)
    source._on_notify(Reclaimed(11, 12, forced=True))
    assert [list(forced) for forced in cluster.checkers.forced.values()] == [[(11, 13)]]
    source._on_notify(Overtaken())
    assert cluster.checkers.facts.counts["overtaken"] == 1


@pytest.mark.rows("P-505")
def test_in_turns_what_the_store_before_had_is_promised_no_more() -> None:
    cluster = lively(WorldSetup(turns=True))
    assert len(cluster.checkers.facts.stable) == 10
    for store in STORES[:2]:
        cluster.suffer(Fault(0, Kind.KILL, store, 9000))
    cluster.suffer(Fault(0, Kind.KILL, SOURCE, 10))
    cluster.world.run(cluster.world.now + 3 * SECOND)
    assert cluster.checkers.facts.stable == {}
    assert cluster.checkers.facts.violations == []


@pytest.mark.rows("P-587")
def test_an_application_may_leave_before_it_began() -> None:
    cluster = lively(WorldSetup(leaving=Leaving.HASTY_SOURCE))
    cluster.suffer(Fault(0, Kind.KILL, SOURCE, 10))
    cluster.world.run(cluster.world.now + 10 * MILLISECOND)
    cluster.leave(SOURCE)
    assert source_of(cluster).left
    cluster.world.run(cluster.world.now + 200 * MILLISECOND)
    assert not source_of(cluster).pool._links
