"""Source strings are parsed and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.runtime.address import AddressError
from stablecast.runtime.source_strings import Where, is_source_string, ports_of, source_string

HOSTS = st.ip_addresses(v=4).map(str)
PORTS = st.integers(0, 65_535)
GROUPS = st.just("") | st.builds("{}:{}".format, HOSTS, PORTS)


@given(st.builds(Where, HOSTS, PORTS, st.integers(0, 0xFFFF_FFFF), GROUPS))
def test_a_written_form_is_parsed_back(where: Where) -> None:
    assert Where.parse(str(where)) == where


@pytest.mark.rows("P-616")
def test_the_documented_forms() -> None:
    """And a topic index behind them is nobody's identity."""
    multicast = Where("10.29.3.4", 14390, 0xCAFE1, "224.10.10.10:14400")
    assert str(multicast) == "LBTRM:10.29.3.4:14390:000cafe1:224.10.10.10:14400"
    assert Where.parse(f"{multicast}[77]") == multicast
    unicast = Where.parse("LBT-RU:10.29.3.4:14380:cafe1[3]")
    assert (str(unicast), unicast.address) == ("LBT-RU:10.29.3.4:14380:000cafe1", "10.29.3.4:14380")


@pytest.mark.rows("P-616")
def test_a_tcp_stream_is_known_by_its_address() -> None:
    assert source_string("10.0.0.1:14371") == "TCP:10.0.0.1:14371"
    unicast = str(Where("10.0.0.1", 14380, 1))
    assert source_string(unicast) == unicast
    assert [is_source_string(place) for place in (unicast, "LBTRM:x", "10.0.0.1:14371")] == [True, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "TCP:10.0.0.1:1:2",
        "LBTRM:10.0.0.1:1:2",
        "LBT-RU:10.0.0.1:1:2:224.1.1.1:3",
        "LBT-RU:10.0.0.1:1:x",
        "LBT-RU:10.0.0.1:1:123456789",
        "LBT-RU:10.0.0.256:1:2",
        "LBT-RU:10.0.0.1:65536:2",
        "LBT-RU:10.0.0.1:1:2[x]",
    ],
)
def test_anything_else_is_refused_with_the_form_that_is_wanted(text: str) -> None:
    with pytest.raises(AddressError, match=r"source string|address"):
        Where.parse(text)


def test_the_ports_of_places_are_sorted_by_protocol() -> None:
    places = ("10.0.0.1:14371", "LBTRM:10.0.0.1:14390:5:224.1.1.1:14400", "LBT-RU:10.0.0.1:14380:5", "10.0.0.1:14391")
    assert ports_of(places) == {"lbttcp": [14371, 14391], "lbtrm": [14390, 14400], "lbtru": [14380]}
