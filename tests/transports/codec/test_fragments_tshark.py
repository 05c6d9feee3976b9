"""Pieces and properties, read by the public dissectors."""

from pathlib import Path

import pytest

from stablecast.transports import codec
from stablecast.transports.codec.fragments import encode_pieces
from stablecast.transports.wire import lbtrm, lbtru, properties
from tests.support.pcap import Address, Capture
from tests.support.tshark import dissect

SOURCE: Address = ("10.0.0.1", 14_371)
READER: Address = ("10.0.0.2", 40_010)
SESSION: Address = ("10.0.0.1", 14_390)
GROUP: Address = ("224.10.10.10", 14_400)
SERVICE: Address = ("10.0.0.1", 14_380)
CLIENT: Address = ("10.0.0.2", 14_360)
BLOCK = properties.block({"symbol": "ABC", "price": 1.5, "count": -3, "open": True})
BODY = bytes(range(250)) * 40
ROOM = 1400
TYPES = {"symbol": 8, "price": 7, "count": 5, "open": 1}
LIFE = codec.join(9, 7)


def over(kind: str, messages: list[bytes], path: Path) -> Path:
    """A capture of these messages, each in a segment or a datagram of its own."""
    capture = Capture()
    if kind in ("tcp", "again"):
        capture.tcp(SOURCE, READER, codec.greeting(9))
    for sqn, octets in enumerate(messages):
        match kind:
            case "tcp":
                capture.tcp(SOURCE, READER, octets)
            case "again":
                capture.tcp(SOURCE, READER, codec.encode_again(LIFE, LIFE, octets, 0, 1))
            case "lbtrm":
                datagram = lbtrm.Data(nak_port=SESSION[1], session_id=9, sqn=sqn, trail=0, payload=octets)
                capture.udp(SESSION, GROUP, lbtrm.encode(datagram))
            case _:
                capture.udp(SERVICE, CLIENT, lbtru.encode(lbtru.Data(sqn=sqn, trail=0, payload=octets)))
    capture.write(path)
    return path


@pytest.mark.rows("P-129")
@pytest.mark.parametrize("kind", ["tcp", "again", "lbtrm", "lbtru"])
def test_pieces_are_put_together_and_properties_are_read(kind: str, tmp_path: Path) -> None:
    """On each transport and from stores, nothing is malformed."""
    messages = [
        *encode_pieces(7, 0, BODY + BLOCK, ROOM, len(BLOCK)),
        *encode_pieces(7, 8, b"small" + BLOCK, ROOM, len(BLOCK)),
    ]
    ports = {f"tcp.port=={SOURCE[1]}": "lbttcp"}
    packets = dissect(over(kind, messages, tmp_path / "pieces.pcap"), ports, "lbmc.reassemble_fragments:TRUE")
    assert [packet.problems for packet in packets if packet.problems] == []
    pieces = [packet for packet in packets if "lbmc.frag.first_sqn" in packet.fields]
    assert len(pieces) == len(messages) - 1 == 8
    assert any("lbmc.reassembly_frame" in packet.fields or "lbmc.reassembly" in packet.fields for packet in pieces)
    *_, whole, small = packets
    for packet in (whole, small):
        (read,) = (values for name, values in packet.fields.items() if name.endswith("_msg_properties.hdr.type"))
        assert [int(kind, 0) for kind in read] == list(TYPES.values())
