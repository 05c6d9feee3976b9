"""Messages in pieces, put together from captures."""

from pathlib import Path

import pytest

from stablecast.evidence.capture import layers as module
from stablecast.evidence.capture.decoder import packets
from stablecast.evidence.capture.ip import Endpoint
from stablecast.evidence.capture.layers import CapturedLargeMessages, Large, Layer, message
from stablecast.transports.codec.fragments import PIECE_BYTES, encode_pieces
from stablecast.transports.wire import lbtrm, properties
from tests.support.pcap import Capture

ENDS: tuple[Endpoint, Endpoint] = (("10.0.0.1", 14_390), ("224.10.10.10", 14_400))
TOPIC = 7
ROOM = 500
PAYLOAD = bytes(range(250)) * 8
BLOCK = properties.block({"symbol": "ABC", "count": 3})


def layers(octets: bytes) -> tuple[Layer, ...]:
    decoded = message(octets)
    assert decoded.problems == ()
    return decoded.layers


def completed(found: CapturedLargeMessages, octets: bytes) -> list[Layer]:
    before = layers(octets)
    after = found.reassemble(ENDS, before)
    assert after[: len(before)] == before
    return list(after[len(before) :])


def test_the_last_piece_shows_the_message_and_its_properties() -> None:
    """Pieces may come in any order; repeated pieces show nothing again."""
    found = CapturedLargeMessages()
    pieces = encode_pieces(TOPIC, 0xFFFF_FFFE, PAYLOAD + BLOCK, ROOM, len(BLOCK))
    assert [completed(found, piece) for piece in reversed(pieces[1:])] == [[]] * (len(pieces) - 1)
    whole, block = completed(found, pieces[0])
    assert (whole.type, whole.record) == ("LBMC LARGE", Large(TOPIC, 0xFFFF_FFFE, 2, 2000 + len(BLOCK), PAYLOAD))
    assert block == Layer("PROPERTIES", "BLOCK", properties.decode(BLOCK))
    assert completed(found, pieces[0]) == []


def test_properties_that_are_none_are_the_applications() -> None:
    found = CapturedLargeMessages()
    *_, last = (completed(found, piece) for piece in encode_pieces(TOPIC, 0, PAYLOAD, ROOM, 8))
    assert [layer.type for layer in last] == ["LBMC LARGE"]


def test_topics_are_told_apart() -> None:
    found = CapturedLargeMessages()
    pairs = zip(encode_pieces(1, 0, PAYLOAD, ROOM), encode_pieces(2, 0, PAYLOAD[::-1], ROOM), strict=True)
    shown = [layer.record for pair in pairs for piece in pair for layer in completed(found, piece)]
    assert shown == [Large(1, 0, 4, 2000, PAYLOAD), Large(2, 0, 4, 2000, PAYLOAD[::-1])]


def test_waiting_pieces_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic that was silent for longest goes."""
    monkeypatch.setattr(module, "MAX_HELD", 2 * (ROOM + PIECE_BYTES))
    found = CapturedLargeMessages()
    for topic in (1, 2, 1, 3):
        pieces = encode_pieces(topic, 0, PAYLOAD, ROOM)
        completed(found, pieces[0])
    assert [topic for _, _, topic in found.topics] == [1, 3]
    assert found.held == sum(topic.held for topic in found.topics.values()) <= module.MAX_HELD
    assert set(found.newest) == set(found.topics)


def test_a_capture_of_datagrams_shows_large_messages(tmp_path: Path) -> None:
    capture = Capture()
    for sqn, piece in enumerate(encode_pieces(TOPIC, 0, PAYLOAD, ROOM)):
        datagram = lbtrm.Data(nak_port=14_390, session_id=9, sqn=sqn, trail=0, payload=piece)
        capture.udp(*ENDS, lbtrm.encode(datagram))
    capture.write(tmp_path / "large.pcap")
    types = [[layer.type for layer in packet.layers] for packet in packets(tmp_path / "large.pcap", roundtrip=True)]
    assert types[-1] == ["LBT-RM DATA", "LBMC DATA", "LBMC LARGE"]
    assert all("LBMC LARGE" not in found for found in types[:-1])


def test_whole_messages_are_shown_as_before() -> None:
    assert completed(CapturedLargeMessages(), encode_pieces(TOPIC, 0, PAYLOAD + BLOCK, 9000, len(BLOCK))[0]) == []
