"""At the receivers' pace, with everything else that a source and its receivers may use: quorum, sessions, recovery."""

from typing import Any

import attrs
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.events import UnrecoverableLoss
from stablecast.core.protocol.inputs import Acknowledge, Consumed
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.quorum import GroupRules, Intragroup
from stablecast.core.protocol.settings import AckMode, ReceiverConfig, RepositoryConfig, StoreConfig
from tests.support.cluster import Cluster
from tests.support.world import ReceiverNode, StoreNode

SIZE = 100
FLIGHT = 10
ROOM = 50
"""Messages of `SIZE` bytes that a flight, and a repository, have room for."""

KEPT = RepositoryConfig(
    allow_rpp=True,
    size_threshold=ROOM * SIZE,
    size_limit=ROOM * SIZE,
    disk_limit=ROOM * SIZE,
)


class Paced(Cluster):
    """Three stores, a source and receivers that all ask for it."""

    @classmethod
    def ready(cls, *receivers: str, **changes: Any) -> "Paced":
        cluster = cls()
        for index in range(cluster.size):
            name = f"store{index}"
            cluster.stores[name] = StoreNode.create(cluster.world, StoreConfig(name, seed=1, repository=KEPT))
        rules = GroupRules((3,), intragroup=Intragroup.ALL)
        flight = {"flight_messages": FLIGHT, "flight_bytes": FLIGHT * SIZE}
        cluster.start_source(pace=Pace.RECEIVERS, groups=rules, **flight)
        cluster.nodes = {name: cluster.receive(name, **changes) for name in receivers}
        cluster.world.run(SECOND)
        assert cluster.source.machine.can_send
        return cluster

    nodes: dict[str, ReceiverNode]

    def receive(self, name: str, **changes: Any) -> ReceiverNode:
        """A receiver joins; the number in its name makes its session."""
        life = self.source.machine.config.incarnation
        config = ReceiverConfig("topic", life, name, "source", session_id=int(name[-1]) + 10, pace=Pace.RECEIVERS)
        return ReceiverNode.create(self.world, attrs.evolve(config, **changes), self.source)

    def send_all(self, count: int) -> int:
        """Send within the credit until `count` are sent or nothing moves; returns how many were."""
        sent = 0
        while sent < count and (credit := min(self.source.machine.credit_messages, count - sent)) > 0:
            self.source.send(credit, SIZE)
            sent += credit
            self.world.run(SECOND)
        return sent

    def kept(self) -> list[int]:
        """Return the count of messages that each store keeps."""
        return [
            repository.newest + 1 - repository.trail
            for store in self.stores.values()
            for repository in store.machine.repositories.values()
        ]


@pytest.mark.rows("P-012", "P-960", "P-968", "P-969", "P-971")
@pytest.mark.parametrize("ack_mode", [AckMode.BATCHED, AckMode.EXPLICIT])
def test_all_is_delivered_in_order_and_let_go(ack_mode: AckMode) -> None:
    cluster = Paced.ready("receiver1", "receiver2", ack_mode=ack_mode)
    sent = 0
    while sent < 10 * ROOM:
        sent += cluster.send_all(FLIGHT)
        if ack_mode is AckMode.EXPLICIT:
            for node in cluster.nodes.values():
                node.feed(Acknowledge(sent - 1))
            cluster.world.run(SECOND)
    assert [node.numbers for node in cluster.nodes.values()] == [list(range(sent))] * 2
    assert cluster.kept() == [0, 0, 0]
    assert len(cluster.stable()) == sent


@pytest.mark.rows("P-012", "P-013", "P-566", "P-580")
def test_one_receiver_that_does_not_consume_holds_everything_up() -> None:
    """A message stays until all acknowledged it; when room is short nothing more is stable,
    and once there is room the source goes on.
    """
    cluster = Paced.ready("receiver1", "receiver2")
    slow = cluster.nodes["receiver2"]
    slow.consuming = False
    sent = cluster.send_all(10 * ROOM)
    assert ROOM - FLIGHT <= sent <= ROOM
    assert cluster.kept() == [sent] * 3
    assert len(cluster.stable()) <= ROOM - FLIGHT
    slow.consuming = True
    slow.feed(Consumed(0, slow.numbers[-1]))
    cluster.world.run(SECOND)
    assert cluster.send_all(ROOM) == ROOM
    assert slow.numbers == list(range(sent + ROOM))


@pytest.mark.rows("P-537", "P-582", "P-956")
def test_a_receiver_that_returns_gets_all_that_was_held_for_it() -> None:
    """Late join gives what not all have consumed, and nothing of that is lost."""
    cluster = Paced.ready("receiver1", "receiver2")
    cluster.send_all(FLIGHT)
    cluster.world.crash(cluster.nodes["receiver2"])
    sent = FLIGHT + cluster.send_all(2 * FLIGHT)
    returned = cluster.receive("receiver2")
    cluster.world.run(5 * SECOND)
    assert returned.numbers == list(range(FLIGHT, sent))
    assert returned.seen(UnrecoverableLoss) == []
    assert cluster.kept() == [0, 0, 0]


@pytest.mark.rows("P-410", "P-583", "P-955")
def test_a_running_receiver_fills_a_gap_from_the_stores() -> None:
    cluster = Paced.ready("receiver1")
    node = cluster.nodes["receiver1"]
    cluster.source.joined.remove(node)
    cluster.send_all(3)
    cluster.source.joined.append(node)
    cluster.send_all(3)
    cluster.world.run(5 * SECOND)
    assert node.numbers == list(range(6))
    assert node.recovered == 3
    assert cluster.kept() == [0, 0, 0]
