"""A source's record and its advertisement on the wire are equivalent."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.transports.resolution.records import (
    MAX_TOPIC_BYTES,
    SourceRecord,
    advertisement,
    check_instance,
    check_topic,
    named,
    source_record,
)
from stablecast.transports.wire import lbmr

INSTANCE = b"instance"
RECORD = named(SourceRecord("10.1.2.3:14371", 0x11223344, 4711, "10.1.2.3:14391", persistent=True, instance=INSTANCE))

ADDRESS = st.builds("{}:{}".format, st.ip_addresses(v=4), st.integers(0, 65_535))
RECORDS = st.builds(
    SourceRecord,
    ADDRESS,
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    ADDRESS,
    st.booleans(),
    st.binary(min_size=8, max_size=8),
    cost=st.integers(0, 2**31 - 1),
    hops=st.integers(0, 255),
    domain=st.integers(0, 2**32 - 1),
).map(named)


@given(RECORDS, st.sampled_from(["a", "orders/1", "Über", "x" * MAX_TOPIC_BYTES]))
@settings(max_examples=50)
def test_through_the_wire_and_back(record: SourceRecord, topic: str) -> None:
    tir = advertisement(topic, record, 60)
    data = lbmr.encode(lbmr.Packet(lbmr.PacketKind.NORMAL, (), (tir,), lbmr.standard_options(INSTANCE)))
    packet = lbmr.decode(data)
    assert isinstance(packet, lbmr.Packet)
    (read,) = packet.advertisements
    assert read == tir
    assert (read.name, read.ttl, read.index) == (topic, 60, record.index)
    assert source_record(read, packet.options) == record


@pytest.mark.rows("P-228")
def test_the_block_is_the_long_form_and_a_stream_has_no_functionality() -> None:
    tir = advertisement("a", attrs.evolve(RECORD, persistent=False), 60)
    (_, functionality, instance) = tir.options
    assert isinstance(functionality, lbmr.ExtendedFunctionality)
    assert isinstance(instance, lbmr.ContextInstance)
    assert functionality.functionality == 0
    assert isinstance(tir.transport, lbmr.TcpTransport)


def test_a_bare_advertisement_takes_the_instance_of_its_sender() -> None:
    tir = advertisement("a", SourceRecord("10.1.2.3:1", 1, 2), 60)
    assert tir.options == ()
    assert source_record(tir, lbmr.standard_options(INSTANCE)) == SourceRecord("10.1.2.3:1", 1, 2, instance=INSTANCE)
    assert source_record(tir, ()) == SourceRecord("10.1.2.3:1", 1, 2)


def test_a_cost_below_nothing_is_none() -> None:
    """No way is better than the source itself."""
    tir = advertisement("a", RECORD, 60)
    cheap = attrs.evolve(tir, options=(*tir.options, lbmr.Cost(hop_count=0, cost=-5)))
    assert source_record(cheap, ()) == RECORD


def test_options_that_say_nothing_to_us_are_passed_over() -> None:
    tir = advertisement("a", RECORD, 60)
    more = attrs.evolve(tir, options=(lbmr.UnknownOption(77, b"\0\0"), *tir.options))
    assert source_record(more, ()) == RECORD


@pytest.mark.rows("T-027")
@pytest.mark.parametrize(
    ("place", "transport"),
    [
        (
            "LBTRM:10.1.2.3:14390:11223344:239.1.1.1:14400",
            lbmr.LbtrmTransport("10.1.2.3", "239.1.1.1", 0x11223344, 14400, 14390),
        ),
        ("LBT-RU:10.1.2.3:14380:11223344", lbmr.LbtruTransport("10.1.2.3", 0x11223344, 14380)),
    ],
)
def test_sources_on_other_transports_are_joined_at_their_places(place: str, transport: lbmr.Transport) -> None:
    """The product sends the OTID before the functionality."""
    record = named(attrs.evolve(RECORD, address=place, origin=b""))
    tir = advertisement("a", record, 60)
    assert tir.transport == transport
    assert source_record(tir, ()) == record
    kinds = [type(option) for option in tir.options]
    assert kinds == [lbmr.OriginatingTransport, lbmr.ExtendedFunctionality, lbmr.ContextInstance]
    bare = advertisement("a", attrs.evolve(record, instance=b"", origin=b""), 60)
    assert [type(option) for option in bare.options] == [lbmr.ExtendedFunctionality]


@pytest.mark.parametrize(
    "transport",
    [
        lbmr.UnknownTransport(0x40, bytes(10)),
        lbmr.LbtrmTransport("10.1.2.3", "10.1.1.1", 1, 14400, 14390),
        lbmr.LbtruTransport("10.1.2.3", None, 14380),
    ],
)
def test_a_transport_that_cannot_be_joined_is_no_source(transport: lbmr.Transport) -> None:
    """An unknown transport, an address that is no group, and an old LBT-RU without a session ID."""
    assert source_record(attrs.evolve(advertisement("a", RECORD, 60), transport=transport), ()) is None


@pytest.mark.parametrize("address", ["", "10.1.2.3", "host:1", "10.1.2.3:", "10.1.2.3:65536", "10.1.2.3:-1", "1.2.3:4"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(MisuseError, match="write ip:port"):
        advertisement("a", attrs.evolve(RECORD, address=address), 60)


@pytest.mark.parametrize("topic", ["", "a\0b", "x" * (MAX_TOPIC_BYTES + 1), "ü" * 124, "\ud800"])
def test_topics_that_cannot_be_asked_for(topic: str) -> None:
    with pytest.raises(MisuseError, match="topic name"):
        check_topic(topic)


def test_an_instance_has_eight_bytes() -> None:
    check_instance(INSTANCE)
    check_topic("orders")
    with pytest.raises(MisuseError, match="8 bytes, not 3"):
        check_instance(b"abc")
