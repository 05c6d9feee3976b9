"""The traps of the reliable transports, each between a source and a receiver in virtual time."""

from typing import Any

import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import SECOND
from stablecast.transports.reliable.effects import DatagramsLost, LossReason, SessionEnded, TopicLost, Unblocked
from stablecast.transports.reliable.settings import RateSettings, ReceiverSettings, SourceSettings
from stablecast.transports.wire import lbtrm, lbtru
from stablecast.transports.wire.reliable_packets import Reason
from tests.transports.reliable.network import MS, Faults, Network

KINDS = ("lbtrm", "lbtru")
UNBATCHED = SourceSettings(batch_bytes=1)


def wire(kind: str) -> Any:
    return lbtrm if kind == "lbtrm" else lbtru


def again(kind: str, packet: Any) -> bool:
    data = wire(kind).Data
    return isinstance(packet, data) and bool(packet.flags & data.RETRANSMISSION)


def asked(network: Network, number: int) -> list[int]:
    """Return the instants of the requests for a datagram, in nanoseconds."""
    return [at for at, packet in network.packets(wire(network.kind).Nak) if number in packet.sqns]


@pytest.mark.parametrize("kind", KINDS)
def test_t29_a_repair_that_is_lost_too_costs_a_second(kind: str) -> None:
    """T29: the second NAK comes 100 to 300 ms later, within the ignore interval of 500 ms, and gets one NCF.

    The receiver waits 1000 ms, and the third NAK is answered.
    """
    network = Network(kind, 1, source=UNBATCHED)
    network.run(SECOND)
    dropped: list[Any] = []

    def drop(to: str, packet: Any) -> bool:
        hit = isinstance(packet, wire(kind).Data) and packet.sqn == 1 and len(dropped) < 2
        dropped.extend([packet] if hit else [])
        return hit

    network.drop = drop
    for _ in range(3):
        network.send(7)
    network.run(10 * SECOND)
    first, second, third = asked(network, 1)
    assert again(kind, dropped[1])
    assert first - SECOND <= 76 * MS
    assert 100 * MS <= second - first <= 300 * MS
    ((told, ncf),) = network.packets(wire(kind).Ncf)
    assert (ncf.reason, ncf.sqns) == (Reason.IGNORED, (1,))
    assert third - told == 1001 * MS, "1000 ms after the NCF, which was 1 ms under way"
    assert network.orders[0][7].delivered == RangeSet([(0, 3)])


@pytest.mark.parametrize("kind", KINDS)
def test_t29_further_naks_in_the_interval_get_no_ncf(kind: str) -> None:
    """T29: here the NCF is lost, so the receiver sends more NAKs and gets no answer until the interval is over."""
    network = Network(kind, 1, source=UNBATCHED)
    network.run(SECOND)
    lost = {"data": 2}

    def drop(to: str, packet: Any) -> bool:
        if isinstance(packet, wire(kind).Data) and packet.sqn == 1 and lost["data"]:
            lost["data"] -= 1
            return True
        return isinstance(packet, wire(kind).Ncf)

    network.drop = drop
    for _ in range(3):
        network.send(7)
    network.run(10 * SECOND)
    repairs = [at for at, packet in network.packets(wire(kind).Data) if again(kind, packet)]
    ignored = [at for at in asked(network, 1) if repairs[0] < at + MS < repairs[0] + 500 * MS and at + MS != repairs[0]]
    assert len(ignored) >= 1
    assert len(network.packets(wire(kind).Ncf)) == 1
    assert len(repairs) == 2
    assert repairs[1] - repairs[0] >= 500 * MS


