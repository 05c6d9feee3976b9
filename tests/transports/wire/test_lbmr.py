"""Packets of topic resolution: encode and decode are inverse both ways, bad bytes give WireError only."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire import lbmr
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmr import (
    MAX_DATAGRAM,
    Advertisement,
    ContextInfo,
    LbtrmTransport,
    Packet,
    PacketKind,
    PatternLanguage,
    SourceType,
    TcpTransport,
    TopicQuery,
    WildcardQuery,
    decode,
    encode,
    standard_options,
)
from tests.support.layouts import mutations
from tests.support.packets import PACKETS

BROKEN = st.one_of(st.binary(max_size=64), PACKETS.map(encode).flatmap(mutations))
TCP = TcpTransport("10.0.0.1", 0x55, 14371)
INSTANCE = b"CTXINST1"
GROWTH = 64
"""Bytes that decoding may allocate for each byte of input; one object per byte is the worst."""


@given(PACKETS)
def test_decoding_undoes_encoding(packet: lbmr.AnyPacket) -> None:
    assert decode(encode(packet)) == packet


@given(BROKEN)
def test_encoding_undoes_decoding(octets: bytes) -> None:
    try:
        packet = decode(octets)
    except WireError:
        return
    assert encode(packet) == octets


def test_the_trailer_is_the_observed_one() -> None:
    octets = encode(Packet(PacketKind.NORMAL, (TopicQuery("orders/1"),), (), standard_options(INSTANCE)))
    trailer = "810c 8000 43545849 4e535431  8204 80 00  8308 8001 060e0000  8408 8000 00000000  8004 0024"
    assert octets == b"\x18\x01\0\0orders/1\0" + bytes.fromhex(trailer)


def test_an_advertisement_is_the_observed_one() -> None:
    otid = bytes(range(32))
    options = (
        lbmr.OriginatingTransport(otid=otid),
        lbmr.ExtendedFunctionality(source_port=14391, source_address="10.0.0.1", functionality=0),
    )
    rm = LbtrmTransport("10.0.0.1", "224.10.10.10", 0x11223344, 14400, 14390)
    octets = encode(Packet(PacketKind.NORMAL, (), (Advertisement("a", rm, 16, 4711, options),)))
    assert octets.hex(" ", 4) == (
        bytes.fromhex("10 00 0001 61 00 90 10 0010 00001267 00 04 0038 08 24 8000")
        + otid
        + bytes.fromhex("0e 10 8000 3837 0000 0a000001 00000000  0a000001 e00a0a0a 11223344 3840 3836")
    ).hex(" ", 4)


def test_a_keepalive_has_no_records() -> None:
    assert encode(Packet(PacketKind.NORMAL)) == b"\x10\0\0\0"
    assert decode(b"\x10\0\0\0") == Packet(PacketKind.NORMAL)


def test_the_older_version_is_read() -> None:
    assert decode(b"\0\1\0\0q\0") == Packet(PacketKind.NORMAL, (TopicQuery("q"),), version=0)


def test_a_transport_without_session_is_shorter() -> None:
    old = Packet(PacketKind.NORMAL, (), (Advertisement("a", TcpTransport("10.0.0.1", None, 14371), 60, 1),))
    assert encode(old).endswith(bytes.fromhex("00 00 06 003c 00000001 0a000001 3823"))
    assert decode(encode(old)) == old


def test_a_wildcard_query_names_its_language() -> None:
    packet = Packet(PacketKind.WILDCARD, (WildcardQuery(PatternLanguage.PCRE, "^orders/.*"),))
    assert encode(packet) == b"\x11\1\0\0\1^orders/.*\0"


@pytest.mark.parametrize(
    "octets",
    [
        "",
        "10 00 00",
        "20 00 0000",  # version 2
        "14 00 0000",  # topic management
        "15 00 0000",  # no such kind
        "16 00 0000",  # queue resolution
        "17 01 0000",  # another extended packet
        "17 04 0004 00",  # a byte behind a request
        "10 00 0000 00",  # a byte behind the last record
        "10 01 0000 71",  # a name without NUL
        "10 02 0000 71 00",  # one query of two
        "11 01 0000",  # a wildcard query without its type
        "12 01 0000 71 00",  # alive, with a query
        "13 00 0001 71 00",  # alive, with an advertisement
        "10 00 0001 61 00 00 05 003c 00000001 0a000001 38",  # transport length 5
        "10 00 0001 61 00 00 0b 003c 00000001 0a000001 00000000 382300",  # transport length 11
        "10 00 0001 61 00 00 0a 003c 00000001 0a000001 3823",  # transport cut off
        "10 00 0001 61 00 80 06 003c 00000001 00 04 0004 0a000001 3823",  # no options in the options
        "10 00 0001 61 00 80 06 003c 00000001 01 04 0008 0d 04 0000 0a000001 3823",  # no length first
        "10 00 0001 61 00 80 06 003c 00000001 00 04 0008 0d 00 8000 0a000001 3823",  # option length 0
        "10 00 0001 61 00 80 06 003c 00000001 00 04 0008 0d 03 8000 0a000001 3823",  # option length 3
        "10 00 0001 61 00 80 06 003c 00000001 00 04 0008 0d 04 8000 0a000001 3823",  # shorter than its layout
        "10 00 0001 61 00 80 06 003c 00000001 00 04 0008 00 04 8000 0a000001 3823",  # a second length
        "10 00 0001 61 00 80 06 003c 00000001 00 04 0002 0a000001 3823",  # a length shorter than itself
        "10 00 0001 61 00 80 06 003c 00000001 00 04 ffff 0a000001 3823",  # options longer than the packet
        "18 00 0000",  # the trailer is missing
        "18 00 0000 80 04 0004",  # an empty one
        "18 00 0000 82 04 8000 80 04 0010",  # longer than the packet
        "18 00 0000 82 00 8000 80 04 0008",  # option length 0
        "18 00 0000 82 05 8000 80 04 0008",  # into the length
        "18 00 0000 82 04 8000 81 04 0008",  # not the length option
        "17 03 15 00 0000 0000 00000000 0000000000000000",  # another length than it has
    ],
)
def test_malformed_packets_are_refused(octets: str) -> None:
    with pytest.raises(WireError):
        decode(bytes.fromhex(octets))


@pytest.mark.parametrize(
    "packet",
    [
        Packet(PacketKind.NORMAL, (WildcardQuery(1, "x"),)),
        Packet(PacketKind.WILDCARD, (TopicQuery("x"),)),
        Packet(PacketKind.SOURCE_ALIVE, (TopicQuery("x"),)),
        Packet(PacketKind.RECEIVER_ALIVE, (), (Advertisement("a", TCP, 60, 1),)),
        Packet(PacketKind.NORMAL, (TopicQuery("a\0b"),)),
        Packet(PacketKind.NORMAL, (TopicQuery("\ud800"),)),
        Packet(PacketKind.NORMAL, (TopicQuery("x"),) * 256),
        Packet(PacketKind.NORMAL, (TopicQuery("x" * MAX_DATAGRAM),)),
        Packet(PacketKind.WILDCARD, (WildcardQuery(256, "x"),)),
        Packet(PacketKind.NORMAL, (), (Advertisement("a", TCP, 1 << 16, 1),)),
        Packet(PacketKind.NORMAL, (), (Advertisement("a", TCP, 60, -1),)),
        Packet(PacketKind.NORMAL, (), (Advertisement("a", lbmr.UnknownTransport(0x40, bytes(256)), 60, 1),)),
        Packet(PacketKind.NORMAL, (), (Advertisement("a", lbmr.UnknownTransport(0x80, b""), 60, 1),)),
        Packet(PacketKind.NORMAL, (), (Advertisement("a", lbmr.UnknownTransport(0x10, b""), 60, 1),)),
        Packet(PacketKind.NORMAL, (), (Advertisement("a", TCP, 60, 1, (lbmr.UnknownOption(200, b"x"),)),)),
        Packet(PacketKind.NORMAL, options=(lbmr.UnknownOption(128, b"xx"),)),
        Packet(PacketKind.NORMAL, options=(lbmr.UnknownOption(200, bytes(254)),)),
        Packet(PacketKind.NORMAL, options=(lbmr.UnknownOption(200, bytes(253)),) * 300),
        Packet(PacketKind.NORMAL, options=standard_options(b"short")),
        Packet(PacketKind.NORMAL, version=2),
        ContextInfo(flags=ContextInfo.NAME, name="store-A"),
        ContextInfo(flags=1 << 16),
        ContextInfo(flags=0, instance=b"short"),
        ContextInfo(flags=0, address="store-A"),
        ContextInfo(flags=0, name="x" * 235),
        lbmr.ResolutionRequest(flags=1 << 16),
    ],
    ids=range(26),
)
def test_packets_that_cannot_be_are_refused(packet: lbmr.AnyPacket) -> None:
    with pytest.raises(WireError):
        encode(packet)


@pytest.mark.parametrize(
    ("octets", "foreign"),
    [
        ("14 00 0000", True),  # topic management
        ("15 00 0000", True),
        ("16 00 0000", True),  # queues
        ("17 01 0000", True),  # a proxy election
        ("0f 06 0000 8408 8000 00000000 8004 000c", True),  # a route, of an older release
        ("17 03 0000", False),
        ("17 04 0000", False),
        ("10 00 0000", False),
        ("24 00 0000", False),  # version 2
        ("1c 00 0000", False),  # no trailer where one is told of
        ("14 00 00", False),
    ],
)
def test_packets_of_other_kinds_differ_from_malformed_ones(octets: str, foreign: bool) -> None:
    assert lbmr.is_foreign(bytes.fromhex(octets)) is foreign


QQ = "71 00 72 00"
GOOD = "61 00 00 06 003c 00000001 0a000001 3823"
ODD = "62 00 00 05 003c 00000001 0a000001 38"
TRAILER = "84 08 8000 00000000 80 04 000c"


@pytest.mark.parametrize(
    ("octets", "names", "told"),
    [
        (f"10 02 0002 {QQ} {GOOD} {GOOD}", "qraa", None),
        (f"10 02 0003 {QQ} {GOOD} {ODD} {GOOD}", "qraa", "the advertisement of 'b'"),
        (f"18 02 0002 {QQ} {ODD} {GOOD} {TRAILER}", "qra", "the advertisement of 'b'"),
        (f"10 02 0002 {QQ} {GOOD} 62 00 00 06 003c", "qra", "8 bytes are announced where 4 are left"),
        (f"10 02 0002 {QQ} {GOOD} {GOOD[:-2]}", "qra", "6 bytes are announced where 5 are left"),
        (f"10 03 0000 {QQ} 73", "qr", "a name has no end"),
        ("11 02 0000 01 71 00 01 72", "q", "a name has no end"),
        (f"10 02 0000 {QQ} 00", "qr", "1 bytes follow the last record"),
        (f"18 02 0000 {QQ} {TRAILER[:-5]}", "qr", "the packet does not end with the length of its options"),
        (f"18 02 0000 {QQ} 84 09 8000 80 04 0008", "qr", "option 132 cannot be 9 bytes long here"),
    ],
)
def test_the_valid_records_of_a_malformed_packet_are_decoded(octets: str, names: str, told: str | None) -> None:
    """A malformed advertisement is skipped; a record without end ends the packet; a bad trailer has no options."""
    reading = lbmr.decode_partly(bytes.fromhex(octets))
    packet = reading.packet
    assert isinstance(packet, Packet)
    found = [query.name if isinstance(query, TopicQuery) else query.pattern for query in packet.queries]
    assert "".join((*found, *(tir.name for tir in packet.advertisements))) == names
    assert (reading.fault is None) is (told is None)
    assert str(reading.fault or "").startswith(told or "")


@given(BROKEN)
def test_the_decoded_part_of_a_mutilated_packet_is_a_packet(octets: bytes) -> None:
    """Relays can encode and forward the valid part of a malformed datagram."""
    try:
        packet = lbmr.decode_partly(octets).packet
    except WireError:
        return
    assert decode(encode(packet)) == packet


def test_a_request_wakes_what_went_quiet() -> None:
    request = lbmr.ResolutionRequest(flags=lbmr.ResolutionRequest.ADVERTISEMENTS | lbmr.ResolutionRequest.QUERIES)
    assert encode(request) == bytes.fromhex("17 04 0006")
    assert decode(encode(request)) == request


def test_a_long_datagram_is_refused() -> None:
    with pytest.raises(WireError, match=f"{MAX_DATAGRAM + 1} bytes"):
        decode(b"\x10\1\0\0" + b"x" * (MAX_DATAGRAM - 4) + b"\0")


def test_a_flag_of_context_information_marks_the_name() -> None:
    info = ContextInfo(
        flags=ContextInfo.ADDRESS | ContextInfo.INSTANCE,
        port=14567,
        address="10.0.0.3",
        instance=b"CTXINST3",
        name="store-A",
        options=standard_options(INSTANCE, SourceType.STORE),
    )
    octets = encode(info)
    assert octets.startswith(bytes.fromhex("1f 03 1c 00 6001 38e7 0a000003") + b"CTXINST3store-A\0")
    assert decode(octets) == info


@pytest.mark.parametrize(
    "octets",
    [
        b"\x10\xff\xff\xff" + bytes(8188),
        b"\x10\xff\0\0" + bytes(255),
        b"\x10\0\x02\x00" + (b"\0" + bytes.fromhex("00 06 0000 00000000 00000000 0000")) * 512,
        b"\x18\0\0\0" + b"\xc8\4\0\0" * 2000 + b"\x80\4" + (8004).to_bytes(2),
        b"\x18\0\0\0" + b"\x80\4\xff\xff",
    ],
    ids=["counts", "empty names", "empty advertisements", "options", "announced options"],
)
def test_memory_is_bounded_by_the_input(octets: bytes) -> None:
    tracemalloc.start()
    try:
        decode(octets)
    except WireError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < GROWTH * len(octets) + 4096
