"""The receiver's process: worlds of every kind, and what seldom comes to it."""

import attrs
import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Lost
from stablecast.core.protocol.messages import Keepalive, Role, SourceInfo
from stablecast.core.subscription.inputs import Place
from stablecast.core.subscription.subscription import DRAIN_NS
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.sim.cluster import Cluster
from stablecast.lab.sim.quiescence import trouble
from stablecast.lab.sim.receiver import ReceiverProcess
from stablecast.lab.sim.setup import RECEIVERS, SOURCE, WorldSetup
from stablecast.transports import codec
from stablecast.transports.codec.fragments import FragmentReassembly
from stablecast.transports.codec.lbttcp import Run
from tests.adapters.lab.sim.setups import lively, world
from tests.support.abstract_states import abstract


def receiver_of(cluster: Cluster) -> ReceiverProcess:
    receiver = cluster.processes[RECEIVERS[0]]
    assert isinstance(receiver, ReceiverProcess)
    return receiver


def test_what_nobody_here_listens_to_is_dropped() -> None:
    """Runs, losses, retransmissions and announcements of a life without a session, or of another topic."""
    cluster = lively(WorldSetup())
    receiver = receiver_of(cluster)
    (session,) = receiver.sessions.values()
    where = Place("10.0.0.1:1", 9, "10.0.0.1:2")
    run = Run(1, 0, 1, 12, b"")
    foreign = SourceInfo(codec.join(9, 1), "other", 1, 0, 0, "", (3,), False, ())
    receiver.recipient._on_stream(where, 9, [run, foreign, Keepalive(Role.SOURCE, 7, 50, False, 0)])
    receiver.recipient._on_lost(Lost(codec.join(9, 1), run.first, run.count))
    receiver._on_items([codec.Recovered(codec.join(9, 1), 1, 3, b"")])
    assert list(receiver.sessions.values()) == [session]
    assert cluster.checkers.facts.violations == []


