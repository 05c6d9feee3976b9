"""A source as a record of the TCP service, and back."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.transports.resolution.records import SourceRecord, named
from stablecast.transports.resolution.srs.source_records import source_info, source_record
from stablecast.transports.wire import srs

RECORD = named(SourceRecord("10.0.0.1:14371", 0x55, 77, "10.0.0.1:14391", persistent=True, instance=b"instance"))
U32 = st.integers(0, (1 << 32) - 1)
PORTS = st.integers(1, 65_535)


@given(U32, U32, PORTS, PORTS, st.booleans(), st.booleans())
def test_there_and_back(session: int, index: int, port: int, request: int, persistent: bool, told: bool) -> None:
    record = named(
        SourceRecord(
            f"10.0.0.1:{port}",
            session,
            index,
            f"10.0.0.2:{request}" if told else "",
            persistent,
            b"instance",
            cost=port,
            domain=index,
        )
    )
    (info,) = srs.decode(srs.encode(source_info("orders", record)))
    assert isinstance(info, srs.SourceInfo)
    assert source_record(info) == record


@pytest.mark.rows("T-418")
def test_the_source_string_and_the_name() -> None:
    """Another life of the program is another source, whatever else is the same."""
    info = source_info("orders", RECORD)
    assert info.source == "TCP:10.0.0.1:14371:00000055[77]"
    assert source_info("orders", attrs.evolve(RECORD, instance=b"reborn..", origin=b"")).otid != info.otid
    assert len(info.otid) == 32


@pytest.mark.rows("T-418")
@pytest.mark.parametrize("place", ["LBTRM:10.0.0.1:14390:00000055:239.1.1.1:14400", "LBT-RU:10.0.0.1:14380:00000055"])
def test_sources_on_other_transports_are_recorded_by_their_places(place: str) -> None:
    """The OTID begins with the transport."""
    record = named(attrs.evolve(RECORD, address=place, origin=b""))
    info = source_info("orders", record)
    assert info.source == f"{place}[77]"
    assert info.otid[0] == (0x10 if place.startswith("LBTRM") else 0x01)
    (read,) = srs.decode(srs.encode(info))
    assert isinstance(read, srs.SourceInfo)
    assert source_record(read) == record


@pytest.mark.parametrize(
    "source",
    [
        "LBTRM:10.0.0.1:1234:00000055:10.1.1.1:14400[77]",
        "LBT-SMX:10.0.0.1:1234:00000055[77]",
        "TCP:10.0.0.1:99999:00000055[77]",
        "TCP:10.0.0.256:14371:00000055[77]",
        "TCP:10.0.0.1:14371[77]",
        "",
    ],
)
def test_a_source_that_cannot_be_joined_has_no_record(source: str) -> None:
    assert source_record(attrs.evolve(source_info("orders", RECORD), source=source)) is None


def test_an_address_that_is_none_is_the_callers_mistake() -> None:
    with pytest.raises(MisuseError, match="ip:port"):
        source_info("orders", attrs.evolve(RECORD, address="here"))
