"""The public dissectors decode the same packets, and count the same."""

from pathlib import Path

from stablecast.evidence.capture.decoder import packets
from tests.support import captures, tshark
from tests.support.traffic_capture import all_kinds

PORTS = {
    "udp.port==12965": "lbmr",
    "udp.port==14390": "lbtrm",
    "udp.port==14400": "lbtrm",
    "udp.port==14380": "lbtru",
    "tcp.port==14371": "lbttcp",
    "tcp.port==14567": "lbttcp",
    "tcp.port==27000": "lbmsrs",
}
DISSECTORS = {"LBMR": "lbmr", "LBT-RM": "lbtrm", "LBT-RU": "lbtru", "LBMC": "lbmc", "RSOCKET": "lbmsrs"}
EVENTS = {"NAK"}
"""Warnings of dissectors about every packet of the kind."""


def test_public_dissectors_agree(tmp_path: Path) -> None:
    path = captures.pcap(tmp_path / "a.pcap", all_kinds().packets)
    dissected = tshark.dissect(path, PORTS)
    assert {problem for packet in dissected for problem in packet.problems} <= EVENTS
    for packet, theirs in zip(packets(path), dissected, strict=True):
        ours = {DISSECTORS[layer.protocol] for layer in packet.layers if layer.protocol in DISSECTORS}
        assert ours == ours.intersection(theirs.protocols)
        messages = [layer for layer in packet.layers if layer.protocol == "LBMC"]
        assert theirs.protocols.count("lbmc") == len(messages)