@pytest.mark.rows("P-008", "P-410")
def test_an_interrupted_stream_is_recovered_and_two_lives_follow_each_other() -> None:
    """The stores have the messages that the connection lost; a new life waits for the old one's messages."""
    cluster = lively(WorldSetup())
    receiver = receiver_of(cluster)
    for who in (RECEIVERS[0], SOURCE):
        cluster.suffer(Fault(0, Kind.CUT, who, 400, amount=1))
        for _ in range(2):
            cluster.world.run(cluster.world.now + SECOND // 4)
            cluster.want(5)
        cluster.world.run(cluster.world.now + 2 * SECOND)
    cluster.suffer(Fault(0, Kind.KILL, SOURCE, 10, amount=1))
    cluster.world.run(cluster.world.now + 2 * SECOND)
    assert trouble(cluster) is None
    assert len(receiver.sessions) == 1
    assert cluster.checkers.facts.counts["delivered"] == 60


def test_who_may_choose_a_reg_id_chooses_none() -> None:
    cluster = lively(WorldSetup())
    (session,) = receiver_of(cluster).sessions.values()
    before = abstract(session.machine)
    session._perform(fx.AskRegId(0, "", 50))
    assert abstract(session.machine) == before


def test_a_new_life_waits_for_the_application_but_not_for_ever() -> None:
    """T5."""
    cluster = lively(WorldSetup())
    receiver = receiver_of(cluster)
    (session,) = receiver.sessions.values()
    session.waiting += 1  # It does not come to an end with one of them.
    source = cluster.source
    assert source is not None
    where = Place("10.0.0.1:9999", 4711, source.config.reply_to)
    receiver.recipient._gone(session.transport)
    receiver.found(where)
    receiver.found(where)
    cluster.world.run(cluster.world.now + DRAIN_NS - MILLISECOND * 20)
    assert "10.0.0.1:9999" in receiver.recipient.subscription.plans
    cluster.world.run(cluster.world.now + MILLISECOND * 40)
    assert "10.0.0.1:9999" not in receiver.recipient.subscription.plans
    assert session in receiver.recipient.every_session


@pytest.mark.rows("P-588")
def test_who_leaves_leaves_new_lives_as_well() -> None:
    cluster = lively(WorldSetup())
    receiver = receiver_of(cluster)
    receiver.leaving = True
    receiver.found(Place("10.0.0.1:9999", 4711, ""))
    assert receiver.recipient.subscription.plans == {}
    source = cluster.source
    assert source is not None
    info = attrs.evolve(source.machine.info(), incarnation=codec.join(4711, 1))
    receiver.recipient._on_stream(Place("", 4711, source.config.reply_to), 4711, [info])
    assert receiver.sessions[info.incarnation].left


def late_proxy(cluster: Cluster) -> Place:
    """Restart the source; when every process knows its new life, a receiver meets a proxy of the first one."""
    receiver = receiver_of(cluster)
    cluster.suffer(Fault(0, Kind.KILL, SOURCE, 10, amount=1))
    cluster.world.run(cluster.world.now + 2 * SECOND)
    (session,) = receiver.sessions.values()
    newest = session.machine.info
    assert newest is not None
    where = Place("10.0.0.4:14411", 4711, "10.0.0.4:14412")
    cluster.network.listeners[where.transport] = (cluster.processes["store0"], lambda _: None)
    receiver.found(where)
    life = codec.join(4711, 1)
    proxy = attrs.evolve(newest, incarnation=life, term=newest.term - 1, lives=(newest.lives[0], (life, newest.low)))
    receiver.recipient._on_stream(where, 4711, [proxy])
    return where


def test_a_proxy_that_is_met_late_does_not_end_deliveries() -> None:
    """L1."""
    cluster = lively(WorldSetup())
    where = late_proxy(cluster)
    receiver = receiver_of(cluster)
    assert list(receiver.recipient.subscription.passed_over.announcements) == [codec.join(4711, 1)]
    for there in (True, False):
        assert (where.transport in receiver.recipient._joiners) is there
        cluster.want(5)
        cluster.world.run(cluster.world.now + 2 * SECOND)
        assert trouble(cluster) is None
        receiver.recipient._gone(where.transport)
    assert receiver.recipient.subscription.passed_over.places() == {}


def test_a_proxy_that_was_passed_over_is_followed_when_the_source_is_gone() -> None:
    """Messages that wait for the application come first."""
    cluster = lively(WorldSetup())
    where = late_proxy(cluster)
    receiver = receiver_of(cluster)
    (session,) = receiver.sessions.values()
    session.waiting += 1
    info = receiver.recipient.subscription.passed_over.announcements[codec.join(4711, 1)][0]
    receiver.recipient._gone(session.transport)
    receiver.recipient._on_stream(where, 4711, [info])
    assert receiver.sessions == {}
    cluster.world.run(cluster.world.now + DRAIN_NS - MILLISECOND * 20)
    assert receiver.sessions == {}
    cluster.world.run(cluster.world.now + MILLISECOND * 40)
    assert info.incarnation in receiver.sessions
    assert receiver.recipient.subscription.passed_over.places() == {}


def test_a_proxy_that_is_met_late_and_ends_deliveries_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: whoever is met last is followed. The messages are stable, and nobody excuses that."""
    monkeypatch.setattr("stablecast.core.subscription.subscription.outranks", lambda *_: False)
    cluster = lively(WorldSetup())
    late_proxy(cluster)
    cluster.want(5)
    cluster.world.run(cluster.world.now + 15 * SECOND)
    found = trouble(cluster)
    assert found is not None
    assert found[0] == "L1"
    assert "never had" in found[1]


@pytest.mark.parametrize("muted", [False, True])
def test_a_life_is_followed_again_after_one_that_was_met_later(monkeypatch: pytest.MonkeyPatch, muted: bool) -> None:
    """Two lives share no past, and the stores refuse the one that was met last. The planted fault mutes the other."""
    monkeypatch.setattr("stablecast.core.subscription.subscription.outranks", lambda *_: False)
    if muted:
        monkeypatch.setattr("stablecast.client.session.BEFORE_DELIVERY", ())
    cluster = lively(WorldSetup())
    where = late_proxy(cluster)
    receiver_of(cluster).recipient._gone(where.transport)
    cluster.want(5)
    cluster.world.run(cluster.world.now + 15 * SECOND)
    assert (trouble(cluster) is None) is not muted


def test_pieces_that_are_given_up_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """D1: where nobody can send them again; a reassembly that keeps it to itself is found."""
    report = world("large and streaming")
    assert report.violations == ()
    assert report.counts["pieces given up"] > 0
    monkeypatch.setattr(FragmentReassembly, "_pass", lambda self, first, stop: self.passed.add(first, stop))
    assert {violation.rule for violation in world("large and streaming").violations} == {"D1"}
