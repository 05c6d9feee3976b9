"""The relay: who gets what, who is a client for how long, what is dropped."""

from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.units import SECOND
from stablecast.transports.resolution.effects import SendDatagram
from stablecast.transports.resolution.inputs import DatagramArrived
from stablecast.transports.resolution.relay import CLIENT_TTL, RelayMachine
from stablecast.transports.wire import lbmr

A, B, C = "10.0.0.1:14402", "10.0.0.2:14402", "10.0.0.2:14403"
TRAILER = lbmr.standard_options(b"instance")


def packet(kind: lbmr.PacketKind, *topics: str) -> bytes:
    return lbmr.encode(lbmr.Packet(kind, tuple(map(lbmr.TopicQuery, topics)), (), TRAILER))


QUERY = packet(lbmr.PacketKind.NORMAL, "orders")
RECEIVER_ALIVE = packet(lbmr.PacketKind.RECEIVER_ALIVE)
SOURCE_ALIVE = packet(lbmr.PacketKind.SOURCE_ALIVE)
ANSWER = packet(lbmr.PacketKind.NORMAL)


def known(*clients: str) -> RelayMachine:
    """A relay that knows these clients since 0."""
    relay = RelayMachine(b"instance")
    for client in clients:
        relay.receive(DatagramArrived(RECEIVER_ALIVE, client), 0)
    relay.take_effects()
    return relay


def test_a_datagram_goes_to_all_others_byte_for_byte() -> None:
    """T28: without rules nothing is rewritten."""
    relay = known(A, B, C)
    relay.receive(DatagramArrived(QUERY, B), 1)
    assert relay.take_effects() == [SendDatagram(A, QUERY), SendDatagram(C, QUERY)]
    assert relay.counters()["forwarded"] == 1


def test_the_first_datagram_makes_a_client() -> None:
    relay = known()
    relay.receive(DatagramArrived(QUERY, A), 0)
    assert relay.take_effects() == []
    relay.receive(DatagramArrived(QUERY, B), 0)
    assert relay.take_effects() == [SendDatagram(A, QUERY)]


def test_keepalives_are_answered_and_go_no_further() -> None:
    relay = known(A, B)
    for alive in (RECEIVER_ALIVE, SOURCE_ALIVE):
        relay.receive(DatagramArrived(alive, A), 1)
        assert relay.take_effects() == [SendDatagram(A, ANSWER)]
    assert relay.counters()["keepalives"] == 4


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
        assert relay.take_effects() == [SendDatagram(B, data)]


def test_a_silent_client_is_forgotten_at_its_time_to_live() -> None:
    relay = known(A, B)
    relay.receive(DatagramArrived(QUERY, B), 10 * SECOND)
    relay.take_effects()
    assert relay.next_timeout() == CLIENT_TTL
    relay.handle_timeout(CLIENT_TTL - 1)
    assert relay.counters()["clients"] == 2
    relay.handle_timeout(CLIENT_TTL)
    assert relay.counters()["clients"] == 1
    assert relay.next_timeout() == CLIENT_TTL + 10 * SECOND
    relay.handle_timeout(CLIENT_TTL + 10 * SECOND)
    assert relay.next_timeout() is None
    assert relay.counters()["expired"] == 2


def test_a_datagram_of_a_late_driver_does_not_reach_the_forgotten() -> None:
    relay = known(A)
    relay.receive(DatagramArrived(QUERY, B), CLIENT_TTL)
    assert relay.take_effects() == []


def test_the_client_table_is_bounded() -> None:
    relay = RelayMachine(b"instance", max_clients=2)
    for client in (A, B, C, A):
        relay.receive(DatagramArrived(QUERY, client), 0)
    assert relay.take_effects() == [SendDatagram(A, QUERY), SendDatagram(B, QUERY)]
    assert relay.counters()["refused"] == 1
    relay.receive(DatagramArrived(QUERY, C), CLIENT_TTL)
    assert relay.counters()["clients"] == 1


def test_nonsense_is_counted_and_makes_nobody_a_client() -> None:
    relay = known(A)
    nonsense = (b"", b"\x10", QUERY[:-1], b"GET / HTTP/1.1\r\n\r\n", QUERY + bytes(lbmr.MAX_DATAGRAM))
    for data in nonsense:
        relay.receive(DatagramArrived(data, B), 1)
    assert relay.take_effects() == []
    assert relay.counters() == {
        "clients": 1,
        "received": 1 + len(nonsense),
        "forwarded": 0,
        "keepalives": 1,
        "malformed": len(nonsense),
        "refused": 0,
        "expired": 0,
    }


@given(st.lists(st.tuples(st.binary(max_size=60), st.sampled_from([A, B])), max_size=10))
@settings(max_examples=100)
def test_whatever_arrives_is_dropped_answered_or_forwarded_as_it_is(arrivals: list[tuple[bytes, str]]) -> None:
    relay = known(C)
    for data, sender in arrivals:
        relay.receive(DatagramArrived(data, sender), 1)
        for effect in relay.take_effects():
            assert effect == SendDatagram(sender, ANSWER) or (effect.data == data and effect.to != sender)
