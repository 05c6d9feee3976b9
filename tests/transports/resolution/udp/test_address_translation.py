"""Addresses in other networks."""

from ipaddress import IPv4Network

import pytest

from stablecast.transports.resolution.udp.address_translation import (
    ANY_PORT,
    AddressDomain,
    AddressRule,
    Transform,
    Translation,
    rewritten,
)
from stablecast.transports.wire import lbmr

RULES = (
    AddressRule("10.1.1.50", 12001, "192.168.1.1", 12005),
    AddressRule("10.1.1.50", ANY_PORT, "192.168.1.1", ANY_PORT),
    AddressRule("10.1.1.50", 9, "192.168.1.9", 9),
)
TRANSLATION = Translation(
    (AddressDomain("A", (IPv4Network("10.1.0.0/16"),)), AddressDomain("B", (IPv4Network("192.168.1.0/24"),))),
    (Transform("A", "B", RULES),),
)


def packet(*transports: lbmr.Transport, options: tuple[lbmr.TirOption, ...] = ()) -> lbmr.Packet:
    tirs = tuple(lbmr.Advertisement("orders", transport, 60, 1, options) for transport in transports)
    return lbmr.Packet(lbmr.PacketKind.NORMAL, (lbmr.TopicQuery("trades"),), tirs)


@pytest.mark.rows("T-222")
def test_clients_belong_to_the_first_domain_that_holds_them() -> None:
    assert [TRANSLATION.domain_of(client) for client in ("10.1.1.50:1", "192.168.1.7:1", "10.2.0.1:1")] == [
        "A",
        "B",
        "",
    ]


@pytest.mark.rows("T-223")
def test_rules_have_a_direction() -> None:
    """T28."""
    assert TRANSLATION.rules("A", "B") == RULES
    for pair in (("B", "A"), ("A", "A"), ("", "B"), ("A", "")):
        assert TRANSLATION.rules(*pair) == ()


@pytest.mark.parametrize("kind", [lbmr.TcpTransport, lbmr.LbtruTransport])
def test_the_first_rule_that_matches_counts(kind: type[lbmr.TcpTransport]) -> None:
    """T28: address and port, or any port, which then stays."""
    before = packet(*(kind("10.1.1.50", 7, port) for port in (12001, 9)), kind("10.1.1.51", 7, 12001))
    after = rewritten(before, RULES)
    places = [(tir.transport.address, tir.transport.port) for tir in after.advertisements]  # type: ignore[union-attr]
    assert places == [("192.168.1.1", 12005), ("192.168.1.1", 9), ("10.1.1.51", 12001)]
    assert after.queries == before.queries


def test_the_request_address_is_rewritten_too() -> None:
    request = lbmr.ExtendedFunctionality(source_port=14391, source_address="10.1.1.50", functionality=3)
    options = (lbmr.ContextInstance(instance=b"instance"), request)
    (tir,) = rewritten(packet(lbmr.TcpTransport("10.9.9.9", 7, 1), options=options), RULES).advertisements
    assert tir.options == (
        options[0],
        lbmr.ExtendedFunctionality(source_port=14391, source_address="192.168.1.1", functionality=3),
    )


def test_a_packet_without_matching_rule_stays_the_same_object() -> None:
    for same in (
        packet(lbmr.TcpTransport("10.9.9.9", 7, 1)),
        packet(lbmr.LbtrmTransport("10.1.1.50", "224.1.1.1", 1, 2, 3)),
        packet(),
    ):
        assert rewritten(same, RULES) is same
