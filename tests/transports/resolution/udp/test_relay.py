"""The relay: destinations, clients and their time to live, dropped datagrams."""

from ipaddress import IPv4Network

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.address_translation import AddressDomain, AddressRule, Transform, Translation
from stablecast.transports.resolution.udp.effects import Remark, SendCopies, SendDatagram
from stablecast.transports.resolution.udp.inputs import DatagramArrived
from stablecast.transports.resolution.udp.relay import (
    CHECK_INTERVAL,
    CLIENT_TTL,
    MAX_STRANGE,
    MAX_UNPROVEN,
    PATIENCE,
    VARIABLE,
    RelayConfig,
    RelayMachine,
)
from stablecast.transports.wire import lbmr

A, B, C = "10.0.0.1:14402", "10.0.0.2:14402", "10.0.0.2:14403"
TRAILER = lbmr.standard_options(b"instance")


def packet(kind: lbmr.PacketKind, *topics: str) -> bytes:
    return lbmr.encode(lbmr.Packet(kind, tuple(map(lbmr.TopicQuery, topics)), (), TRAILER))


QUERY = packet(lbmr.PacketKind.NORMAL, "orders")
RECEIVER_ALIVE = packet(lbmr.PacketKind.RECEIVER_ALIVE)
SOURCE_ALIVE = packet(lbmr.PacketKind.SOURCE_ALIVE)
ANSWER = packet(lbmr.PacketKind.NORMAL)


def prove(relay: RelayMachine, client: str, now: int = 0, alive: bytes = RECEIVER_ALIVE) -> bytes:
    """Send a keepalive, and another with the proof of the answer; return the answer."""
    relay.take_effects()
    relay.receive(DatagramArrived(alive, client), now)
    ((to, answer),) = sent(relay)
    assert to == client
    again = attrs.evolve(lbmr.decode(alive), options=lbmr.decode(answer).options)
    relay.receive(DatagramArrived(lbmr.encode(again), client), now)
    return answer


def known(*clients: str, config: RelayConfig | None = None) -> RelayMachine:
    """Return a relay that knows these clients since 0."""
    relay = RelayMachine(b"secret", config or RelayConfig())
    for client in clients:
        prove(relay, client)
    relay.take_effects()
    return relay


def sent(relay: RelayMachine) -> list[tuple[str, bytes]]:
    """Return copies and answers with their destinations."""
    found: list[tuple[str, bytes]] = []
    for effect in relay.take_effects():
        match effect:
            case SendCopies(to, data):
                found += ((client, data) for client in to)
            case SendDatagram(to, data):
                found.append((to, data))
    return found


def told(relay: RelayMachine) -> list[str]:
    return [effect.text for effect in relay.take_effects() if isinstance(effect, Remark)]


@pytest.mark.rows("T-214")
def test_a_datagram_goes_to_all_others_byte_for_byte() -> None:
    """T28: without rules nothing is rewritten."""
    relay = known(A, B, C)
    relay.receive(DatagramArrived(QUERY, B), 1)
    assert relay.take_effects() == [SendCopies((A, C), QUERY)]
    assert (relay.counters()["forwarded"], relay.counters()["copies"]) == (1, 2)


@pytest.mark.rows("T-213")
def test_an_address_becomes_a_client_when_it_brings_back_its_proof() -> None:
    """Nobody else gets a copy, whatever sender is written into datagrams. What it says is forwarded before that."""
    relay = known(A)
    relay.receive(DatagramArrived(QUERY, B), 0)
    assert sent(relay) == [(A, QUERY)]
    answer = prove(relay, B)
    assert relay.take_effects() == [Remark(f"client {B} is known"), SendDatagram(B, answer)]
    others = lbmr.encode(lbmr.Packet(lbmr.PacketKind.RECEIVER_ALIVE, (), (), lbmr.decode(answer).options))
    relay.receive(DatagramArrived(others, C), 0)
    relay.receive(DatagramArrived(QUERY, C), 0)
    assert relay.clients() == (A, B)
    assert prove(known(), B) != prove(RelayMachine(b"another"), B)


def test_an_unproven_address_gets_no_more_than_it_sent() -> None:
    relay = known(A)
    short = lbmr.encode(lbmr.Packet(lbmr.PacketKind.RECEIVER_ALIVE, (), (), ()))
    for alive in (RECEIVER_ALIVE, short):
        relay.receive(DatagramArrived(alive, B), 0)
        assert [len(data) <= len(alive) for to, data in sent(relay) if to == B] == [True]
    assert relay.counters()["unproven"] == 3


