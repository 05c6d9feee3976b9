"""One context over relays: discovery, answers, keepalives, failing relays, bad datagrams."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.core.units import SECOND
from stablecast.transports.resolution.context import ResolutionContext
from stablecast.transports.resolution.effects import Discovered, SendDatagram
from stablecast.transports.resolution.inputs import (
    AddReceiver,
    AddSource,
    DatagramArrived,
    RemoveReceiver,
    RemoveSource,
    Resolved,
    Unresolved,
)
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.relays import ACTIVITY_TIMEOUT, KEEPALIVE_INTERVAL
from stablecast.transports.wire import lbmr
from tests.transports.resolution.domain import RELAY, SECOND_RELAY, Domain
from tests.transports.resolution.virtual import ADVERTISEMENTS, MS, QUERIES

A, B = "10.0.0.1:14402", "10.0.0.2:14402"
ORDERS = AddSource("orders", "10.0.0.1:14371", 7, 1, "10.0.0.1:14391", persistent=True)
RECORD = SourceRecord("10.0.0.1:14371", 7, 1, "10.0.0.1:14391", persistent=True, instance=b"10.0.0.1")


def pair() -> Domain:
    """Two contexts at one relay."""
    domain = Domain()
    domain.relay()
    domain.context(A)
    domain.context(B)
    return domain


def packets(
    domain: Domain, sender: str, kind: lbmr.PacketKind = lbmr.PacketKind.NORMAL
) -> list[tuple[int, lbmr.Packet]]:
    """Instants (ms) and packets of one kind that a node sent."""
    decoded = [(now // MS, lbmr.decode(data)) for now, source, _, data in domain.sent if source == sender]
    return [(at, packet) for at, packet in decoded if isinstance(packet, lbmr.Packet) and packet.kind == kind]


def test_a_receiver_finds_a_source_that_was_there_before() -> None:
    domain = pair()
    domain.feed(A, ORDERS)
    domain.run(20 * SECOND + MS)
    domain.feed(B, AddReceiver("orders"))
    domain.run(21 * SECOND)
    assert domain.found == [(20_020 * MS, B, "orders", RECORD)]


def test_a_receiver_finds_a_source_that_comes_later() -> None:
    domain = pair()
    domain.feed(B, AddReceiver("orders"))
    domain.run(20 * SECOND + MS)
    domain.feed(A, ORDERS)
    assert domain.found == [(20_001 * MS, B, "orders", RECORD)]


def test_the_datagrams_of_a_source_by_the_clock() -> None:
    """The advertisement at creation, the 16 of the initial phase, then one a second; all with the standard trailer."""
    domain = pair()
    domain.feed(A, ORDERS)
    domain.run(8 * SECOND)
    sent = packets(domain, A)
    assert [at for at, _ in sent] == [0, *ADVERTISEMENTS, 6200, 7200]
    assert {packet.options for _, packet in sent} == {lbmr.standard_options(b"10.0.0.1")}
    assert [tir.ttl for _, packet in sent[:2] for tir in packet.advertisements] == [16, 60]


def test_the_datagrams_of_a_receiver_by_the_clock() -> None:
    domain = pair()
    domain.feed(B, AddReceiver("orders"))
    domain.run(8 * SECOND)
    assert [at for at, _ in packets(domain, B)] == [*QUERIES, 6100, 7100]


def test_a_query_is_answered_in_a_datagram_of_its_own_without_moving_the_schedule() -> None:
    domain = pair()
    domain.feed(A, ORDERS)
    domain.run(SECOND + 5 * MS)
    domain.feed(B, AddReceiver("orders"))
    domain.run(2 * SECOND - 1)
    expected = [0, *ADVERTISEMENTS, *(1020 + offset for offset in QUERIES)]
    assert [at for at, _ in packets(domain, A)] == sorted(at for at in expected if at < 2000)


def test_both_halves_of_one_context_hear_each_other() -> None:
    domain = pair()
    domain.feed(A, ORDERS)
    domain.feed(A, AddReceiver("orders"))
    domain.run(0)
    assert domain.found == [(0, A, "orders", RECORD)]
    domain.feed(A, RemoveReceiver("orders"))
    domain.feed(A, RemoveSource(7, 1))
    domain.feed(A, AddReceiver("orders"))
    domain.feed(A, ORDERS)
    assert len(domain.found) == 2


def test_our_own_query_is_answered_by_our_own_source() -> None:
    domain = pair()
    domain.feed(A, ORDERS)
    domain.run(10 * SECOND + 300 * MS)
    answers = len(packets(domain, A))
    domain.feed(A, AddReceiver("orders"))
    domain.run(10 * SECOND + 310 * MS)
    assert domain.found == [(10_300 * MS, A, "orders", RECORD)]
    assert len(packets(domain, A)) == answers + 1  # The query.


def test_a_lost_session_is_found_again() -> None:
    domain = pair()
    domain.feed(A, ORDERS)
    domain.feed(B, AddReceiver("orders"))
    domain.feed(B, Resolved("orders"))
    domain.run(10 * SECOND)
    assert [at for at, _, _, _ in domain.found] == [0]
    assert len(packets(domain, B)) == len(QUERIES)
    domain.feed(B, Unresolved("orders"))
    domain.run(11 * SECOND)
    assert [at // MS for at, _, _, _ in domain.found] == [0, 10_000]


def test_a_partition_of_any_length_heals() -> None:
    """T26 must not happen here: nobody goes quiet."""
    domain = pair()
    domain.down = {RELAY}
    domain.feed(A, ORDERS)
    domain.feed(B, AddReceiver("orders"))
    domain.run(1000 * SECOND)
    assert domain.found == []
    domain.down = set()
    domain.run(1000 * SECOND + KEEPALIVE_INTERVAL + SECOND)
    assert [(at, topic) for _, at, topic, _ in domain.found] == [(B, "orders")]


def test_a_restarted_relay_learns_its_clients_again() -> None:
    domain = pair()
    domain.feed(A, ORDERS)
    domain.feed(B, AddReceiver("orders"))
    domain.feed(B, Resolved("orders"))
    domain.run(100 * SECOND + MS)
    domain.relay()
    domain.feed(A, attrs.evolve(ORDERS, index=2))
    domain.run(100 * SECOND + MS + KEEPALIVE_INTERVAL + SECOND)
    assert [record.index for _, _, _, record in domain.found] == [1, 2]


def test_keepalives_say_what_the_context_has_and_stop_with_it() -> None:
    domain = pair()
    domain.run(SECOND)
    assert domain.sent == []
    domain.feed(A, AddReceiver("orders"))
    domain.run(6 * SECOND)
    assert [at for at, _ in packets(domain, A, lbmr.PacketKind.RECEIVER_ALIVE)] == [1000, 6000]
    domain.feed(A, ORDERS)
    domain.run(12 * SECOND)
    assert [at for at, _ in packets(domain, A, lbmr.PacketKind.SOURCE_ALIVE)] == [11_000]
    domain.feed(A, RemoveSource(7, 1))
    domain.feed(A, RemoveReceiver("orders"))
    silent = len(domain.sent)
    domain.run(60 * SECOND)
    assert len(domain.sent) == silent
    domain.run(80 * SECOND)
    assert domain.nodes[RELAY].counters()["clients"] == 0


def test_the_second_relay_takes_over_and_all_contexts_hear_it() -> None:
    domain = Domain()
    domain.relay()
    domain.relay(SECOND_RELAY)
    domain.context(A, RELAY, SECOND_RELAY)
    domain.context(B, RELAY, SECOND_RELAY)
    domain.feed(A, attrs.evolve(ORDERS, topic="other"))
    domain.feed(B, AddReceiver("orders"))
    domain.run(20 * SECOND)
    assert {to for _, source, to, _ in domain.sent if source == A} == {RELAY, SECOND_RELAY}
    domain.down = {RELAY}
    domain.run(20 * SECOND + ACTIVITY_TIMEOUT)
    domain.feed(A, attrs.evolve(ORDERS, index=2))
    assert [(at, record.index) for _, at, _, record in domain.found] == [(B, 2)]


def test_contexts_at_different_relays_find_each_other() -> None:
    domain = Domain()
    domain.relay()
    domain.relay(SECOND_RELAY)
    domain.context(A, RELAY, SECOND_RELAY)
    domain.context(B, SECOND_RELAY, RELAY)
    domain.feed(B, AddReceiver("orders"))
    domain.feed(A, ORDERS)
    assert [(at, topic) for _, at, topic, _ in domain.found] == [(B, "orders")]


def test_store_names_are_not_ours_to_answer_yet() -> None:
    context = ResolutionContext.create(b"instance", [RELAY])
    query = lbmr.encode(lbmr.ContextInfo(flags=lbmr.ContextInfo.QUERY, name="store"))
    context.receive(DatagramArrived(query, RELAY), 0)
    assert context.take_effects() == []
    assert context.counters()["malformed"] == 0


def test_strangers_and_nonsense_are_counted_and_dropped() -> None:
    context = ResolutionContext.create(b"instance", [RELAY])
    context.receive(AddReceiver("orders"), 0)
    context.take_effects()
    domain = pair()
    domain.feed(A, ORDERS)
    tir = domain.sent[-1][3]
    context.receive(DatagramArrived(tir, SECOND_RELAY), 0)
    context.receive(DatagramArrived(tir[:-1], RELAY), 0)
    assert context.take_effects() == []
    context.receive(DatagramArrived(tir, RELAY), 0)
    assert context.take_effects() == [Discovered("orders", RECORD)]
    assert context.counters() == {"sent": 1, "received": 3, "malformed": 1, "unknown_sender": 1, "unusable": 0}


@given(st.binary(max_size=200), st.integers(0, 300), st.integers(0, 255))
@settings(max_examples=100)
def test_no_datagram_breaks_a_context(noise: bytes, at: int, octet: int) -> None:
    context = ResolutionContext.create(b"instance", [RELAY])
    context.receive(ORDERS, 0)
    context.receive(AddReceiver("orders"), 0)
    own = next(e.data for e in reversed(context.take_effects()) if isinstance(e, SendDatagram))
    for data in (noise, own[:at] + bytes([octet]) + own[at + 1 :]):
        context.receive(DatagramArrived(data, RELAY), 1)
        context.take_effects()
    assert context.counters()["received"] == 2


def test_a_context_needs_a_relay_and_a_name() -> None:
    with pytest.raises(MisuseError, match="relays, not 0"):
        ResolutionContext.create(b"instance", [])
    with pytest.raises(MisuseError, match="8 bytes"):
        ResolutionContext.create(b"", [RELAY])
    assert ResolutionContext.create(b"instance", [RELAY, RELAY]).relays.addresses == (RELAY,)


def test_nothing_to_do_at_all() -> None:
    context = ResolutionContext.create(b"instance", [RELAY])
    context.handle_timeout(SECOND)
    assert context.take_effects() == []
    assert context.next_timeout() is None


def test_same_inputs_same_effects() -> None:
    runs = []
    for _ in range(2):
        domain = pair()
        domain.feed(A, ORDERS)
        domain.feed(B, AddReceiver("orders"))
        domain.run(7 * SECOND)
        runs.append(domain.sent)
    assert runs[0] == runs[1]
