"""The packets of other senders: round trips, and nothing but WireError for bad bytes."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire import lbmr
from stablecast.transports.wire import lbmr_extended as x
from stablecast.transports.wire.errors import WireError
from tests.support.layouts import ADDRESSES, NAMES, PACKET_OPTIONS, members, mutations, records

BYTE = st.integers(0, 0xFF)
SHORT = st.integers(0, 0xFFFF)
WORD = st.integers(0, 0xFFFF_FFFF)
INSTANCES = st.lists(st.tuples(BYTE, st.binary(min_size=8, max_size=8)), max_size=3).map(tuple)
REMOTE = st.lists(members(x.REMOTE_OPTIONS, lbmr.UnknownOption, 255), min_size=1, max_size=3).map(tuple)


def election(flags: int, instances: tuple[tuple[int, bytes], ...], **fields: object) -> x.Election:
    options = x.Election.OPTIONS if instances else 0
    return x.Election(flags=flags & 0x7FFF | options, instances=instances, **fields)  # type: ignore[arg-type]


BODIES: st.SearchStrategy[x.Body] = st.one_of(
    st.builds(
        x.Management,
        counts=st.tuples(BYTE, SHORT),
        records=st.lists(st.builds(x.TopicRecord, BYTE, BYTE, NAMES), max_size=3).map(tuple),
    ),
    st.builds(
        election,
        SHORT,
        INSTANCES,
        dep_type=SHORT,
        source=ADDRESSES,
        store=ADDRESSES,
        transport_index=WORD,
        topic_index=WORD,
        source_port=SHORT,
        store_port=SHORT,
        topic=NAMES,
    ),
    records(x.DomainRoute),
    st.builds(
        x.RemoteContexts,
        length=SHORT,
        reserved=SHORT,
        records=st.lists(st.builds(x.RemoteRecord, SHORT, REMOTE), max_size=3).map(tuple),
    ),
)
PACKETS = st.builds(x.Packet, BODIES, st.lists(PACKET_OPTIONS, max_size=3).map(tuple), st.integers(0, 15))
ELECTION = x.Election(
    source="10.0.0.1",
    store="10.0.0.3",
    transport_index=9,
    topic_index=1,
    source_port=14391,
    store_port=14567,
    topic="t",
)


@given(PACKETS)
def test_decoding_undoes_encoding(packet: x.Packet) -> None:
    octets = x.encode(packet)
    assert x.is_extended(octets)
    assert x.decode(octets) == packet


@given(st.binary(max_size=64) | PACKETS.map(x.encode).flatmap(mutations))
def test_encoding_undoes_decoding(octets: bytes) -> None:
    try:
        packet = x.decode(octets)
    except WireError:
        return
    assert x.encode(packet) == octets


def test_packets_look_like_the_documented_ones() -> None:
    management = x.Packet(x.Management(records=(x.TopicRecord(1, 0x80, "t"),)))
    assert x.encode(management) == bytes.fromhex("14 00 0000 000a 0001 0006 01 80 7400")
    body = attrs.evolve(ELECTION, flags=0x8000, instances=((0, b"CTXINST1"),))
    assert (
        x.encode(x.Packet(body))
        == bytes.fromhex("17 01 0000 001e 8000 0a000001 0a000003 00000009 00000001 3837 38e7 7400 0000 000e 0a00")
        + b"CTXINST1"
    )


def test_packets_between_queues_are_recognised() -> None:
    assert x.is_queueing(b"\x16\0\0\0")
    assert x.is_queueing(b"\x17\2\0\0")
    assert not x.is_queueing(b"\x17\3\0\0")
    assert not x.is_extended(b"\x17\3\0\0")


@pytest.mark.parametrize(
    "octets",
    [
        "14",
        "10 00 0000",  # a plain packet
        "1c 00 0000",  # options announced, and none there
        "1c 00 0000 0004 0000 80 05 0004",  # no length at the end
        "14 00 0000 0004",  # no whole block
        "14 00 0000 0004 0001",  # a record is missing
        "14 00 0000 000a 0001 0006 01 80 7474",  # a name without its NUL
        "14 00 0000 000a 0001 0007 01 80 7400",  # a record longer than its packet
        "14 00 0000 000b 0001 0006 01 80 7400",  # another length of the block
        "14 00 0000 0004 0000 00",  # a byte behind the block
        "17 01 0000 001e 0000 0a000001 0a000003 00000009 00000001 3837 38e7 7474",  # a topic without its NUL
        "17 01 0000 001f 0000 0a000001 0a000003 00000009 00000001 3837 38e7 7400",  # another length
        "17 01 0000 001e 0000 0a000001 0a000003 00000009 00000001 3837 38e7 7400 00",  # bytes behind it
        "17 01 0000 001e 8000 0a000001 0a000003 00000009 00000001 3837 38e7 7400",  # no options
        "17 01 0000 001e 8000 0a000001 0a000003 00000009 00000001 3837 38e7 7400 0000 0005 00",
        "17 01 0000 001e 8000 0a000001 0a000003 00000009 00000001 3837 38e7 7400 0000 000e 0b00 0000000000000000",
        "17 07 0000 0001 0000",  # a record is missing
        "17 07 0000 0001 0000 0003 0000",  # a record of three bytes
        "17 07 0000 0001 0000 0009 0000",  # a record longer than its packet
        "17 07 0000 0000 0000 00",  # a byte behind the records
    ],
)
def test_malformed_packets_are_refused(octets: str) -> None:
    with pytest.raises(WireError):
        x.decode(bytes.fromhex(octets))


@pytest.mark.parametrize(
    "packet",
    [
        x.Packet(ELECTION, version=16),
        x.Packet(attrs.evolve(ELECTION, topic="a\0b")),
        x.Packet(x.Management(counts=(256, 0), records=())),
    ],
)
def test_packets_that_cannot_be_are_refused(packet: x.Packet) -> None:
    with pytest.raises(WireError):
        x.encode(packet)
