"""Places: where receivers join a source's data, as text, as transport of an advertisement, and in the source's OTID.

A place is `ip:port` with LBT-TCP, otherwise the source string without its index:
`LBTRM:host:nak-port:session:group:port`
or `LBT-RU:host:port:session`, with the session in hexadecimal. The OTID identifies a source for everybody. With LBT-RM
it has the observed layout, with the session ID in the byte order of the usual hosts; the other layouts are ours.
"""

import ipaddress
import re
import struct

from stablecast.core.errors import MisuseError
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
_OTID = struct.Struct(">B4sHII8s9x")
_OTID_LBTRM = struct.Struct(">B4sH4sH4sI8s2xB")
_OTID_END = 1
"""The last byte of an OTID of LBT-RM; its meaning is unknown."""
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
    """Return the place of a transport."""
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


def otid(transport: Joinable, index: int, instance: bytes) -> bytes:
    """Return the OTID of a source with this index in the context of this instance, 32 bytes."""
    if isinstance(transport, lbmr.LbtrmTransport):
        return _OTID_LBTRM.pack(
            transport.CODE,
            packed(transport.source_address),
            transport.nak_port,
            packed(transport.group),
            transport.destination_port,
            transport.session_id.to_bytes(4, "little"),
            index,
            instance,
            _OTID_END,
        )
    address = packed(transport.address)
    return _OTID.pack(transport.CODE, address, transport.port, transport.session_id or 0, index, instance)


def of_otid(octets: bytes) -> Joinable | None:
    """Return the transport that an OTID names; None if receivers cannot join it."""
    if octets[0] == lbmr.LbtrmTransport.CODE:
        _, source, nak_port, group, port, session, *_ = _OTID_LBTRM.unpack(octets)
        addresses = str(ipaddress.IPv4Address(source)), str(ipaddress.IPv4Address(group))
        return lbmr.LbtrmTransport(*addresses, int.from_bytes(session, "little"), port, nak_port)
    code, host, port, session_id, *_ = _OTID.unpack(octets)
    address = str(ipaddress.IPv4Address(host))
    match code:
        case lbmr.TcpTransport.CODE:
            return lbmr.TcpTransport(address, session_id, port)
        case lbmr.LbtruTransport.CODE:
            return lbmr.LbtruTransport(address, session_id, port)
        case _:
            return None


def split(address: str) -> tuple[str, int]:
    """Return host and port. Raises MisuseError for a malformed address."""
    host, _, port = address.rpartition(":")
    try:
        if port.isdecimal() and int(port) <= _MAX_PORT:
            return str(ipaddress.IPv4Address(host)), int(port)
    except ipaddress.AddressValueError:
        pass  # reported below, like a malformed port
    raise MisuseError(f"'{address}' is not an address: write ip:port, for example 127.0.0.1:14371")
