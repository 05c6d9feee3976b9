"""Peace: what is not settled is named, by the rule that speaks of it."""

import pytest

from stablecast.core.effects import Client
from stablecast.core.messages import Role
from stablecast.core.ranges import RangeSet
from stablecast.core.units import SECOND
from stablecast.daemon.records import client_record
from stablecast.sim.cluster import Cluster, seeded
from stablecast.sim.disk import Kind, Record
from stablecast.sim.peace import trouble
from stablecast.sim.setup import RECEIVERS, SOURCE, STORES, Setup


def quiet(setup: Setup, seed: int = 1) -> Cluster:
    """All is settled."""
    cluster = Cluster(seeded(seed), setup=setup)
    cluster.world.run(SECOND)
    cluster.want(3)
    cluster.world.run(3 * SECOND)
    assert trouble(cluster) is None
    return cluster


def rule(cluster: Cluster) -> str | None:
    found = trouble(cluster)
    return None if found is None else found[0]


def test_nobody_is_there_at_first() -> None:
    assert trouble(Cluster(seeded(1))) == ("L1", "not everything sent is stable long after the last fault: nobody")


def test_what_was_sent_is_to_be_stable() -> None:
    cluster = quiet(Setup())
    cluster.want(1)
    assert rule(cluster) == "L1"
    cluster.world.run(cluster.world.now + SECOND)
    assert trouble(cluster) is None


@pytest.mark.parametrize(("setup", "passed"), [(Setup(), "D1"), (Setup(arrival=True), "L1")])
def test_what_is_stable_is_to_be_everywhere(setup: Setup, passed: str) -> None:
    """What an orderly session has passed by will never come."""
    cluster = quiet(setup)
    ledger = cluster.checkers.receivers.ledgers[RECEIVERS[1]]
    ledger.consumed = {life: RangeSet([(1, 3)]) for life in ledger.consumed}
    assert rule(cluster) == passed
    ledger.last = None
    assert rule(cluster) == "L1"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_source_that_leaves_is_to_be_forgotten(seed: int) -> None:
    """P-586, P-587: whether its first farewell arrives or not."""
    cluster = quiet(Setup(), seed)
    cluster.leave(SOURCE)
    assert rule(cluster) == "L1"
    source = cluster.source
    assert source is not None
    source.left = True
    found = trouble(cluster)
    assert found is not None
    assert "has not forgotten it" in found[1]
    source.left = False
    cluster.world.run(cluster.world.now + SECOND)
    assert trouble(cluster) is None


@pytest.mark.parametrize(
    ("reg_id", "source_reg_id", "same_life", "over"),
    [(9, 0, False, True), (9, 0, True, False), (None, 0, False, False), (9, None, False, False), (9, 8, False, True)],
)
def test_who_registers_once_more_when_a_source_has_left_is_another(
    reg_id: int | None, source_reg_id: int | None, same_life: bool, over: bool
) -> None:
    """P-586: an earlier life under a RegID of its own, and its receivers; None stands for the RegID of who left."""
    cluster = quiet(Setup())
    cluster.leave(SOURCE)
    cluster.world.run(cluster.world.now + SECOND)
    source = cluster.source
    assert source is not None
    index, left = next(iter(source.known_at.items()))
    reg_id, source_reg_id = left if reg_id is None else reg_id, left if source_reg_id is None else source_reg_id
    life = source.config.incarnation if same_life else 1
    client = Client(Role.SOURCE, reg_id, index, "sim", 1, life, source_reg_id, "a:1", "a:2", 0, 0, -1, ())
    cluster.disks[STORES[index]].log.append(Record(99, Kind.STATE, lambda: client_record(client), reg_id))
    assert (trouble(cluster) is None) is over


def test_a_receiver_that_leaves_is_to_be_rid_of_its_stores() -> None:
    """P-586, P-588: and what is sent then is none of its business."""
    cluster = quiet(Setup())
    cluster.leave(RECEIVERS[1])
    assert rule(cluster) == "L1"
    cluster.want(2)
    cluster.world.run(cluster.world.now + SECOND)
    assert trouble(cluster) is None


def test_a_source_that_is_away_is_to_have_one_proxy() -> None:
    """P-540, P-554: if any store knows where a proxy would register."""
    cluster = quiet(Setup(proxies=True, orphaned=True))
    cluster.calm()
    assert trouble(cluster) == ("E1", "nobody runs a proxy while source is away")
    for disk in cluster.disks.values():
        disk.log.clear()
    assert trouble(cluster) is None


@pytest.mark.parametrize("wiped", [1, 2])
def test_where_a_quorum_is_required_nobody_stands_in_without_one(wiped: int) -> None:
    """C-40: a store that has no state of the source does not count."""
    cluster = quiet(Setup(proxies=True, quorate=True, orphaned=True))
    cluster.calm()
    for store in STORES[:wiped]:
        cluster.disks[store].log.clear()
    assert (trouble(cluster) is None) is (wiped == 2)
