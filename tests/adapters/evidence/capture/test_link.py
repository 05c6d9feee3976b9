"""The IPv4 packet behind each link layer."""

import pytest

from stablecast.evidence.capture.link import IPV4, LOOP, PPP, PPP_HDLC, ipv4_packet, is_ipv6
from tests.support.captures import COOKED, COOKED_2, ETHERNET, NULL, RAW, framed

PACKET = b"\x45 and the rest"


@pytest.mark.parametrize("link", [ETHERNET, NULL, RAW, COOKED, COOKED_2])
def test_each_link_layer_is_passed_over(link: int) -> None:
    assert ipv4_packet(link, framed(link, PACKET)) == PACKET


@pytest.mark.parametrize("link", [12, 14, IPV4])
def test_other_numbers_of_raw_ip(link: int) -> None:
    assert ipv4_packet(link, PACKET) == PACKET


@pytest.mark.parametrize("link", [ETHERNET, COOKED, COOKED_2])
@pytest.mark.parametrize("tags", [1, 2, 4, 32])
def test_vlan_tags_are_passed_over(link: int, tags: int) -> None:
    assert ipv4_packet(link, framed(link, PACKET, tags)) == PACKET


@pytest.mark.parametrize(
    ("link", "head"),
    [
        (PPP, b"\x00\x21"),
        (PPP, b"\x21"),
        (PPP, b"\xff\x03\x00\x21"),
        (PPP_HDLC, b"\xff\x03\x21"),
        (ETHERNET, bytes(12) + b"\x88\x64\x11\0\0\1\0\x0e\x00\x21"),
    ],
)
def test_ppp_may_leave_out_what_is_always_the_same(link: int, head: bytes) -> None:
    assert ipv4_packet(link, head + PACKET) == PACKET
    assert ipv4_packet(link, head) is None
    assert ipv4_packet(link, head[:-1] + b"\x57" + PACKET) is None


def test_the_family_stands_in_either_byte_order() -> None:
    assert ipv4_packet(LOOP, b"\0\0\0\x02" + PACKET) == PACKET


@pytest.mark.parametrize(
    ("link", "octets"),
    [
        (147, PACKET),  # a link type that is not read
        (RAW, b""),
        (RAW, b"\x60 version 6"),
        (ETHERNET, b"short"),
        (ETHERNET, bytes(12) + b"\x86\xdd" + PACKET),
        (ETHERNET, framed(ETHERNET, PACKET, 33)),
        (ETHERNET, bytes(12) + b"\x88\x47" + b"\0\0\x10\x40" * 40 + PACKET),
        (ETHERNET, (bytes(12) + b"\x88\x47\0\0\x11\x40\0\0\0\0") * 3 + PACKET),
        (COOKED_2, b"\x86\xdd" + bytes(18) + PACKET),
        (NULL, b"\x1e\0\0\0" + PACKET),
        (ETHERNET, framed(ETHERNET, b"")),
    ],
)
def test_other_packets_are_none(link: int, octets: bytes) -> None:
    assert ipv4_packet(link, octets) is None


@pytest.mark.parametrize(
    ("link", "octets"),
    [
        (RAW, b"\x60 version 6"),
        (ETHERNET, bytes(12) + b"\x81\0\0\5\x86\xdd\x60"),
        (COOKED_2, b"\x86\xdd" + bytes(18) + b"\x60"),
        (NULL, b"\x1e\0\0\0\x60"),
        (LOOP, b"\0\0\0\x18\x60"),
    ],
)
def test_ipv6_is_known_as_such(link: int, octets: bytes) -> None:
    assert ipv4_packet(link, octets) is None
    assert is_ipv6(link, octets)
    assert not is_ipv6(link, PACKET)
