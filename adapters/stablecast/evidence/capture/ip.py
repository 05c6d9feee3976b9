"""IPv4, UDP, TCP and ICMP headers."""

import struct
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import ClassVar

from stablecast.core.machine.records import record
from stablecast.transports.wire import fields


class FrameVerdict(Enum):
    """The degree to which a frame could be read.

    PART is provisional: the frame holds a piece, and a later packet settles it. The others are final. A frame of
    several messages has the gravest of their verdicts, which is the last one in this list.
    """

    OTHER = "other"
    PART = "part"
    DECODED = "decoded"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    INCOMPLETE = "incomplete"
    DAMAGED = "damaged"
    MALFORMED = "malformed"


_GRAVITY = {verdict: weight for weight, verdict in enumerate(FrameVerdict)}


def gravest(verdicts: "list[FrameVerdict]") -> FrameVerdict:
    """Return the gravest of these verdicts; DECODED if there is none."""
    return max(verdicts, key=_GRAVITY.__getitem__, default=FrameVerdict.DECODED)


UDP = 17
TCP = 6
ICMP = 1
"""Protocol numbers of an IPv4 header."""

_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_UDP = struct.Struct(">HHH2x")
_TCP = struct.Struct(">HHIIBBH4x")
_PORTS = struct.Struct(">HH")
_ICMP_HEADER = 8
"""Bytes before the packet that an ICMP message is about."""
_PORT_UNREACHABLE = b"\x03\x03"
"""Type and code of the ICMP message of a host without a listener at a port."""
_FLOW = slice(12, 24)
"""Addresses and ports in an IPv4 packet whose header has no options."""
_PLAIN = 0x45
"""First byte of an IPv4 packet whose header has no options."""
_CHECKS = {UDP: 6, TCP: 16}
"""Offset of the checksum in UDP and TCP headers."""
_ONES = 0xFFFF
"""Sums in ones' complement are remainders of this."""
_MORE = 0x2000
_OFFSET = 0x1FFF
"""Flags of a piece of a datagram: more pieces follow; mask of its offset in units of eight bytes."""

MAX_CACHED = 1 << 12
"""Addresses whose text is cached."""

dotted = lru_cache(MAX_CACHED)(fields.dotted)

Endpoint = tuple[str, int]
"""An IPv4 address and a port."""


def endpoint_text(endpoint: Endpoint) -> str:
    return f"{endpoint[0]}:{endpoint[1]}"


@record
class IpPacket:
    """An IPv4 packet.

    Attributes:
        source, target: Dotted addresses.
        protocol: The protocol of its payload.
        ident: Number that all pieces of a datagram have.
        offset: Offset of the payload in its datagram; 0 in a whole one.
        more: Whether later pieces follow.
        payload: The captured part.
        missing: Bytes that the capture cut off.
        sound: Whether the checksum of its header is right, or not set.
    """

    source: str
    target: str
    protocol: int
    ident: int
    offset: int
    more: bool
    payload: bytes
    missing: int
    sound: bool = True

    @property
    def piece(self) -> bool:
        return self.more or self.offset > 0


def parse(octets: bytes, length: int) -> IpPacket | None:
    """Return the packet in captured bytes that were `length` on the wire, or None."""
    if len(octets) < _IPV4.size:
        return None
    first, _, total, ident, fragment, _, protocol, check, source, target = _IPV4.unpack_from(octets)
    header = (first & 0x0F) * 4
    if total == 0:  # written by the network card, after the capture
        total = length
    if header < _IPV4.size or total < header or len(octets) < header:
        return None
    return IpPacket(
        dotted(source),
        dotted(target),
        protocol,
        ident,
        (fragment & _OFFSET) * 8,
        bool(fragment & _MORE),
        octets[header:total],
        max(total - len(octets), 0),
        not check or not int.from_bytes(octets[:header]) % _ONES,
    )


def flow_of(octets: bytes) -> bytes:
    """Return the common bytes of a TCP flow; nothing for pieces, headers with options and other packets."""
    plain = len(octets) >= _FLOW.stop and octets[0] == _PLAIN and octets[9] == TCP and not octets[6] & 0x3F
    return octets[_FLOW] if plain and not octets[7] else b""