@pytest.mark.parametrize("kind", KINDS)
def test_t29_what_lies_below_the_trail_is_given_up_without_a_nak(kind: str) -> None:
    """T29: its topic loses it when the gap reaches the generation interval."""
    network = Network(kind, 1, source=SourceSettings(batch_bytes=1, window_bytes=100))
    network.run(SECOND)
    network.send(7)
    network.run(2 * SECOND)
    network.drop = lambda to, packet: isinstance(packet, wire(kind).Data)
    for _ in range(5):
        network.send(7)
    network.drop = None
    network.send(7)
    network.run(30 * SECOND)
    receiver = network.receivers[0]
    assert [effect for _, effect in receiver.told(DatagramsLost)] == [DatagramsLost(1, 3, LossReason.WINDOW)]
    assert not any(asked(network, number) for number in (1, 2, 3))
    assert asked(network, 4)
    assert [(at // MS, lost) for at, lost in receiver.told(TopicLost)] == [(12_001, TopicLost(7, 1, 3))]
    order = network.orders[0][7]
    assert (order.delivered, order.lost) == (RangeSet([(0, 1), (4, 7)]), RangeSet([(1, 4)]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_tail_is_seen_by_session_messages_and_lost_by_the_marks_clock(kind: str) -> None:
    """A runner-up of the traps: lost at 0, revealed by a session message at 0.2 s, by TSNI at 5 s.

    The transport gives up at 10.2 s and the topic at 15 s.
    """
    network = Network(kind, 1, source=UNBATCHED)
    network.run(SECOND)
    network.send(7)
    network.run(10 * SECOND)
    last = network.source.machine.get(1).window.lead + 1
    network.drop = lambda to, packet: isinstance(packet, wire(kind).Data) and packet.sqn == last
    start = network.now
    network.send(7)
    network.run(start + 30 * SECOND)
    receiver = network.receivers[0]
    assert asked(network, last)[0] - start <= 276 * MS + 1
    ((at, _),) = receiver.told(DatagramsLost)
    assert (at - start) // MS == 10_201
    ((at, _),) = receiver.told(TopicLost)
    assert 15 * SECOND <= at - start <= 15 * SECOND + 2 * MS


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_tail_is_never_reported_without_marks(kind: str) -> None:
    network = Network(kind, 1, source=SourceSettings(batch_bytes=1, tsni_ns=0))
    network.run(SECOND)
    network.send(7)
    network.run(2 * SECOND)
    network.drop = lambda to, packet: isinstance(packet, wire(kind).Data)
    network.send(7)
    network.run(60 * SECOND)
    assert network.receivers[0].told(DatagramsLost)
    assert not network.receivers[0].told(TopicLost)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gap_without_repair_is_lost_after_the_generation_interval(kind: str) -> None:
    """Each message is either delivered or reported lost; here every repair is lost on its way."""
    network = Network(kind, 2, Faults(), source=UNBATCHED, receiver=ReceiverSettings(generation_ns=2 * SECOND))
    network.run(SECOND)
    network.send(7)
    network.run(2 * SECOND)
    network.drop = lambda to, packet: (
        again(kind, packet) or (isinstance(packet, wire(kind).Data) and network.seeded.below(10) < 3)
    )
    for place in range(200):
        network.send_at(2 * SECOND + place * 10 * MS, 7)
    network.run(10 * SECOND)
    network.drop = None
    network.send(7)
    network.run(40 * SECOND)
    for receiver, orders in zip(network.receivers, network.orders, strict=True):
        order = orders[7]
        assert order.lost
        assert not [part for start, stop in order.lost for part in order.delivered.within(start, stop)]
        assert order.delivered.total() + order.lost.total() == 202
        found = receiver.machine.statistics
        assert found.unrecovered_tmo == found.lost > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_rate_limit_spreads_a_burst_over_its_intervals(kind: str) -> None:
    """A runner-up of the traps: a datagram over the limit is queued and succeeds, the next one is blocked.

    Nothing is lost, and no interval exceeds the limit.
    """
    rates = RateSettings(10 * MS, 2_000_000, 1_000_000, repairs_count=kind == "lbtrm")
    network = Network(kind, 1, source=UNBATCHED, rates=rates)
    network.run(SECOND)
    for _ in range(200):
        network.send(7, 1, 500)
    network.run(5 * SECOND)
    intervals: dict[int, int] = {}
    for at, packet in network.packets(wire(kind).Data):
        intervals[at // (10 * MS)] = intervals.get(at // (10 * MS), 0) + len(wire(kind).encode(packet))
    assert max(intervals.values()) <= 2500
    assert len(intervals) >= 40
    assert network.source.told(Unblocked)
    assert network.orders[0][7].delivered == RangeSet([(0, 200)])


def test_a_source_that_goes_leaves_its_multicast_receivers_to_their_timeout() -> None:
    """EOS of LBT-RM is a silence of 60 s; a lingering session still answers NAKs."""
    network = Network("lbtrm", 1, source=UNBATCHED)
    network.run(SECOND)
    for _ in range(3):
        network.send(7)
    network.drop = None
    network.close()
    network.run(200 * SECOND)
    ((at, _),) = network.receivers[0].told(SessionEnded)
    assert 60 * SECOND <= at - SECOND <= 75 * SECOND
    assert network.orders[0][7].delivered == RangeSet([(0, 3)])


def test_a_source_that_goes_resets_its_clients() -> None:
    network = Network("lbtru", 2, source=SourceSettings(batch_bytes=1, linger_ns=SECOND))
    network.run(SECOND)
    network.send(7)
    network.close()
    network.run(10 * SECOND)
    assert [[(at - SECOND) // MS for at, _ in party.told(SessionEnded)] for party in network.receivers] == [
        [1001],
        [1001],
    ]


def test_a_client_comes_before_its_source() -> None:
    """It repeats its request until the source exists; then it receives all data."""
    network = Network("lbtru", 1, source=UNBATCHED)
    network.drop = lambda to, packet: network.now < 3 * SECOND
    network.run(2 * SECOND)
    network.send_at(4 * SECOND, 7)
    network.run(10 * SECOND)
    assert len(network.packets(lbtru.Request)) == 31
    assert network.orders[0][7].delivered == RangeSet([(0, 1)])
