"""The packets of sessions, decoded by public dissectors."""

from pathlib import Path

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.transports.codec.fragments import encode_pieces
from stablecast.transports.reliable.inputs import Submit
from stablecast.transports.reliable.settings import SourceSettings
from stablecast.transports.wire import lbtrm, lbtru
from tests.support.pcap import Address, Capture
from tests.support.tshark import Packet, dissect
from tests.transports.reliable.network import MS, SESSION, Faults, Network

GROUP: Address = ("224.10.10.10", 14400)
DATA: Address = ("10.0.0.1", 50_000)
NAKS: Address = ("10.0.0.1", 14_390)
SERVICE: Address = ("10.0.0.1", 14_380)
KINDS = ("lbtrm", "lbtru")
LARGE = bytes(range(250)) * 80
REASSEMBLE = "lbmc.reassemble_fragments:TRUE"


def captured(network: Network, path: Path) -> Path:
    """Return every datagram once: to the first receiver if it is sent to each."""
    capture = Capture()
    multicast = network.kind == "lbtrm"
    seen = None
    for at, who, packet in network.wire:
        octets = (lbtrm if multicast else lbtru).encode(packet)
        if who == "source":
            if not multicast and (at, packet) == seen:
                continue
            seen = (at, packet)
            capture.udp(*((DATA, GROUP) if multicast else (SERVICE, ("10.0.1.0", 14_360))), octets)
        else:
            host, _, port = who.rpartition(":")
            capture.udp((host, int(port)), NAKS if multicast else SERVICE, octets)
    capture.write(path)
    return path


def played(kind: str) -> Network:
    """Loss, marks, large messages, and the end."""
    network = Network(kind, 2, Faults(lost=200), 6, SourceSettings(batch_bytes=1, linger_ns=SECOND))
    network.run(SECOND)
    for number in range(40):
        network.send_at(SECOND + number * 20 * MS, 7)
    network.run(3 * SECOND)
    room = SourceSettings().datagram_max - 20
    network.source.feed(Submit(SESSION, b"".join(encode_pieces(8, 0, LARGE, room))))
    network.run(20 * SECOND)
    network.close()
    network.run(23 * SECOND)
    return network


def kinds(packets: list[Packet], kind: str) -> set[int]:
    return {int(value, 0) for packet in packets for value in packet.fields.get(f"{kind}.hdr.type", [])}


@pytest.mark.parametrize("kind", KINDS)
def test_every_datagram_is_what_it_is_to_the_public_dissectors(kind: str, tmp_path: Path) -> None:
    """No datagram is malformed; large messages are reassembled; dissectors show NAKs as warnings."""
    network = played(kind)
    path = captured(network, tmp_path / "session.pcap")
    packets = dissect(path, {}, REASSEMBLE)
    assert all(kind in packet.protocols for packet in packets)
    assert {problem for packet in packets for problem in packet.problems} == {"NAK"}
    assert not any("_ws.malformed" in packet.protocols for packet in packets)
    expected = {0, 2, 3, 4} if kind == "lbtrm" else {0, 2, 3, 4, 5, 6, 7}
    assert kinds(packets, kind) == expected
    assert any("lbmc" in packet.protocols for packet in packets)
    assert any("lbmc.reassembly_frame" in packet.fields for packet in packets)
