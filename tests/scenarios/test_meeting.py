"""Meetings of sources, stores and receivers: discovery, recovery of missed messages, and the events of applications."""

import attrs
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.events import (
    Confirmed,
    QuorumLost,
    RegistrationComplete,
    RegistrationError,
    RegistrationSuccess,
    StoreUnresponsive,
)
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    Register,
    RetransmitRequest,
    Role,
    SourceInfoRequest,
    StableAck,
)
from stablecast.core.protocol.settings import ReceiverConfig
from tests.support.cluster import Cluster
from tests.support.world import Node, ReceiverNode


def said(node: Node, kind: type) -> list[str]:
    """To whom a node sent messages of one kind."""
    return [to for to, message in node.sent if isinstance(message, kind)]


def session(cluster: Cluster, name: str = "receiver0") -> ReceiverNode:
    return cluster.applications[name].sessions[-1]


def without_quorum() -> Cluster:
    """One of three stores, the source, and a receiver."""
    cluster = Cluster()
    cluster.start_store("store0")
    cluster.start_source()
    cluster.start_receiver("receiver0")
    cluster.world.run(3 * SECOND)
    return cluster


@pytest.mark.rows("P-214", "P-218", "P-226", "P-227")
def test_the_source_registers_before_it_speaks_and_the_receivers_after() -> None:
    """Nobody can send, and no receiver registers, before the source is registered."""
    cluster = without_quorum()
    receiver = session(cluster)
    assert set(said(cluster.source, Register)) >= {"store0"}
    assert not cluster.source.machine.can_send
    assert said(receiver, Register) == []
    assert set(said(receiver, SourceInfoRequest)) == {"source"}
    cluster.start_store("store1")
    cluster.start_store("store2")
    cluster.world.run(3 * SECOND)
    assert cluster.source.machine.can_send
    assert sorted(set(said(receiver, Register))) == ["store0", "store1", "store2"]


@pytest.mark.rows("P-229", "P-232", "P-233")
def test_a_receiver_learns_the_stores_from_an_idle_source() -> None:
    """It is told of none, asks the source, and finds them; without the source it finds nothing."""
    assert not [field for field in attrs.fields(ReceiverConfig) if field.name == "stores"]
    cluster = Cluster.started(receivers=0)
    cluster.world.run(60 * SECOND)
    cluster.start_receiver("receiver0")
    cluster.world.run(SECOND)
    assert len(session(cluster).seen(RegistrationComplete)) == 1
    cluster.crash_source()
    orphan = ReceiverNode(cluster.world, "orphan", session(cluster).machine.create(session(cluster).machine.config))
    orphan.join()
    cluster.world.run(10 * SECOND)
    assert said(orphan, Register) == []


@pytest.mark.rows("P-019", "P-230", "P-252")
def test_a_receiver_that_may_not_register_gets_nothing() -> None:
    """Neither as a persistent nor as a streaming one; it is told why, and tries on (U14)."""
    cluster = Cluster.started()
    cluster.world.run(SECOND)
    taken = {event.store_index: event.reg_id for event in session(cluster).seen(RegistrationSuccess)}
    config = attrs.evolve(session(cluster).machine.config, reply_to="second", session_id=0)
    second = ReceiverNode.create(cluster.world, config, cluster.source, reg_ids=taken)
    cluster.send(10)
    cluster.world.run(5 * SECOND)
    assert second.delivered == []
    errors = second.seen(RegistrationError)
    refusal = "Store store{} refused RegID {}: a receiver holds it. Use another RegID, or another session id."
    assert {error.text for error in errors} == {refusal.format(*one) for one in taken.items()}
    assert len(errors) > 3 * len(taken)


@pytest.mark.rows("P-234", "P-247", "P-250")
def test_a_receiver_has_a_reg_id_for_each_source_and_store() -> None:
    cluster = Cluster.started(receivers=0, size=2)
    for number in (1, 2):
        cluster.start_source(reply_to=f"source{number}", session_id=10 + number)
    cluster.world.run(2 * SECOND)
    receivers = []
    for number, life in enumerate(cluster.lives):
        config = life.machine.config
        ours = ReceiverConfig("topic", config.incarnation, f"receiver{number}", config.reply_to, session_id=10)
        receivers.append(ReceiverNode.create(cluster.world, ours, life))
    cluster.world.run(2 * SECOND)
    granted = [(event.store, event.reg_id) for one in receivers for event in one.seen(RegistrationSuccess)]
    assert len(set(granted)) == 6
    assert all(reg_id for _, reg_id in granted)