def test_a_stranger_that_is_no_client_cannot_flood_the_clients() -> None:
    """Each datagram is copied to all. A context that has just started sends a few before it has its proof."""
    relay = known(A, B)
    for number in range(MAX_STRANGE + 3):
        relay.receive(DatagramArrived(QUERY, C), SECOND + number)
    relay.receive(DatagramArrived(QUERY, B), SECOND + 9)
    assert sent(relay) == [(A, QUERY), (B, QUERY)] * MAX_STRANGE + [(A, QUERY)]
    assert (relay.counters()["strange"], relay.counters()["forwarded"]) == (3, MAX_STRANGE + 1)
    relay.receive(DatagramArrived(QUERY, C), 2 * SECOND)
    assert sent(relay) == [(A, QUERY), (B, QUERY)]


def test_an_operator_hears_of_a_context_that_proves_nothing() -> None:
    """It would else be deaf without a word. One that proves its address is never named. The 1st and 10th time count."""
    relay = known(A)
    for second in range(60):
        prove(relay, B, second * SECOND)
        relay.take_effects()
        relay.receive(DatagramArrived(RECEIVER_ALIVE, C), second * SECOND)
        due = second * SECOND in (PATIENCE, 10 * PATIENCE)
        assert [VARIABLE in line for line in told(relay)] == [True] * due
    for number in range(2 * MAX_UNPROVEN):
        relay.receive(DatagramArrived(RECEIVER_ALIVE, f"10.1.0.1:{number}"), 60 * SECOND)
    assert len(relay.unproven) == MAX_UNPROVEN


@pytest.mark.rows("T-213")
def test_contexts_of_other_makers_are_served_if_the_operator_says_so() -> None:
    relay = RelayMachine(b"secret", RelayConfig(proven=False))
    relay.receive(DatagramArrived(QUERY, A), 0)
    assert relay.take_effects() == [Remark(f"client {A} is known")]
    relay.receive(DatagramArrived(QUERY, B), 0)
    assert sent(relay) == [(A, QUERY)]
    assert relay.clients() == (A, B)


def test_a_client_that_only_others_speak_for_is_forgotten() -> None:
    """A context that left would else get copies for as long as somebody writes its address into datagrams."""
    relay = known(A)
    for second in range(59):
        relay.receive(DatagramArrived(QUERY, A), second * SECOND)
        relay.receive(DatagramArrived(RECEIVER_ALIVE, A), second * SECOND)
    relay.handle_timeout(CLIENT_TTL)
    assert relay.clients() == ()


def test_one_host_cannot_take_all_places() -> None:
    relay = known(B, C, config=RelayConfig(max_clients_of_host=2))
    prove(relay, "10.0.0.2:9")
    assert relay.counters()["refused"] == 1
    prove(relay, A)
    assert relay.clients() == (B, C, A)
    relay.handle_timeout(CLIENT_TTL)
    prove(relay, "10.0.0.2:9", CLIENT_TTL)
    assert relay.clients() == ("10.0.0.2:9",)


def test_keepalives_are_answered_and_go_no_further() -> None:
    relay = known(A, B)
    for alive in (RECEIVER_ALIVE, SOURCE_ALIVE):
        relay.receive(DatagramArrived(alive, A), 1)
        ((to, answer),) = sent(relay)
        assert (to, len(answer)) == (A, len(ANSWER))
    assert relay.counters()["keepalives"] == 6


def test_two_relays_cannot_talk_in_circles() -> None:
    relay = known(A, B)
    relay.receive(DatagramArrived(ANSWER, A), 1)
    assert relay.take_effects() == []


def test_other_resolution_traffic_is_forwarded_too() -> None:
    wildcard = lbmr.encode(lbmr.Packet(lbmr.PacketKind.WILDCARD, (lbmr.WildcardQuery(1, "^a"),), (), TRAILER))
    store_name = lbmr.encode(lbmr.ContextInfo(flags=lbmr.ContextInfo.QUERY, name="store", options=TRAILER))
    relay = known(A, B)
    for data in (wildcard, store_name):
        relay.receive(DatagramArrived(data, A), 1)
        assert sent(relay) == [(B, data)]


def test_kinds_that_are_not_known_here_are_forwarded() -> None:
    """A newer or larger product may send them through this relay."""
    relay = known(A, B)
    for octets in ("14 00 0000", "17 06 0000 00000000", "1d 00 0000 8408 8000 00000000 8004 000c"):
        relay.receive(DatagramArrived(bytes.fromhex(octets), A), 1)
        assert sent(relay) == [(B, bytes.fromhex(octets))]
    assert relay.counters()["foreign"] == 3


def tir(address: str, port: int) -> bytes:
    record = lbmr.Advertisement("orders", lbmr.TcpTransport(address, 7, port), 60, 1)
    return lbmr.encode(lbmr.Packet(lbmr.PacketKind.NORMAL, (), (record,), TRAILER))


