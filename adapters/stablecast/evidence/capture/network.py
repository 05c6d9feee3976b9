"""From a frame to the datagram or segment in it."""

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
    """What a frame brings: a datagram or a segment, or nothing of ours; `frames` are all those that it came in.

    `damaged`: a checksum is wrong, so nobody takes it.
    """

    content: UdpDatagram | TcpSegment | None
    frames: tuple[int, ...]
    damaged: bool = False


class IpNetwork:
    """Link layer and IPv4, with the pieces of datagrams.

    Args:
        checking: Addresses whose packets have checksums: theirs are looked at.
    """

    def __init__(self, checking: Container[str] = ()) -> None:
        self._reassembly = IpReassembly()
        self._checking = checking

    def take(self, frame: CaptureFrame) -> Carried | None:
        """What a frame brings; None while pieces of its datagram are missing."""
        octets = ipv4_packet(frame.link, frame.octets)
        packet = parse(octets, len(octets) + frame.length - len(frame.octets)) if octets else None
        if packet is None:
            return Carried(None, (frame.number,))
        if not packet.piece:
            return self.carry(packet, (frame.number,))
        whole = self._reassembly.take(packet, frame.number, frame.time_ns)
        return None if whole is None else self.carry(whole.packet, whole.frames)

    def carry(self, packet: IpPacket, frames: tuple[int, ...]) -> Carried:
        """What a whole packet brings."""
        damaged = packet.source in self._checking and intact(packet) is False
        return Carried(content(packet), frames, damaged)

    def abandon(self) -> list[WholePacket]:
        """Datagrams whose pieces are awaited in vain."""
        return self._reassembly.abandon(MAX_HELD)

    def close(self) -> list[WholePacket]:
        """No more frames come."""
        return self._reassembly.abandon(0)


def content(packet: IpPacket) -> UdpDatagram | TcpSegment | None:
    """The datagram or segment in a packet, if it is one."""
    if packet.protocol == UDP:
        return parse_udp(packet)
    return parse_tcp(packet) if packet.protocol == TCP else None
