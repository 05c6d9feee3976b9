"""Places: where receivers join a source's data, as text, as transport of an advertisement, and in the source's OTID.

A place is `ip:port` with LBT-TCP, otherwise the source string without its index:
`LBTRM:host:nak-port:session:group:port`
or `LBT-RU:host:port:session`, with the session in hexadecimal.

The OTID names one life of a source for everybody. It is made where the source is, and routers repeat it unchanged,
while each hop has a place, a session and an index of its own. LBT-RM and LBT-RU hold the session ID in the byte order
of the usual hosts. Releases 0.1 and 0.2 had a layout of their own with LBT-TCP and LBT-RU; its version is 0, and it is
still read.
"""

import ipaddress
import re
import struct

from stablecast.core.errors import MisuseError
from stablecast.core.protocol.messages import Incarnation
from stablecast.transports.codec import identity
from stablecast.transports.wire import lbmr
from stablecast.transports.wire.fields import packed

Joinable = lbmr.TcpTransport | lbmr.LbtruTransport | lbmr.LbtrmTransport
"""The transports that a receiver can join."""

SOURCE_STRINGS = ("LBTRM:", "LBT-RU:")
"""The beginnings of places that are not `ip:port`."""

_ADDRESS = r"(\d{1,3}(?:\.\d{1,3}){3}):(\d{1,5})"
_FORM = re.compile(
    rf"(?:(TCP|LBT-RU)|LBTRM):{_ADDRESS}:([0-9a-fA-F]{{1,8}})(?(1)|:{_ADDRESS})(?:\[\d{{1,10}}\])?", re.ASCII
)
OTID_BYTES = 32
"""Length of the identity of a source."""

_OTID_TCP = struct.Struct(">B4sHIIII8xB")
_OTID_LBTRM = struct.Struct(">B4sH4sH4sIII2xB")
_OTID_LBTRU = struct.Struct(">B4sH4sIII8xB")
_OTID_OLD = struct.Struct(">B4sHII17x")
_OTID_VERSION = 1
"""The last byte of an OTID. Those of version 0 have no transport index."""
_IDENTITY_AT = {
    lbmr.TcpTransport.CODE: (slice(19, 23), slice(7, 11), False),
    lbmr.LbtrmTransport.CODE: (slice(13, 17), slice(17, 21), True),
    lbmr.LbtruTransport.CODE: (slice(7, 11), slice(11, 15), True),
    0x20: (slice(7, 11), slice(11, 15), True),
    0x40: (slice(7, 11), slice(11, 15), False),
    0x04: (slice(7, 11), slice(11, 15), False),
}
"""Session ID, topic index, and whether the session ID is little-endian, by transport: also those that routers join."""
_OLD_IDENTITY_AT = (slice(7, 11), slice(11, 15), False)
_MAX_PORT = 65_535


def transport_of(place: str, session_id: int) -> Joinable:
    """Return the transport of an advertisement for a place. Only `ip:port` needs the session ID.

    Raises:
        MisuseError: If the place is malformed, or of another session.
    """
    if not place.startswith(SOURCE_STRINGS):
        host, port = split(place)
        return lbmr.TcpTransport(host, session_id, port)
    found = from_source_string(place)
    if found is None or found.session_id != session_id:
        forms = "LBTRM:host:nak-port:session:group:port or LBT-RU:host:port:session"
        raise MisuseError(f"'{place}' is not a place of session {session_id:#x}: write {forms}")
    return found


def joinable(transport: lbmr.Transport | None) -> Joinable | None:
    """Return the transport if a receiver can join it, otherwise None.

    LBT-RU without a session ID cannot be joined, because its datagrams cannot be distinguished from those of strangers.
    """
    match transport:
        case lbmr.TcpTransport() | lbmr.LbtruTransport(session_id=int()):
            return transport
        case lbmr.LbtrmTransport() if ipaddress.IPv4Address(transport.group).is_multicast:
            return transport
        case _:
            return None


def place_of(transport: Joinable) -> str:
    return (
        f"{transport.address}:{transport.port}"
        if isinstance(transport, lbmr.TcpTransport)
        else source_string(transport)
    )


def source_string(transport: Joinable) -> str:
    """Return the source string without an index."""
    session = f"{transport.session_id or 0:08x}"
    match transport:
        case lbmr.LbtrmTransport(source, group, _, port, nak_port):
            return f"LBTRM:{source}:{nak_port}:{session}:{group}:{port}"
        case lbmr.LbtruTransport():
            return f"LBT-RU:{transport.address}:{transport.port}:{session}"
        case _:
            return f"TCP:{transport.address}:{transport.port}:{session}"


