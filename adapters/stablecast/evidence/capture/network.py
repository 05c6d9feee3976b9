"""The datagram or segment in a frame: link layer, IPv4, and reassembly, also of packets inside of packets.

GRE, IP in IP, VXLAN and GENEVE are those of overlays and mirror ports. The outer packet says nothing about the
protocol: its addresses are those of hosts or switches that carry others.
"""

from collections import OrderedDict
from collections.abc import Callable, Container, Mapping

import attrs

from stablecast.core.machine.records import record
from stablecast.evidence.capture.files import CaptureFrame
from stablecast.evidence.capture.ip import UDP, Content, IpPacket, content, intact, parse
from stablecast.evidence.capture.link import BRIDGED, behind_type, ipv4_packet

IP_IN_IP, GRE = 4, 47
"""Protocol numbers of an IPv4 header."""
VXLAN, GENEVE = 4789, 6081
"""Ports of UDP to which such datagrams go."""
MAX_TUNNELS = 4
"""Packets around a packet, at most."""

_UDP_HEAD = 8
_CHECKSUM, _KEY, _SEQUENCE, _ROUTING = 0x80, 0x20, 0x10, 0x40
"""Flags of GRE: fields that are there, and routing, which nobody uses."""
_ERSPAN, _ERSPAN_HEAD = 0x88BE, 8
"""The ethertype of mirrored frames in GRE, and the bytes before one if frames are numbered."""
_VXLAN_FLAGS, _VXLAN_HEAD = 0x08, 8
"""The only flag of VXLAN: it has a number of its network."""


def inner(packet: IpPacket) -> bytes:
    """Return the IPv4 packet inside of a whole packet, or nothing."""
    reader = _READERS.get(packet.protocol)
    return reader(packet.payload) if reader else b""


def _ip(octets: bytes) -> bytes:
    return behind_type(0x0800, octets)


def _gre(octets: bytes) -> bytes:
    if len(octets) < 4 or octets[1] & 0x07 or octets[0] & _ROUTING:
        return b""
    kind = int.from_bytes(octets[2:4])
    at = 4 + sum(4 for flag in (_CHECKSUM, _KEY, _SEQUENCE) if octets[0] & flag)
    if kind == _ERSPAN:
        return behind_type(BRIDGED, octets[at + (_ERSPAN_HEAD if octets[0] & _SEQUENCE else 0) :])
    return behind_type(kind, octets[at:])


def _udp(octets: bytes) -> bytes:
    """Return the packet in a datagram of an overlay; the source's port is any one."""
    port, body = int.from_bytes(octets[2:4]), octets[_UDP_HEAD:]
    if port == VXLAN and body[:1] == bytes((_VXLAN_FLAGS,)):
        return behind_type(BRIDGED, body[_VXLAN_HEAD:])
    if port == GENEVE and len(body) >= 8 and not body[0] >> 6:
        return behind_type(int.from_bytes(body[2:4]), body[8 + 4 * (body[0] & 0x3F) :])
    return b""


_READERS: Mapping[int, Callable[[bytes], bytes]] = {IP_IN_IP: _ip, GRE: _gre, UDP: _udp}


MAX_HELD = 4096
"""Incomplete datagrams; the oldest is dropped for a new one."""
MAX_APART_NS = 1_000_000_000
"""Pieces of a datagram are sent together. A later piece is of another one, because numbers repeat soon."""


@attrs.define
class _Pieces:
    """The pieces of a datagram since `began_ns`: bytes by their offset, and their frames."""

    packet: IpPacket
    began_ns: int
    octets: dict[int, bytes] = attrs.field(factory=dict)
    frames: list[int] = attrs.field(factory=list)
    end: int | None = None

    def of_another(self, packet: IpPacket, time_ns: int) -> bool:
        """Return whether a piece is of another datagram with the same number: it is late, or differs."""
        late = abs(time_ns - self.began_ns) > MAX_APART_NS
        return late or self.octets.get(packet.offset, packet.payload) != packet.payload

    def whole(self) -> bytes | None:
        """Return the complete datagram, or None. If pieces overlap, the one that begins first counts."""
        found = b""
        for offset in sorted(self.octets):
            if offset > len(found):
                return None
            found += self.octets[offset][len(found) - offset :]
        return found[: self.end] if self.end is not None and len(found) >= self.end else None


Key = tuple[str, str, int, int]


@attrs.frozen
class WholePacket:
    """A complete datagram, or a dropped one; then `packet` is its first piece, or the last one that came."""

    packet: IpPacket
    frames: tuple[int, ...]


class IpReassembly:
    def __init__(self) -> None:
        self._held: OrderedDict[Key, _Pieces] = OrderedDict()
        self._given_up: list[WholePacket] = []

    def add_piece(self, packet: IpPacket, frame: int, time_ns: int) -> WholePacket | None:
        """Add a piece; return the datagram once it is complete."""
        key = (packet.source, packet.target, packet.protocol, packet.ident)
        pieces = self._held.get(key)
        if pieces is not None and pieces.of_another(packet, time_ns):
            del self._held[key]
            self._given_up.append(WholePacket(pieces.packet, tuple(pieces.frames)))
            pieces = None
        if pieces is None:
            pieces = self._held[key] = _Pieces(packet, time_ns)
        pieces.frames.append(frame)
        pieces.octets.setdefault(packet.offset, packet.payload)
        if packet.offset == 0:
            pieces.packet = packet
        if not packet.more:
            pieces.end = packet.offset + len(packet.payload) + packet.missing
        octets = pieces.whole()
        if octets is None:
            return None
        del self._held[key]
        return WholePacket(attrs.evolve(packet, offset=0, more=False, payload=octets, missing=0), tuple(pieces.frames))

    def abandon(self, at_most: int) -> list[WholePacket]:
        """Return the dropped datagrams, and drop the oldest incomplete ones down to `at_most`."""
        found, self._given_up = self._given_up, []
        while len(self._held) > at_most:
            _, pieces = self._held.popitem(last=False)
            found.append(WholePacket(pieces.packet, tuple(pieces.frames)))
        return found


@record
class Carried:
    """The datagram or segment of a frame, or nothing of ours; `frames` are all frames that it came in.

    `damaged`: a checksum is wrong, so every receiver drops it. `ident`: the identification of its IP packet.
    """

    content: Content | None
    frames: tuple[int, ...]
    damaged: bool = False
    ident: int = 0


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
        numbers: tuple[int, ...] = (frame.number,)
        packet = parse(octets, len(octets) + frame.length - len(frame.octets)) if octets else None
        for _ in range(MAX_TUNNELS):
            if packet is None:
                return Carried(None, numbers)
            if packet.piece:
                whole = self._reassembly.add_piece(packet, frame.number, frame.time_ns)
                if whole is None:
                    return None
                packet, numbers = whole.packet, whole.frames
            octets = inner(packet)
            inside = parse(octets, len(octets) + packet.missing) if octets else None
            if inside is None:
                break
            packet = inside
        return Carried(None, numbers) if packet is None or packet.piece else self.carry(packet, numbers)

    def carry(self, packet: IpPacket, frames: tuple[int, ...]) -> Carried:
        damaged = packet.source in self._checking and intact(packet) is False
        return Carried(content(packet), frames, damaged, packet.ident)

    def abandon(self) -> list[WholePacket]:
        """Return the dropped datagrams with missing pieces."""
        return self._reassembly.abandon(MAX_HELD)

    def close(self) -> list[WholePacket]:
        """Return all incomplete datagrams at the end."""
        return self._reassembly.abandon(0)
