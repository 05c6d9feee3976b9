"""Findings about topic resolution: unanswered queries, and topics that share a session."""

from pathlib import Path

import pytest

from stablecast.transports.wire import lbmr, lbtrm
from tests.adapters.evidence.capture.doctor.played_session import GROUP, MS, NAKS, NAME, SENDER, Timed, advice, encoded
from tests.support.captures import datagram
from tests.support.pcap import Address
from tests.transports.reliable.network import block

RESOLUTION: Address = ("224.9.10.11", 12_965)
SESSION = 0xCAFE0001
ASKER: Address = ("10.0.1.0", 40_000)
WHOSE = "the context at 10.0.1.0:40000"


def query(*names: str, pattern: str = "", instance: bytes = b"RECEIVER", at_ms: int = 0, of: Address = ASKER) -> Timed:
    options = lbmr.standard_options(instance)
    if pattern:
        wanted = (lbmr.WildcardQuery(lbmr.PatternLanguage.PCRE, pattern),)
        packet = lbmr.Packet(lbmr.PacketKind.WILDCARD, wanted, (), options)
    else:
        packet = lbmr.Packet(lbmr.PacketKind.NORMAL, tuple(map(lbmr.TopicQuery, names)), (), options)
    return at_ms * MS, datagram(of, RESOLUTION, lbmr.encode(packet))


def advertisement(name: str, index: int, at_ms: int = 0) -> Timed:
    transport = lbmr.LbtrmTransport(SENDER[0], GROUP[0], SESSION, GROUP[1], NAKS[1])
    tir = lbmr.Advertisement(name, transport, 60, index)
    packet = lbmr.Packet(lbmr.PacketKind.NORMAL, (), (tir,), lbmr.standard_options(b"SENDER__"))
    return at_ms * MS, datagram(SENDER, RESOLUTION, lbmr.encode(packet))


def traffic(*shares: int) -> list[Timed]:
    """Return datagrams with so many messages of topic 1, 2 and so on."""
    found, sqn = [], 0
    for index, count in enumerate(shares, 1):
        for first in range(0, count, 10):
            payload = block(index, first, min(10, count - first))
            packet = lbtrm.Data(nak_port=NAKS[1], session_id=SESSION, sqn=sqn, trail=0, payload=payload)
            found.append(((1_000 + sqn) * MS, datagram(SENDER, GROUP, encoded(packet))))
            sqn += 1
    return found


def topics(*names: str) -> list[Timed]:
    return [advertisement(name, index) for index, name in enumerate(names, 1)]


def test_a_receiver_of_one_topic_gets_the_others(tmp_path: Path) -> None:
    packets = [*topics("wanted", "other", "third"), query("wanted"), *traffic(100, 200, 100)]
    found = advice(tmp_path / "one.pcap", packets)
    assert {*found} == {("unwanted", WHOSE)}
    unwanted = found["unwanted", WHOSE]
    assert (unwanted.value, unwanted.figures) == (0.75, {"messages": 400, "topics": ["other", "third"]})
    assert f"gets 400 messages of {NAME}, and does not ask for the topics of 75 % of them" in unwanted.text
    assert "transport_lbtrm_destination_port" in unwanted.remedy


@pytest.mark.parametrize(
    "queries",
    [
        [query("wanted", "other")],
        [query(pattern="^(wanted|other)$")],
        [query(pattern="(o+)+$")],  # not evaluated, because it might take for ever
        [query("elsewhere"), advertisement("elsewhere", 9)],
        [query("wanted", at_ms=900_000)],  # it came when all was over
        [],
    ],
)
def test_who_wants_it_or_gets_nothing_is_not_reported(queries: list[Timed], tmp_path: Path) -> None:
    assert advice(tmp_path / "one.pcap", [*topics("wanted", "other"), *queries, *traffic(100, 200)]) == {}


def test_contexts_of_one_host_are_apart(tmp_path: Path) -> None:
    packets = [
        *topics("wanted", "other"),
        query("wanted", instance=b"ONE_____", of=("10.0.1.0", 40_000)),
        query(pattern=".", instance=b"TWO_____", of=("10.0.1.0", 40_001)),
        *traffic(100, 200),
    ]
    assert {*advice(tmp_path / "one.pcap", packets)} == {("unwanted", WHOSE)}


def test_queries_without_an_answer(tmp_path: Path) -> None:
    asked = [query("orders", at_ms=200 * turn) for turn in range(12)]
    found = advice(tmp_path / "one.pcap", asked)
    deaf = found["deaf", WHOSE]
    assert (deaf.value, deaf.figures) == (12, {"topic": "orders", "milliseconds": 2_200.0})
    assert "asks for topic 'orders' 12 times in 2,200.0 ms" in deaf.text
    assert advice(tmp_path / "two.pcap", asked, deaf=13) == {}
    assert advice(tmp_path / "three.pcap", [*asked, advertisement("orders", 1, at_ms=1_000)]) == {}


def test_the_longest_row_without_an_answer_counts(tmp_path: Path) -> None:
    """Twenty queries, an answer, and three more."""
    asked = [query("orders", at_ms=200 * turn) for turn in range(20)]
    later = [query("orders", at_ms=10_000 + 200 * turn) for turn in range(3)]
    found = advice(tmp_path / "one.pcap", [*asked, advertisement("orders", 1, at_ms=5_000), *later])
    assert found["deaf", WHOSE].value == 20


def test_a_query_that_was_captured_twice_is_counted_once(tmp_path: Path) -> None:
    """A context repeats a query after 20 ms at the earliest; the identification of its packet tells a copy later."""
    asked = [query("orders", at_ms=200 * turn) for turn in range(12)]
    twice = [*asked, *((at + 5 * MS, packet) for at, packet in asked)]
    found = advice(tmp_path / "one.pcap", twice)
    assert (found["deaf", WHOSE].value, found["copies", "the capture"].value) == (12, 0.5)
    numbered = [(at, packet[:4] + bytes((7, turn)) + packet[6:]) for turn, (at, packet) in enumerate(asked)]
    late = [*numbered, *((at + 15 * MS, packet) for at, packet in numbered)]
    assert advice(tmp_path / "two.pcap", late)["deaf", WHOSE].value == 12
    quick = [query("orders", at_ms=10 * turn) for turn in range(12)]
    assert {*advice(tmp_path / "three.pcap", quick)} == {("deaf", WHOSE)}
