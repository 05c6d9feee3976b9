"""The promises of the first chapters: waiting, talking and belonging of endpoints."""

import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.events import QuorumLost, RegistrationSuccess, UnrecoverableLoss
from stablecast.core.protocol.inputs import Consumed, Lost
from stablecast.core.protocol.messages import LateJoinRequest
from stablecast.core.protocol.quorum import GroupRules, Intergroup
from stablecast.core.protocol.settings import OtrTimes, ReceiverConfig, StoreSpec, UseOtr
from tests.support.abstract_states import abstract
from tests.support.cluster import Cluster
from tests.support.world import LINK_NS, Node, ReceiverNode


def numbers(cluster: Cluster) -> list[int]:
    return cluster.applications["receiver0"].sessions[-1].numbers


def two_sources(**changes: object) -> Cluster:
    """Two sources of one topic with the same stores, no receiver."""
    cluster = Cluster.started(receivers=0)
    cluster.start_source(reply_to="other", session_id=2, **changes)
    cluster.world.run(SECOND)
    assert all(life.machine.can_send for life in cluster.lives)
    return cluster


@pytest.mark.rows("P-002", "P-003", "P-039")
def test_receivers_do_not_wait_for_stores() -> None:
    """With all stores asleep, a message takes as long to a receiver as ever."""
    cluster = Cluster.started()
    cluster.world.run(SECOND)
    for store in cluster.stores.values():
        store.frozen = True
    cluster.send(10)
    cluster.world.run(LINK_NS)
    assert numbers(cluster) == list(range(10))
    assert cluster.stable() == set()
    for store in cluster.stores.values():
        store.thaw()
    cluster.world.run(SECOND)
    assert len(cluster.stable()) == 10


@pytest.mark.rows("P-010", "P-011")
def test_at_the_source_s_pace_receivers_do_not_slow_it_down() -> None:
    """The pace is the source's unless somebody asks otherwise, whatever a receiver consumes."""
    cluster = Cluster.started()
    session = cluster.applications["receiver0"].sessions[-1]
    session.consuming = False
    for _ in range(20):
        cluster.send(100)
        cluster.world.run(100 * MILLISECOND)
    assert len(cluster.stable()) == 2000
    assert cluster.source.seen(QuorumLost) == []
    session.feed(Consumed(0, 1999))
    cluster.check()


@pytest.mark.rows("P-029", "P-216", "P-302", "P-303", "P-506")
def test_every_endpoint_talks_to_the_right_peers() -> None:
    """Sources, receivers and stores with each other, and never a store with a store;
    when one of them is gone, the others need not be filled.
    """
    cluster = Cluster.started(receivers=2)
    cluster.send(10)
    cluster.world.run(SECOND)
    cluster.crash_store("store1")
    cluster.send(10)
    cluster.world.run(SECOND)

    def kinds(nodes: list[Node]) -> set[tuple[str, str]]:
        return {(node.address[:5], to[:5]) for node in nodes for to, _ in node.sent}

    nodes: list[Node] = [cluster.source, *cluster.stores.values()]
    nodes += [session for application in cluster.applications.values() for session in application.sessions]
    assert kinds(nodes) == {("sourc", "store"), ("store", "sourc"), ("recei", "store"), ("store", "recei")}
    asked = [message for store in cluster.stores.values() for _, message in store.sent]
    assert not [message for message in asked if isinstance(message, LateJoinRequest)]


@pytest.mark.rows("P-015", "P-032", "P-215")
def test_each_source_of_a_topic_has_a_repository_of_its_own() -> None:
    """With numbers of its own."""
    cluster = two_sources()
    cluster.lives[0].send(10)
    cluster.lives[1].send(3)
    cluster.world.run(SECOND)
    for store in cluster.stores.values():
        assert sorted(repository.newest for repository in store.machine.repositories.values()) == [2, 9]


@pytest.mark.rows("P-126")
def test_sources_choose_their_stores() -> None:
    """A store that is not asked has nothing to do."""
    cluster = two_sources(stores=(StoreSpec("store2"),), groups=GroupRules((1,)))
    assert [len(store.machine.repositories) for store in cluster.stores.values()] == [1, 1, 2]