@pytest.mark.rows("P-131", "P-414", "P-652", "P-653", "P-666", "P-667")
def test_numbers_begin_at_0_and_each_store_s_own_is_told() -> None:
    cluster = Cluster.started()
    assert [event.number for event in cluster.source.seen(RegistrationSuccess)] == [-1, -1, -1]
    assert [event.number for event in cluster.source.seen(RegistrationComplete)] == [0]
    cluster.send(10)
    cluster.world.run(SECOND)
    assert session(cluster).numbers == list(range(10))
    assert len(session(cluster).seen(RegistrationSuccess)) == 3
    assert [event.number for event in session(cluster).seen(RegistrationComplete)] == [0]
    cluster.crash_source()
    cluster.start_source()
    cluster.world.run(SECOND)
    assert [event.number for event in cluster.source.seen(RegistrationSuccess)] == [9, 9, 9]
    assert [event.number for event in cluster.source.seen(RegistrationComplete)] == [10]


@pytest.mark.rows("P-303", "P-305", "P-402", "P-403", "P-429", "P-434")
def test_missed_messages_come_from_the_stores_beside_new_ones() -> None:
    """A request goes to one store; all is in order and acknowledged."""
    cluster = Cluster.started()
    cluster.crash_receiver("receiver0")
    for _ in range(5):
        cluster.send(100)
        cluster.world.run(SECOND)
    cluster.start_receiver("receiver0")
    for _ in range(20):
        cluster.send(5)
        cluster.world.run(SECOND // 100)
    cluster.world.run(2 * SECOND)
    receiver = session(cluster)
    assert receiver.numbers == list(range(600))
    requests = [message for _, message in receiver.sent if isinstance(message, RetransmitRequest)]
    assert {request.by for request in requests} == {Role.RECEIVER}
    assert set(said(receiver, RetransmitRequest)) == {"store0", "store1", "store2"}
    assert sum(request.last - request.first + 1 for request in requests) == 500
    assert set(said(receiver, ConsumptionAck)) >= {"store0", "store1", "store2"}
    for store in cluster.stores.values():
        [source] = store.machine.repositories
        assert [known.client.acknowledged for known in store.machine.clients.receivers_of(source)] == [599]


@pytest.mark.rows("P-020", "P-025", "P-302", "P-304", "P-657")
@pytest.mark.parametrize("confirmations", [False, True])
def test_a_source_hears_of_consumption_if_it_wants_to(confirmations: bool) -> None:
    """It hears of stability anyway."""
    cluster = Cluster()
    for index in range(3):
        cluster.start_store(f"store{index}")
    cluster.start_source(confirmations=confirmations)
    cluster.start_receiver("receiver0")
    cluster.world.run(SECOND)
    cluster.send(10)
    cluster.world.run(SECOND)
    assert len(cluster.stable()) == 10
    assert all(said(store, StableAck) for store in cluster.stores.values())
    confirmed = cluster.source.seen(Confirmed)
    assert {number for event in confirmed for number in range(event.first, event.last + 1)} == set(
        range(10) if confirmations else ()
    )
    assert ("source" in said(session(cluster), ConsumptionAck)) is confirmations


@pytest.mark.rows("P-508", "P-528", "P-658")
def test_with_a_single_store_its_silence_stops_the_source() -> None:
    cluster = Cluster.started(size=1)
    cluster.send(5)
    cluster.world.run(SECOND)
    cluster.stores["store0"].frozen = True
    cluster.world.run(10 * SECOND)
    assert cluster.source.seen(StoreUnresponsive)
    assert cluster.source.seen(QuorumLost)
    assert not cluster.source.machine.can_send
    cluster.stores["store0"].thaw()
    cluster.world.run(5 * SECOND)
    assert cluster.source.machine.can_send


@pytest.mark.rows("P-017", "P-019", "P-234")
def test_reg_ids_are_32_bits_and_differ_within_a_store() -> None:
    cluster = Cluster.started(receivers=3)
    cluster.world.run(SECOND)
    for index, store in enumerate(cluster.stores.values()):
        reg_ids = [*store.machine.clients.records]
        assert len(reg_ids) == 4
        assert all(0 < reg_id < 1 << 32 for reg_id in reg_ids)
        assert cluster.source.machine.info().stores[index].source_reg_id in store.machine.repositories
