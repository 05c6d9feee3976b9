"""One context: discovery, answers, keepalives, failing relays, groups, names, bad datagrams."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.records import SourceRecord, named
from stablecast.transports.resolution.udp.carriers import DEFAULT_GROUP, MulticastGroup
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.effects import (
    Discovered,
    Listen,
    Remark,
    SendDatagram,
    Withdrawn,
)
from stablecast.transports.resolution.udp.inputs import (
    AddPattern,
    AddReceiver,
    AddSource,
    DatagramArrived,
    FollowRoutes,
    RemoveReceiver,
    RemoveSource,
    Resolved,
    Unresolved,
)
from stablecast.transports.resolution.udp.presets import PRESETS
from stablecast.transports.resolution.udp.settings import (
    SAFE,
    AdvertiseOptions,
    CacheOptions,
    RateLimit,
    RelayTimes,
    ResolutionLimits,
)
from stablecast.transports.wire import lbmr
from tests.transports.resolution.domain import RELAY, SECOND_RELAY, Domain
from tests.transports.resolution.virtual import ADVERTISEMENTS, MS, QUERIES

KEEPALIVE_INTERVAL, ACTIVITY_TIMEOUT = SAFE.relays.keepalive, SAFE.relays.activity_timeout
A, B = "10.0.0.1:14402", "10.0.0.2:14402"
ORDERS = AddSource("orders", "10.0.0.1:14371", 7, 1, "10.0.0.1:14391", persistent=True)
RECORD = named(SourceRecord("10.0.0.1:14371", 7, 1, "10.0.0.1:14391", persistent=True, instance=b"10.0.0.1"))


def pair() -> Domain:
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


@pytest.mark.rows("T-004", "T-028")
def test_a_receiver_finds_sources_that_its_context_knows_at_once() -> None:
    """No wait."""
    domain = pair()
    domain.feed(B, AddReceiver("trades"))
    domain.feed(A, ORDERS)
    domain.run(SECOND + MS)
    domain.feed(B, AddReceiver("orders"))
    assert domain.found == [(SECOND + MS, B, "orders", RECORD)]


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
    """T26 must not happen here: no side becomes quiescent."""
    domain = pair()
    domain.down = {RELAY}
    domain.feed(A, ORDERS)
    domain.feed(B, AddReceiver("orders"))
    domain.run(300 * SECOND)
    assert domain.found == []
    domain.down = set()
    domain.run(300 * SECOND + KEEPALIVE_INTERVAL + SECOND)
    assert [(at, topic) for _, at, topic, _ in domain.found] == [(B, "orders")]


@pytest.mark.rows("T-017")
def test_a_restarted_relay_learns_its_clients_again() -> None:
    """It has no other state to lose."""
    domain = pair()
    domain.feed(A, ORDERS)
    domain.feed(B, AddReceiver("orders"))
    domain.feed(B, Resolved("orders"))
    domain.run(100 * SECOND + MS)
    domain.relay()
    domain.feed(A, attrs.evolve(ORDERS, index=2))
    domain.run(100 * SECOND + MS + KEEPALIVE_INTERVAL + SECOND)
    assert [record.index for _, _, _, record in domain.found] == [1, 2]


@pytest.mark.rows("T-215")
def test_keepalives_say_what_the_context_has_and_stop_with_it() -> None:
    """With a relay that answers."""
    domain = pair()
    domain.run(SECOND)
    assert domain.sent == []
    domain.feed(A, AddReceiver("orders"))
    domain.feed(A, Resolved("orders"))
    domain.run(8 * SECOND)
    alive = [at for at, _ in packets(domain, A, lbmr.PacketKind.RECEIVER_ALIVE)]
    assert alive == [1000, *range(1000, 8001, 500)]  # The second brings back the proof of the relay's answer.
    domain.feed(A, ORDERS)
    domain.run(18 * SECOND)
    assert [at for at, _ in packets(domain, A, lbmr.PacketKind.SOURCE_ALIVE)] == [*range(8500, 18_001, 500)]
    domain.feed(A, RemoveSource(7, 1))
    domain.feed(A, RemoveReceiver("orders"))
    silent = len(domain.sent)
    domain.run(60 * SECOND)
    assert len(domain.sent) == silent
    domain.run(180 * SECOND)
    assert domain.nodes[RELAY].counters()["clients"] == 0


@pytest.mark.rows("T-217")
def test_a_context_may_keep_itself_known_from_the_start() -> None:
    """Resolver_unicast_force_alive."""
    context = ResolutionContext.over_relays(
        b"instance", [RELAY], attrs.evolve(SAFE, relays=RelayTimes(force_alive=True))
    )
    context.handle_timeout(0)
    listen, alive = context.take_effects()
    assert listen == Listen(on=True)
    assert isinstance(alive, SendDatagram)


def test_a_context_that_sends_to_another_domain_stays_known_without_topics() -> None:
    """Otherwise a relay would not tell it the routes: that of a reader, for example."""
    context = ResolutionContext.over_relays(b"instance", [RELAY], SAFE)
    context.handle_timeout(0)
    assert context.take_effects() == []
    context.receive(FollowRoutes(), 0)
    listen, alive = context.take_effects()
    assert listen == Listen(on=True)
    assert isinstance(alive, SendDatagram)
    context.handle_timeout(60 * SECOND)
    assert Listen(on=False) not in context.take_effects()


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
    domain.run(20 * SECOND + 2 * ACTIVITY_TIMEOUT)
    domain.feed(A, attrs.evolve(ORDERS, index=2))
    assert [(at, record.index) for _, at, _, record in domain.found] == [(B, 2)]
    remarks = [(at, remark) for _, at, remark in domain.others if isinstance(remark, Remark) and remark.warning]
    assert remarks == [(at, Remark(f"unicast resolver {RELAY} went inactive", warning=True)) for at in (A, B)]


def test_contexts_at_different_relays_find_each_other() -> None:
    domain = Domain()
    domain.relay()
    domain.relay(SECOND_RELAY)
    domain.context(A, RELAY, SECOND_RELAY)
    domain.context(B, SECOND_RELAY, RELAY)
    domain.feed(B, AddReceiver("orders"))
    domain.feed(A, ORDERS)
    assert [(at, topic) for _, at, topic, _ in domain.found] == [(B, "orders")]


@pytest.mark.rows("T-007", "T-022")
def test_a_group_is_joined_when_there_is_something_to_resolve() -> None:
    """All members receive all datagrams; own ones that return are dropped."""
    domain = Domain()
    domain.member(A)
    domain.member(B)
    assert domain.listening == set()
    domain.feed(A, ORDERS)
    assert domain.listening == {A}
    domain.run(SECOND)
    domain.feed(B, AddReceiver("orders"))
    domain.run(SECOND + 20 * MS)
    assert [(at, topic) for _, at, topic, _ in domain.found] == [(B, "orders")]
    assert {to for _, _, to, _ in domain.sent} == {DEFAULT_GROUP}
    counters = domain.nodes[A].counters()
    assert (counters["own"], counters["malformed"]) == (counters["sent"], 0)
    domain.feed(A, RemoveSource(7, 1))
    assert domain.listening == {B}


def test_a_group_that_nobody_else_is_in() -> None:
    context = ResolutionContext.create(b"instance", MulticastGroup())
    assert context.why("orders") == "no receiver wants it"
    context.receive(AddReceiver("orders"), 0)
    assert context.why("orders") == f"no other context was heard in the group {DEFAULT_GROUP}"


@pytest.mark.rows("T-031")
def test_patterns_find_sources_of_others_and_of_ours() -> None:
    domain = pair()
    domain.feed(A, ORDERS)
    domain.run(20 * SECOND)
    for address in (A, B):
        domain.feed(address, AddPattern("^ord"))
    domain.run(21 * SECOND)
    assert sorted((at, topic) for _, at, topic, _ in domain.found) == [(A, "orders"), (B, "orders")]
    assert {at for at, _ in packets(domain, B, lbmr.PacketKind.WILDCARD)} >= {20_010, 20_070}


def test_our_own_queries_find_our_own_silent_sources() -> None:
    """Without cache and advertisements nothing else reveals them."""
    silent = PRESETS["query-centric"].config
    assert silent is not None
    context = ResolutionContext.over_relays(b"instance", [RELAY], attrs.evolve(silent, cache=CacheOptions(on=False)))
    context.receive(ORDERS, 0)
    context.receive(AddPattern("^ord"), 1)
    assert not any(isinstance(effect, Discovered) for effect in context.take_effects())
    context.handle_timeout(30 * MS)
    assert Discovered("orders", named(attrs.evolve(RECORD, instance=b"instance", origin=b""))) in context.take_effects()


def test_our_own_receivers_hear_of_the_end() -> None:
    domain = pair()
    domain.feed(A, ORDERS)
    domain.feed(A, AddReceiver("orders"))
    domain.feed(A, RemoveSource(7, 1))
    domain.feed(A, RemoveSource(7, 1))
    assert [effect for _, _, effect in domain.others if isinstance(effect, Withdrawn)] == [Withdrawn("orders", RECORD)]


def test_a_final_advertisement_leaves_before_the_context_falls_silent() -> None:
    """The final advertisement waits for its limit."""
    slow = attrs.evolve(
        SAFE,
        advertise=AdvertiseOptions(at_end=True),
        limits=ResolutionLimits(initial_advertisements=RateLimit(records=10, bits=0)),
    )
    domain = Domain()
    domain.member(A, slow)
    domain.feed(A, ORDERS)
    domain.feed(A, RemoveSource(7, 1))
    assert domain.listening == {A}
    domain.run(SECOND)
    assert [tir.ttl for _, packet in packets(domain, A) for tir in packet.advertisements] == [16, 0]
    assert domain.listening == set()


@given(st.binary(max_size=200), st.integers(0, 300), st.integers(0, 255))
@settings(max_examples=100)
def test_no_datagram_breaks_a_context(noise: bytes, at: int, octet: int) -> None:
    context = ResolutionContext.over_relays(b"instance", [RELAY])
    context.receive(ORDERS, 0)
    context.receive(AddReceiver("orders"), 0)
    own = next(e.data for e in reversed(context.take_effects()) if isinstance(e, SendDatagram))
    for data in (noise, own[:at] + bytes([octet]) + own[at + 1 :]):
        context.receive(DatagramArrived(data, RELAY), 1)
        context.take_effects()
    assert context.counters()["received"] == 2


def test_a_context_needs_a_relay_and_a_name() -> None:
    with pytest.raises(MisuseError, match="relays, not 0"):
        ResolutionContext.over_relays(b"instance", [])
    with pytest.raises(MisuseError, match="8 bytes"):
        ResolutionContext.over_relays(b"", [RELAY])
    with pytest.raises(MisuseError, match="8 bytes"):
        ResolutionContext.create(b"", MulticastGroup())
    twice = ResolutionContext.over_relays(b"instance", [RELAY, RELAY])
    twice.receive(AddReceiver("orders"), 0)
    assert len([effect for effect in twice.take_effects() if isinstance(effect, SendDatagram)]) == 1


def test_nothing_to_do_at_all() -> None:
    context = ResolutionContext.over_relays(b"instance", [RELAY])
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
