"""Places, transports of advertisements, source strings and OTIDs are equivalent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.transports.codec import identity
from stablecast.transports.codec.places import (
    Joinable,
    context_names,
    from_source_string,
    joinable,
    life_of_otid,
    of_otid,
    otid,
    place_of,
    source_string,
    split,
    transport_of,
)
from stablecast.transports.wire import lbmr

HOSTS = st.ip_addresses(v=4).map(str)
GROUPS = st.ip_addresses(v=4, network="224.0.0.0/4").map(str)
PORTS = st.integers(0, 65_535)
U32 = st.integers(0, 0xFFFF_FFFF)
TRANSPORTS = (
    st.builds(lbmr.TcpTransport, HOSTS, U32, PORTS)
    | st.builds(lbmr.LbtruTransport, HOSTS, U32, PORTS)
    | st.builds(lbmr.LbtrmTransport, HOSTS, GROUPS, U32, PORTS, PORTS)
)
MULTICAST = lbmr.LbtrmTransport("10.29.3.4", "224.10.10.10", 0x0102030A, 14_400, 14_390)


@pytest.mark.rows("P-616")
@given(TRANSPORTS)
def test_a_written_source_string_is_read_back(
    transport: lbmr.TcpTransport | lbmr.LbtruTransport | lbmr.LbtrmTransport,
) -> None:
    assert joinable(transport) == transport
    assert (
        from_source_string(source_string(transport))
        == from_source_string(f"{source_string(transport)}[77]")
        == transport
    )
    assert transport_of(place_of(transport), transport.session_id or 0) == transport
    assert len(otid(transport, 1, *context_names(b"instance"))) == 32


@pytest.mark.rows("P-616")
def test_the_forms() -> None:
    """TCP is joined at an address, the others at their source string."""
    tcp, unicast = lbmr.TcpTransport("10.0.0.1", 0x55, 14_371), lbmr.LbtruTransport("10.0.0.1", 0x55, 14_380)
    assert (place_of(tcp), source_string(tcp)) == ("10.0.0.1:14371", "TCP:10.0.0.1:14371:00000055")
    assert place_of(unicast) == source_string(unicast) == "LBT-RU:10.0.0.1:14380:00000055"
    assert place_of(MULTICAST) == source_string(MULTICAST) == "LBTRM:10.29.3.4:14390:0102030a:224.10.10.10:14400"
    assert source_string(lbmr.TcpTransport("10.0.0.1", None, 1)) == "TCP:10.0.0.1:1:00000000"


REST = "0000004d 00001234 00000056"
PUBLIC = [
    (MULTICAST, f"10 0a1d0304 3836 e00a0a0a 3840 0a030201 {REST} 0000 01"),
    (lbmr.TcpTransport("10.0.0.1", 0x55, 14_371), f"00 0a000001 3823 {REST} 00000055 0000000000000000 01"),
    (lbmr.LbtruTransport("10.0.0.1", 0x55, 14_380), f"01 0a000001 382c 55000000 {REST} 0000000000000000 01"),
]


@pytest.mark.rows("P-616")
@pytest.mark.parametrize(("transport", "octets"), PUBLIC)
def test_the_otid_has_the_public_layout(transport: Joinable, octets: str) -> None:
    """The session ID is little-endian, but that of LBT-TCP."""
    made = otid(transport, 77, 0x1234, 0x56)
    assert made == bytes.fromhex(octets)
    assert life_of_otid(made) == identity.join(transport.session_id or 0, 77)


def test_the_names_of_a_context_are_the_halves_of_its_instance() -> None:
    assert context_names(bytes.fromhex("00001234 00000056")) == (0x1234, 0x56)


@pytest.mark.parametrize(
    "octets",
    [
        "00 0a000001 382c 00000055 0000004d 696e7374616e6365 000000000000000000",
        "01 0a000001 382c 00000055 0000004d 696e7374616e6365 000000000000000000",
        "10 0a1d0304 3836 e00a0a0a 3840 55000000 0000004d 696e7374616e6365 000001",
        "10 0a1d0304 3836 e00a0a0a 3840 55000000 0000004d 696e737400000000 000000",
    ],
)
def test_the_otids_of_older_releases_are_understood(octets: str) -> None:
    """The first two are those of 0.1 and 0.2; the last one is an LBT-RM of version 0."""
    found = of_otid(bytes.fromhex(octets))
    assert found is not None
    assert found.session_id == 0x55
    assert life_of_otid(bytes.fromhex(octets)) == identity.join(0x55, 77)


def test_lives_on_transports_that_only_routers_join() -> None:
    """LBT-RDMA, LBT-IPC and LBT-SMX; nobody knows the last one."""
    rest = bytes(4) + bytes(2) + bytes.fromhex("00000055 0000004d") + bytes(16) + b"\x01"
    assert [life_of_otid(bytes((kind,)) + rest) for kind in (0x40, 0x04)] == [identity.join(0x55, 77)] * 2
    assert life_of_otid(b"\x20" + rest) == identity.join(0x5500_0000, 77)
    assert life_of_otid(b"\x77" + rest) is None
    assert of_otid(b"\x20" + rest) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10.0.0.1:14371",
        "LBTRM:10.0.0.1:1:2",
        "LBT-RU:10.0.0.1:1:2:224.1.1.1:3",
        "TCP:10.0.0.256:1:2",
        "LBTRM:10.0.0.1:1:2:224.1.1.1:65536",
        "LBT-SMX:10.0.0.1:1:2",
        "TCP:10.0.0.1:1:x",
    ],
)
def test_malformed_source_strings_are_refused(text: str) -> None:
    assert from_source_string(text) is None
    assert joinable(from_source_string(text)) is None


def test_transports_that_receivers_cannot_join() -> None:
    assert joinable(lbmr.UnknownTransport(0x40, bytes(10))) is None
    assert joinable(lbmr.LbtruTransport("10.0.0.1", None, 1)) is None
    assert joinable(lbmr.LbtrmTransport("10.0.0.1", "10.0.0.2", 1, 1, 1)) is None
    assert joinable(lbmr.TcpTransport("10.0.0.1", None, 1)) is not None


@pytest.mark.parametrize("place", ["LBTRM:x", "LBT-RU:10.0.0.1:1:2", "LBTRM:10.0.0.1:1:1:10.0.0.1:x"])
def test_a_place_that_is_none_is_the_callers_mistake(place: str) -> None:
    """The second one is of another session."""
    with pytest.raises(MisuseError, match="not a place of session 0x1"):
        transport_of(place, 1)
    with pytest.raises(MisuseError, match="write ip:port"):
        split(place)


@pytest.mark.parametrize("source", ["TCP:10.0.0.1:5:7", "LBT-RU:10.0.0.1:5:7", "LBTRM:10.0.0.1:5:7:224.1.1.1:6"])
def test_an_otid_names_its_transport(source: str) -> None:
    transport = joinable(from_source_string(source))
    assert transport is not None
    assert of_otid(otid(transport, 3, 1, 2)) == transport


def test_an_otid_of_another_transport_names_none() -> None:
    assert of_otid(b"\x40" + bytes(31)) is None
