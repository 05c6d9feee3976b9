"""The datagram or segment in a frame: link layer, IPv4, and reassembly."""

from collections.abc import Container

from stablecast.core.machine.records import record
from stablecast.evidence.capture.files import CaptureFrame
from stablecast.evidence.capture.ip import (
    MAX_HELD,
    TCP,
    UDP,
    IpPacket,
    IpReassembly,
    TcpSegment,
    UdpDatagram,
    WholePacket,
    intact,
    parse,
    parse_tcp,
    parse_udp,
)
from stablecast.evidence.capture.link import ipv4_packet


@record
class Carried:
    """The datagram or segment of a frame, or nothing of ours; `frames` are all frames that it came in.

    `damaged`: a checksum is wrong, so every receiver drops it.
    """

    content: UdpDatagram | TcpSegment | None
    frames: tuple[int, ...]
    damaged: bool = False


class IpNetwork:
    """Link layer and IPv4, with the pieces of datagrams.

    Args:
        checking: Addresses whose packets have checksums to check.
    """

    def __init__(self, checking: Container[str] = ()) -> None:
        self._reassembly = IpReassembly()
        self._checking = checking

    def unwrap(self, frame: CaptureFrame) -> Carried | None:
        """Return the contents of a frame; None while pieces of its datagram are missing."""
        octets = ipv4_packet(frame.link, frame.octets)
        packet = parse(octets, len(octets) + frame.length - len(frame.octets)) if octets else None
        if packet is None:
            return Carried(None, (frame.number,))
        if not packet.piece:
            return self.carry(packet, (frame.number,))
        whole = self._reassembly.add_piece(packet, frame.number, frame.time_ns)
        return None if whole is None else self.carry(whole.packet, whole.frames)

    def carry(self, packet: IpPacket, frames: tuple[int, ...]) -> Carried:
        """Return the contents of a whole packet."""
        damaged = packet.source in self._checking and intact(packet) is False
        return Carried(content(packet), frames, damaged)

    def abandon(self) -> list[WholePacket]:
        """Return the dropped datagrams with missing pieces."""
        return self._reassembly.abandon(MAX_HELD)

    def close(self) -> list[WholePacket]:
        """Return all incomplete datagrams at the end."""
        return self._reassembly.abandon(0)


def content(packet: IpPacket) -> UdpDatagram | TcpSegment | None:
    """Return the datagram or segment in a packet, or None."""
    if packet.protocol == UDP:
        return parse_udp(packet)
    return parse_tcp(packet) if packet.protocol == TCP else None
