"""What linked routers tell each other: bytes and back, hostile bytes, and public dissectors."""

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.routing import link_messages as lm
from stablecast.transports.routing.network_map import MAX_DOMAIN, Neighbour, NodeRecord
from stablecast.transports.wire import lbmc, lbmr
from stablecast.transports.wire.errors import WireError
from tests.support.pcap import Capture
from tests.transports.routing.bench import ORDERS, PATTERN, record, run
from tests.transports.routing.fabric import NODE
from tests.transports.wire.test_tshark import READER, STREAM, judge

WORDS = st.integers(0, 0xFFFF_FFFF)
DOMAINS = st.integers(1, MAX_DOMAIN)
NODES = st.integers(MAX_DOMAIN + 1, (1 << 64) - 1)
COSTS = st.integers(1, 0x7FFF_FFFF)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40)
QUERIES = NAMES.map(lbmr.TopicQuery) | st.builds(lbmr.WildcardQuery, st.sampled_from([1, 2]), NAMES)
NEIGHBOURS = st.builds(Neighbour, DOMAINS | NODES, COSTS, COSTS)
TIMES = st.integers(0, 1 << 50).map(lambda microseconds: microseconds * 1_000)
MESSAGES: st.SearchStrategy[lm.LinkMessage] = st.one_of(
    st.builds(lm.Hello, NODES, NAMES),
    st.builds(NodeRecord, NODES, NAMES, WORDS, st.lists(NEIGHBOURS, max_size=8).map(tuple)),
    st.lists(st.tuples(DOMAINS, st.integers(0, (1 << 64) - 1)), min_size=1, max_size=60).map(
        lambda names: lm.PathsTold(tuple(names))
    ),
    st.builds(lm.InterestTold, QUERIES, DOMAINS, st.booleans()),
    st.builds(
        lm.SignOfLife,
        st.booleans(),
        WORDS,
        TIMES,
        st.none() | st.builds(lm.Digest, WORDS, st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1)),
    ),
    st.builds(lm.MessageLost, DOMAINS, st.sampled_from(["", "10.0.0.7:14567"])),
    st.builds(
        lm.NameTold, NAMES, DOMAINS, st.booleans(), st.just(("10.0.0.7", 14_567)), st.binary(min_size=8, max_size=8)
    ),
)

TOLD = lm.SourceTold("orders", record(), True)


def made(record_of: lm.SourceTold, **more: object) -> lm.SourceTold:
    """A source as a router tells it: without a place, and with the domain that it is in."""
    return attrs.evolve(record_of, record=attrs.evolve(record_of.record, address="", domain=1, **more))  # type: ignore[arg-type]


SOURCES = [
    made(TOLD),
    made(TOLD, persistent=True, cost=7, hops=3, session_id=0),
    made(TOLD, request_address="", instance=b""),
    lm.SourceTold("orders", made(TOLD).record, False),
]


@given(MESSAGES)
def test_decoding_undoes_encoding(message: lm.LinkMessage) -> None:
    assert lm.decode(lbmc.decode(lm.encode(message))[0]) == message


@pytest.mark.parametrize("told", SOURCES)
def test_a_source_is_told_with_all_that_its_advertisement_says(told: lm.SourceTold) -> None:
    assert lm.decode(lbmc.decode(lm.encode(told))[0]) == told


@given(MESSAGES, st.data())
def test_hostile_bytes_are_no_message_or_another_one(message: lm.LinkMessage, data: st.DataObject) -> None:
    octets = bytearray(lm.encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = lm.decode(lbmc.decode(bytes(octets))[0])
    except WireError:
        return
    if decoded is not None:
        lm.encode(decoded)


@pytest.mark.parametrize(
    "message",
    [
        NodeRecord(7),
        NodeRecord(NODE, "r", 1, (Neighbour(0),)),
        NodeRecord(NODE, "r", 1, (Neighbour(1, 0, 1),)),
        lm.InterestTold(ORDERS, 0, True),
        lm.NameTold("store", 0, True),
    ],
)
def test_what_cannot_be_true_is_refused(message: lm.LinkMessage) -> None:
    with pytest.raises(WireError):
        lm.decode(lbmc.decode(lm.encode(message))[0])


def test_names_of_many_paths_come_in_several_messages() -> None:
    told = [(domain, domain) for domain in range(1, 2 * lm.MAX_PATHS + 2)]
    found = [lm.decode(lbmc.decode(lm.encode(one))[0]) for one in lm.paths(told)]
    assert [len(one.names) for one in found if isinstance(one, lm.PathsTold)] == [lm.MAX_PATHS, lm.MAX_PATHS, 1]


@pytest.mark.rows("R-150", "R-102")
def test_public_dissectors_read_every_byte_of_a_link(tmp_path: Path) -> None:
    """R-150: each message, with all its headers, and data between."""
    told: list[lm.LinkMessage] = [
        lm.Hello(NODE, "edge-1"),
        NodeRecord(NODE, "edge-1", 3, (Neighbour(1, 2, 2), Neighbour(NODE + 1))),
        lm.PathsTold(((1, 2**63), (2, 3))),
        *(lm.InterestTold(query, 2, on) for query in (ORDERS, PATTERN) for on in (True, False)),
        *SOURCES,
        lm.SignOfLife(True, 1, 5_000_000_000, lm.Digest(1, 2, 3)),
        lm.SignOfLife(False, 1, 5_000_000_000),
        lm.NameTold("store-A", 1, True),
        lm.NameTold("store-A", 1, False, ("10.0.0.7", 14_567), b"instance"),
    ]
    capture = Capture()
    octets = [lm.encode(one, 0xABCD) for one in told]
    for one in (*octets, bytes(run(41, 3).block)):
        capture.tcp(STREAM, READER, one)
    found = judge(capture, tmp_path / "link.pcap")
    assert all("lbttcp" in packet.protocols for packet in found)
    assert len(found[1].fields["lbmc.route_info_neighbor.node_id"]) == 2
