"""Each transport on each network: everything arrives once and in order, and repairs keep to their timers."""

from collections import defaultdict
from itertools import pairwise

import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import SECOND
from stablecast.transports.reliable.effects import SessionEnded
from stablecast.transports.reliable.settings import SourceSettings
from stablecast.transports.wire import lbtrm, lbtru
from tests.transports.reliable.network import MS, Faults, Network

NETWORKS = {
    "clean": Faults(),
    "loss 1 %": Faults(lost=10),
    "loss 10 %": Faults(lost=100),
    "loss 30 %": Faults(lost=300),
    "reordering": Faults(late=200),
    "duplication": Faults(repeated=200),
    "all of it": Faults(lost=100, late=200, repeated=200),
}
KINDS = ("lbtrm", "lbtru")
SUBMISSIONS = 450
TOPICS = (7, 8, 9)
EACH = 3
"""Messages of a submission."""
UNBATCHED = SourceSettings(batch_bytes=1)
QUIET = 110 * SECOND
"""Instant at which the marks of idle topics have ended and their losses are repaired."""


def played(kind: str, faults: Faults, seed: int, receivers: int = 3) -> Network:
    """Three topics share a session; a datagram for each submission."""
    network = Network(kind, receivers, faults, seed, UNBATCHED)
    network.run(2 * SECOND)
    for place in range(SUBMISSIONS):
        network.send_at(2 * SECOND + place * 5 * MS, TOPICS[place % len(TOPICS)], EACH)
    network.run(QUIET)
    return network


@pytest.mark.rows("P-301", "P-401")
@pytest.mark.no_cover
@pytest.mark.parametrize("faults", NETWORKS.values(), ids=list(NETWORKS))
@pytest.mark.parametrize("kind", KINDS)
def test_everything_arrives_once_and_in_order(kind: str, faults: Faults) -> None:
    """Lost datagrams are retransmitted, for three receivers and three topics on one session."""
    network = played(kind, faults, seed=1)
    for receiver, orders in zip(network.receivers, network.orders, strict=True):
        statistics = receiver.machine.statistics
        assert sorted(orders) == list(TOPICS)
        for order in orders.values():
            assert order.delivered == RangeSet([(order.first, SUBMISSIONS // len(TOPICS) * EACH)])
            assert not order.lost
        assert statistics.unrecovered_tmo == statistics.unrecovered_txw == 0
        assert not receiver.machine.session.gaps.missing
        assert not receiver.told(SessionEnded)
        if faults == Faults():
            assert (statistics.naks_sent, statistics.duplicate_data, statistics.lost) == (0, 0, 0)


@pytest.mark.rows("M-017")
@pytest.mark.no_cover
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lost", [100, 300])
def test_naks_and_repairs_keep_to_the_documented_timers(kind: str, lost: int) -> None:
    """T29: 100 to 300 ms to the next NAK, 1000 ms after an NCF.

    A datagram is retransmitted once in 500 ms, and the first NAK in this time gets an NCF.
    """
    network = played(kind, Faults(lost=lost), seed=2, receivers=1)
    wire = lbtrm if kind == "lbtrm" else lbtru
    naks: dict[tuple[str, int], list[int]] = defaultdict(list)
    for at, who, packet in network.wire:
        if isinstance(packet, wire.Nak):
            for number in packet.sqns:
                naks[who, number].append(at)
    gaps = [(later - sooner) // MS for times in naks.values() for sooner, later in pairwise(times)]
    assert len(gaps) > 20
    refused = [gap for gap in gaps if gap > 300]
    assert refused
    assert all(gap >= 100 for gap in gaps)
    assert all(1000 <= gap <= 1310 for gap in refused), "an NCF replaces the running backoff"
    again: dict[object, list[int]] = defaultdict(list)
    for at, packet in network.packets(wire.Data):
        if packet.flags & wire.Data.RETRANSMISSION:
            again[packet.sqn].append(at)
    assert all(later - sooner >= 500 * MS for times in again.values() for sooner, later in pairwise(times))


@pytest.mark.parametrize("kind", KINDS)
def test_the_counters_of_both_ends_agree(kind: str) -> None:
    """If only data is lost, each NAK arrives and is answered by a datagram, an NCF, or silence."""
    network = Network(kind, 1, Faults(), 3, UNBATCHED)
    network.run(SECOND)
    wire = lbtrm if kind == "lbtrm" else lbtru
    network.drop = lambda to, packet: isinstance(packet, wire.Data) and network.seeded.below(10) < 3
    for place in range(SUBMISSIONS):
        network.send_at(2 * SECOND + place * 5 * MS, 7)
    network.run(QUIET)
    mine = network.receivers[0].machine.statistics
    theirs = network.source.machine.statistics(1)
    assert theirs["naks_rcved"] == mine.naks_sent > 100
    assert theirs["nak_pckts_rcved"] == mine.nak_pckts_sent
    assert theirs["naks_rcved"] == theirs["rxs_sent"] + theirs["naks_ignored"]
    assert mine.ncfs_ignored == theirs["naks_ignored"], "a receiver is silenced before it would meet silence"
    assert mine.nak_stm.count == mine.lost - mine.out_of_order
    assert mine.nak_stm.least >= (25 if kind == "lbtrm" else 0)
    assert mine.nak_tx.total == mine.naks_sent
    assert theirs["msgs_sent"] == theirs["txw_msgs"]


def test_one_nak_of_the_quickest_silences_the_others() -> None:
    """LBT-RM: receivers that lost the same datagram wait at random, so few of them send a NAK."""
    network = Network("lbtrm", 8, Faults(), 4, UNBATCHED)
    lost: list[int] = []

    def drop(to: str, packet: object) -> bool:
        common = isinstance(packet, lbtrm.Data) and packet.sqn % 10 == 5 and not packet.flags & 0x20
        if common:
            lost.append(1)
        return common

    network.drop = drop
    for place in range(200):
        network.send_at(place * 100 * MS, 7)
    network.run(30 * SECOND)
    asked = sum(receiver.machine.statistics.naks_sent for receiver in network.receivers)
    assert len(lost) == 8 * 20
    assert asked < len(lost) // 3
    assert all(order[7].delivered.total() == 200 for order in network.orders)


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_can_be_repeated(kind: str) -> None:
    """The same seed gives the same datagrams at the same instants."""
    first, second = (played(kind, NETWORKS["all of it"], seed=5, receivers=2) for _ in range(2))
    assert first.wire == second.wire
