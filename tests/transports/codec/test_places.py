"""Places, transports of advertisements, source strings and OTIDs are equivalent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.transports.codec.places import (
    from_source_string,
    joinable,
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
    assert len(otid(transport, 1, b"instance")) == 32


@pytest.mark.rows("P-616")
def test_the_forms() -> None:
    """TCP is joined at an address, the others at their source string."""
    tcp, unicast = lbmr.TcpTransport("10.0.0.1", 0x55, 14_371), lbmr.LbtruTransport("10.0.0.1", 0x55, 14_380)
    assert (place_of(tcp), source_string(tcp)) == ("10.0.0.1:14371", "TCP:10.0.0.1:14371:00000055")
    assert place_of(unicast) == source_string(unicast) == "LBT-RU:10.0.0.1:14380:00000055"
    assert place_of(MULTICAST) == source_string(MULTICAST) == "LBTRM:10.29.3.4:14390:0102030a:224.10.10.10:14400"
    assert source_string(lbmr.TcpTransport("10.0.0.1", None, 1)) == "TCP:10.0.0.1:1:00000000"


def test_the_otid_of_lbtrm_is_laid_out_as_observed() -> None:
    """The session ID alone is little-endian."""
    expected = "10 0a1d0304 3836 e00a0a0a 3840 0a030201 0000004d 696e7374616e6365 000001"
    assert otid(MULTICAST, 77, b"instance") == bytes.fromhex(expected)


def test_the_otid_of_the_others_is_ours() -> None:
    expected = "01 0a000001 382c 00000055 0000004d 696e7374616e6365 000000000000000000"
    unicast = lbmr.LbtruTransport("10.0.0.1", 0x55, 14_380)
    assert otid(unicast, 77, b"instance") == bytes.fromhex(expected)
    assert otid(lbmr.LbtruTransport("10.0.0.1", None, 1), 1, b"instance")[7:11] == bytes(4)


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
    assert of_otid(otid(transport, 3, bytes(8))) == transport


def test_an_otid_of_another_transport_names_none() -> None:
    assert of_otid(b"\x40" + bytes(31)) is None