def intact(packet: IpPacket) -> bool | None:
    """Return whether the checksums of a whole packet are right, or None if they cannot be checked.

    The checksum was cut off, is not set, or is the sum of addresses and length alone, to be completed by the network
    card.
    """
    if not packet.sound:
        return False
    at = _CHECKS.get(packet.protocol)
    if at is None or packet.missing or len(packet.payload) < at + 2:
        return None
    length = int.from_bytes(packet.payload[4:6]) if packet.protocol == UDP else len(packet.payload)
    octets = packet.payload[:length]
    check = int.from_bytes(octets[at : at + 2])
    addresses = _octets(packet.source) + _octets(packet.target)
    pseudo = (int.from_bytes(addresses) + packet.protocol + length) % _ONES
    if check in {0, pseudo}:
        return None
    return not (int.from_bytes(octets + bytes(len(octets) % 2)) + pseudo) % _ONES


def _octets(address: str) -> bytes:
    return bytes(map(int, address.split(".")))


@record
class UdpDatagram:
    """A UDP datagram.

    Attributes:
        missing: Bytes that its length announces and that are not there.
        cut: Those of them that the capture cut off; the others were never sent.
    """

    source: Endpoint
    target: Endpoint
    payload: bytes
    missing: int = 0
    cut: int = 0


def parse_udp(packet: IpPacket) -> UdpDatagram | None:
    """Return the datagram of a whole packet, or None."""
    if len(packet.payload) < _UDP.size:
        return None
    source, target, length = _UDP.unpack_from(packet.payload)
    if length < _UDP.size:
        return None
    payload = packet.payload[_UDP.size : length]
    missing = length - _UDP.size - len(payload)
    return UdpDatagram((packet.source, source), (packet.target, target), payload, missing, min(missing, packet.missing))


@record
class TcpSegment:
    """A TCP segment.

    Attributes:
        sequence: Number of its first byte, 32 bits; with `syn` the byte before it.
        missing: Bytes that the capture cut off.
    """

    SYN: ClassVar[int] = 0x02
    source: Endpoint
    target: Endpoint
    sequence: int
    flags: int
    payload: bytes
    missing: int

    @property
    def syn(self) -> bool:
        """Return whether it opens its direction."""
        return bool(self.flags & self.SYN)


def parse_tcp(packet: IpPacket) -> TcpSegment | None:
    """Return the segment of a whole packet, or None."""
    if len(packet.payload) < _TCP.size:
        return None
    source, target, sequence, _, offset, flags, _ = _TCP.unpack_from(packet.payload)
    header = (offset >> 4) * 4
    if not _TCP.size <= header <= len(packet.payload):
        return None
    octets = packet.payload[header:]
    return TcpSegment((packet.source, source), (packet.target, target), sequence, flags, octets, packet.missing)


@record
class PortUnreachable:
    """The answer of a host at whose port `target` nothing listens, to a UDP datagram from `source`."""

    source: Endpoint
    target: Endpoint


def parse_icmp(packet: IpPacket) -> PortUnreachable | None:
    """Return the refused datagram's endpoints in a whole packet, or None."""
    inner = parse(packet.payload[_ICMP_HEADER:], 0)
    if packet.payload[:2] != _PORT_UNREACHABLE or inner is None or inner.protocol != UDP or inner.offset:
        return None
    if len(inner.payload) < _PORTS.size:
        return None
    source, target = _PORTS.unpack_from(inner.payload)
    return PortUnreachable((inner.source, source), (inner.target, target))


Content = UdpDatagram | TcpSegment | PortUnreachable
"""The contents of a packet, as far as they are read."""

_PARSERS: dict[int, Callable[[IpPacket], Content | None]] = {UDP: parse_udp, TCP: parse_tcp, ICMP: parse_icmp}


def content(packet: IpPacket) -> Content | None:
    """Return the datagram, segment or refusal in a packet, or None."""
    parser = _PARSERS.get(packet.protocol)
    return None if parser is None else parser(packet)