def from_source_string(source: str) -> Joinable | None:
    """Return the transport of a source string, with or without its index; None if it is malformed."""
    found = _FORM.fullmatch(source)
    if found is None:
        return None
    kind, *address, session, group, group_port = found.groups()
    try:
        host, port = split(":".join(address))
        session_id = int(session, 16)
        if kind is None:
            to, to_port = split(f"{group}:{group_port}")
            return lbmr.LbtrmTransport(host, to, session_id, to_port, port)
    except MisuseError:
        return None
    return (lbmr.TcpTransport if kind == "TCP" else lbmr.LbtruTransport)(host, session_id, port)


def otid(transport: Joinable, index: int, context_id: int, transport_index: int) -> bytes:
    """Return the OTID of a source, 32 bytes; the last two numbers name its context and its transport."""
    if isinstance(transport, lbmr.LbtrmTransport):
        return _OTID_LBTRM.pack(
            transport.CODE,
            packed(transport.source_address),
            transport.nak_port,
            packed(transport.group),
            transport.destination_port,
            transport.session_id.to_bytes(4, "little"),
            index,
            context_id,
            transport_index,
            _OTID_VERSION,
        )
    place = transport.CODE, packed(transport.address), transport.port
    session = transport.session_id or 0
    if isinstance(transport, lbmr.TcpTransport):
        return _OTID_TCP.pack(*place, index, context_id, transport_index, session, _OTID_VERSION)
    return _OTID_LBTRU.pack(*place, session.to_bytes(4, "little"), index, context_id, transport_index, _OTID_VERSION)


def context_names(instance: bytes) -> tuple[int, int]:
    """Return the context ID and the transport index in the OTIDs of a context, from the 8 bytes that name it.

    The transport index is the same for all transports of a context, as observed: their sessions distinguish them.
    """
    return int.from_bytes(instance[:4]), int.from_bytes(instance[4:8])


def life_of_otid(octets: bytes) -> Incarnation | None:
    """Return the life that an OTID names: the incarnation of the source where it is; None for an unknown transport."""
    found = _OLD_IDENTITY_AT if _is_old(octets) else _IDENTITY_AT.get(octets[0])
    if found is None:
        return None
    session, index, little = found
    session_id = int.from_bytes(octets[session], "little" if little else "big")
    return identity.join(session_id, int.from_bytes(octets[index]))


def of_otid(octets: bytes) -> Joinable | None:
    """Return the transport that an OTID names; None if receivers cannot join it."""
    if octets[0] == lbmr.LbtrmTransport.CODE:
        _, source, nak_port, group, port, session, *_ = _OTID_LBTRM.unpack(octets)
        addresses = str(ipaddress.IPv4Address(source)), str(ipaddress.IPv4Address(group))
        return lbmr.LbtrmTransport(*addresses, int.from_bytes(session, "little"), port, nak_port)
    if octets[0] not in (lbmr.TcpTransport.CODE, lbmr.LbtruTransport.CODE):
        return None
    _, host, port, *_ = _OTID_OLD.unpack(octets)
    kind = lbmr.TcpTransport if octets[0] == lbmr.TcpTransport.CODE else lbmr.LbtruTransport
    session_id, _ = identity.split(life_of_otid(octets) or 0)
    return kind(str(ipaddress.IPv4Address(host)), session_id, port)


def _is_old(octets: bytes) -> bool:
    """Return whether an OTID has the layout of releases 0.1 and 0.2."""
    return octets[0] in (lbmr.TcpTransport.CODE, lbmr.LbtruTransport.CODE) and not octets[-1]


def split(address: str) -> tuple[str, int]:
    """Return host and port. Raises MisuseError for a malformed address."""
    host, _, port = address.rpartition(":")
    try:
        if port.isdecimal() and int(port) <= _MAX_PORT:
            return str(ipaddress.IPv4Address(host)), int(port)
    except ipaddress.AddressValueError:
        pass  # reported below, like a malformed port
    raise MisuseError(f"'{address}' is not an address: write ip:port, for example 127.0.0.1:14371")


def host_of(origin: bytes) -> str:
    """Return the address of the host in an OTID, which is that of the source's transport."""
    return ".".join(map(str, origin[1:5]))