@pytest.mark.rows("T-221", "T-222", "T-223")
def test_rules_rewrite_what_goes_to_the_other_domain() -> None:
    """T28: A to B is translated; A to A, B to A, B to B and to strangers is not."""
    inside, neighbour, outside, stranger = "10.1.1.50:14402", "10.1.1.51:1", "192.168.1.7:14402", "172.16.0.1:1"
    translation = Translation(
        (AddressDomain("A", (IPv4Network("10.1.0.0/16"),)), AddressDomain("B", (IPv4Network("192.168.1.0/24"),))),
        (Transform("A", "B", (AddressRule("10.1.1.50", 0, "192.168.1.1", 0),)),),
    )
    relay = known(inside, neighbour, outside, stranger, config=RelayConfig(translation=translation))
    from_inside, from_outside = tir("10.1.1.50", 12001), tir("192.168.1.7", 12100)
    relay.receive(DatagramArrived(from_inside, inside), 1)
    assert sent(relay) == [
        (neighbour, from_inside),
        (outside, tir("192.168.1.1", 12001)),
        (stranger, from_inside),
    ]
    relay.receive(DatagramArrived(from_outside, outside), 1)
    assert sent(relay) == [(inside, from_outside), (neighbour, from_outside), (stranger, from_outside)]
    for data in (QUERY, bytes.fromhex("14 00 0000")):
        relay.receive(DatagramArrived(data, inside), 1)
        assert [copy for _, copy in sent(relay)] == [data] * 3
    assert relay.counters()["rewritten"] == 1


@pytest.mark.rows("T-213", "T-216")
def test_a_silent_client_is_forgotten_at_the_first_check_after_its_time_to_live() -> None:
    """Client table only."""
    relay = known(A, B)
    prove(relay, B, 10 * SECOND)
    relay.take_effects()
    assert relay.next_timeout() == CLIENT_TTL
    relay.handle_timeout(CLIENT_TTL - 1)
    assert relay.counters()["clients"] == 2
    relay.handle_timeout(CLIENT_TTL)
    assert relay.counters()["clients"] == 1
    assert told(relay) == [f"client {A} is forgotten: it was silent"]
    assert relay.next_timeout() == CLIENT_TTL + CHECK_INTERVAL
    relay.handle_timeout(CLIENT_TTL + CHECK_INTERVAL)
    assert relay.next_timeout() is None
    assert relay.counters()["expired"] == 2


def test_a_datagram_of_a_late_driver_does_not_reach_the_forgotten() -> None:
    relay = known(A)
    relay.receive(DatagramArrived(QUERY, B), CLIENT_TTL)
    assert sent(relay) == []


def test_the_client_table_is_bounded() -> None:
    relay = known(A, B, C, A, config=RelayConfig(max_clients=2))
    assert (relay.clients(), relay.counters()["refused"]) == ((B, A), 1)
    prove(relay, C, CLIENT_TTL)
    assert relay.clients() == (C,)


def test_nonsense_is_counted_and_makes_nobody_a_client() -> None:
    relay = known(A)
    nonsense = (b"", b"\x10", QUERY[:5], b"GET / HTTP/1.1\r\n\r\n", QUERY + bytes(lbmr.MAX_DATAGRAM))
    for data in nonsense:
        relay.receive(DatagramArrived(data, B), 1)
    assert [text for text in told(relay) if "dropped" in text] == [
        f"a datagram from {B} is dropped: a datagram of 0 bytes is no packet (1 so far)"
    ]
    assert relay.counters() == {
        "clients": 1,
        "received": 2 + len(nonsense),
        "forwarded": 0,
        "copies": 0,
        "rewritten": 0,
        "keepalives": 2,
        "unproven": 1,
        "excluded": 0,
        "strange": 0,
        "foreign": 0,
        "malformed": len(nonsense),
        "refused": 0,
        "expired": 0,
    }


def test_the_whole_records_of_a_malformed_datagram_are_forwarded() -> None:
    """tr.md, lbmrd: the remainder is dropped and logged."""
    relay = known(A)
    relay.receive(DatagramArrived(QUERY[:-1], B), 1)
    ((to, octets),) = sent(relay)
    packet, whole = lbmr.decode(octets), lbmr.decode(QUERY)
    assert isinstance(packet, lbmr.Packet)
    assert isinstance(whole, lbmr.Packet)
    assert (to, packet.queries, packet.options) == (A, whole.queries, ())
    assert (relay.counters()["malformed"], relay.counters()["forwarded"]) == (1, 1)


@given(st.lists(st.tuples(st.binary(max_size=60), st.sampled_from([A, B])), max_size=10))
@settings(max_examples=100)
def test_whatever_arrives_is_dropped_answered_or_forwarded_as_far_as_it_is_whole(
    arrivals: list[tuple[bytes, str]],
) -> None:
    relay = known(C)
    for data, sender in arrivals:
        relay.receive(DatagramArrived(data, sender), 1)
        for to, octets in sent(relay):
            whole = data if lbmr.is_foreign(data) else lbmr.encode(lbmr.decode_partly(data).packet)
            answer = to == sender and len(octets) <= len(data)
            assert answer or (octets == whole and to != sender)