@pytest.mark.rows("P-018", "P-237")
def test_a_reg_id_means_nothing_elsewhere() -> None:
    """The same one at every store is no conflict."""
    cluster = Cluster()
    for index in range(3):
        cluster.start_store(f"store{index}")
    cluster.start_source(stores=tuple(StoreSpec(f"store{index}", 77) for index in range(3)), session_id=0)
    cluster.world.run(SECOND)
    assert [event.reg_id for event in cluster.source.seen(RegistrationSuccess)] == [77, 77, 77]


@pytest.mark.rows("P-034")
@pytest.mark.parametrize("groups", [(0, 1, 2), (0, 0, 1)])
def test_stores_do_not_know_how_they_are_grouped(groups: tuple[int, ...]) -> None:
    """With any arrangement of their source, they say and keep the same."""

    def played(groups: tuple[int, ...]) -> Cluster:
        cluster = Cluster()
        for index in range(3):
            cluster.start_store(f"store{index}")
        stores = tuple(StoreSpec(f"store{index}", group=group) for index, group in enumerate(groups))
        sizes = tuple(groups.count(group) for group in sorted(set(groups)))
        cluster.start_source(stores=stores, groups=GroupRules(sizes, intergroup=Intergroup.ALL))
        cluster.start_receiver("receiver0")
        cluster.world.run(SECOND)
        cluster.send(10)
        cluster.world.run(SECOND)
        assert len(cluster.stable()) == 10
        return cluster

    ours, plain = played(groups), played((0, 0, 0))
    for name, store in ours.stores.items():
        assert abstract(store.machine) == abstract(plain.stores[name].machine)
        assert store.sent == plain.stores[name].sent


@pytest.mark.rows("P-311", "P-322")
def test_two_of_three_stores_suffice_for_the_flight() -> None:
    """A later answer of the third, or never, changes nothing."""
    cluster = Cluster()
    for index in range(3):
        cluster.start_store(f"store{index}")
    cluster.start_source(flight_messages=10)
    cluster.world.run(SECOND)
    cluster.stores["store1"].frozen = True
    for _ in range(3):
        assert cluster.source.machine.credit_messages == 10
        cluster.send(10)
        assert cluster.source.machine.credit_messages == 0
        cluster.world.run(100 * MILLISECOND)
    stable = cluster.stable()
    cluster.stores["store1"].thaw()
    cluster.world.run(SECOND)
    assert len(stable) == 30
    assert cluster.stable() == stable
    assert cluster.source.machine.credit_messages == 10


@pytest.mark.rows("P-022")
def test_sources_and_stores_let_go_by_rules_of_their_own() -> None:
    """The source lets go of stable messages; the stores keep it."""
    cluster = Cluster.started(receivers=0)
    cluster.send(10)
    cluster.world.run(SECOND)
    window = cluster.source.machine.window
    assert window.trail == window.next == 10
    for store in cluster.stores.values():
        [repository] = store.machine.repositories.values()
        assert (repository.trail, repository.newest) == (0, 9)


@pytest.mark.rows("P-428")
def test_a_receiver_that_is_made_anew_may_get_what_was_given_up() -> None:
    """Its acknowledgements went on over what was lost, so its application has to ask for it."""
    cluster = Cluster.started(receivers=0)
    config = ReceiverConfig("topic", 100, "receiver0", "source", session_id=10, otr=OtrTimes(use=UseOtr.OFF))
    first = ReceiverNode.create(cluster.world, config, cluster.source)
    cluster.world.run(SECOND)
    cluster.source.joined.remove(first)
    cluster.send(3)
    cluster.source.joined.append(first)
    cluster.send(3)
    cluster.world.run(SECOND)
    first.feed(Lost(100, 0, 3))
    cluster.world.run(SECOND)
    assert first.numbers == [3, 4, 5]
    assert [(event.first, event.last) for event in first.seen(UnrecoverableLoss)] == [(0, 2)]
    cluster.world.crash(first)
    second = ReceiverNode.create(cluster.world, config, cluster.source, wish=0)
    cluster.world.run(SECOND)
    assert second.numbers == list(range(6))
