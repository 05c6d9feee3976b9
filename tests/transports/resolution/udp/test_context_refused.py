"""Datagrams that a context refuses, or uses in part; and the length of its own datagrams."""

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.effects import Discovered, Remark, SendDatagram
from stablecast.transports.resolution.udp.inputs import AddReceiver, AddSource, DatagramArrived
from stablecast.transports.resolution.udp.settings import SAFE, DatagramSizes
from tests.transports.resolution.domain import RELAY, SECOND_RELAY, Domain
from tests.transports.resolution.udp.test_context import ORDERS, RECORD, A, pair


def test_strangers_and_nonsense_are_counted_and_dropped() -> None:
    context = ResolutionContext.over_relays(b"instance", [RELAY])
    context.receive(AddReceiver("orders"), 0)
    sent = [effect.data for effect in context.take_effects() if isinstance(effect, SendDatagram)]
    domain = pair()
    domain.feed(A, ORDERS)
    tir = domain.sent[-1][3]
    context.receive(DatagramArrived(tir, SECOND_RELAY), 0)
    context.receive(DatagramArrived(tir[:8], RELAY), 0)
    context.receive(DatagramArrived(tir + bytes(8192), RELAY), 0)
    context.receive(DatagramArrived(b"\x14\0\0\0", RELAY), 0)
    context.receive(DatagramArrived(sent[0], RELAY), 0)
    (oversized,) = context.take_effects()
    assert isinstance(oversized, Remark)
    assert "it exceeds 8192: set the same resolver_datagram_max_size everywhere" in oversized.text
    context.receive(DatagramArrived(tir + bytes(8192), RELAY), 0)
    assert context.take_effects() == []
    context.receive(DatagramArrived(tir, RELAY), 0)
    assert context.take_effects() == [Discovered("orders", RECORD)]
    assert context.counters() == {
        "sent": 1,
        "sent_bytes": len(sent[0]),
        "received": 7,
        "received_bytes": 4 * len(tir) + 8 + 2 * 8192 + 4 + len(sent[0]),
        "own": 1,
        "foreign": 1,
        "malformed": 1,
        "unknown_sender": 1,
        "oversized": 2,
        "unusable": 0,
        "cached": 1,
        "cache_dropped": 0,
        "cache_expired": 0,
        "unresolved": 1,
    }


def test_the_whole_records_of_a_malformed_datagram_are_used() -> None:
    """The datagram still counts as malformed."""
    context = ResolutionContext.over_relays(b"instance", [RELAY])
    context.receive(AddReceiver("orders"), 0)
    domain = pair()
    domain.feed(A, ORDERS)
    context.take_effects()
    context.receive(DatagramArrived(domain.sent[-1][3] + b"!", RELAY), 0)
    assert context.take_effects() == [Discovered("orders", RECORD)]
    assert context.counters()["malformed"] == 1


def test_datagrams_are_as_long_as_was_agreed_on() -> None:
    """resolver_datagram_max_size, and resolver_source_datagram_max_size beside it."""
    for sizes, most in ((DatagramSizes(), 1_400), (DatagramSizes(500), 500), (DatagramSizes(8_192, 600), 600)):
        domain = Domain()
        domain.member(A, attrs.evolve(SAFE, datagrams=sizes))
        for index in range(100):
            domain.feed(
                A, AddSource(f"topic/{index}", "127.0.0.1:14371", 7, index, "127.0.0.1:14391", persistent=False)
            )
            domain.feed(A, AddReceiver(f"other/{index}"))
        domain.run(2 * SECOND)
        longest = max(len(data) for _, _, _, data in domain.sent)
        assert most - 100 < longest <= most
