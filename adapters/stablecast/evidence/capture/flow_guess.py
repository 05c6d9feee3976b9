"""Guess the protocol of a flow that nobody announced: each byte from the first to the last must read as ours."""

from typing import assert_never

from stablecast.evidence.capture import layers
from stablecast.evidence.capture.ports import TrafficKind
from stablecast.evidence.capture.streams import FrameReader, MessageReader
from stablecast.transports.wire import lbmr, lbtrm, lbtru
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.reliable_packets import Format


def guess_datagram(octets: bytes) -> TrafficKind | None:
    """Return the protocol of a datagram, if it can hardly be another one."""
    for kind, test in (
        (TrafficKind.LBMR, _is_resolution),
        (TrafficKind.LBTRM, _is_multicast),
        (TrafficKind.LBTRU, _is_unicast),
    ):
        try:
            if test(octets):
                return kind
        except WireError:
            continue
    return None


def _is_resolution(octets: bytes) -> bool:
    packet = lbmr.decode(octets)
    if packet.version != lbmr.VERSION:
        return False
    if packet.options or isinstance(packet, lbmr.ContextInfo):
        return True
    return isinstance(packet, lbmr.Packet) and bool(packet.queries or packet.advertisements)


def _is_multicast(octets: bytes) -> bool:
    packet = lbtrm.decode(octets)
    if packet.options or not packet.nak_port:
        return False
    match packet:
        case lbtrm.Data():
            return _holds_messages(packet.payload)
        case lbtrm.SessionMessage():
            return packet.reserved == 0 and bool(packet.flags & lbtrm.Data.UNICAST_NAKS)
        case lbtrm.Nak() | lbtrm.Ncf():
            return bool(packet.sqns) and packet.format <= Format.PARITY
        case _:
            assert_never(packet)


def _is_unicast(octets: bytes) -> bool:
    packet = lbtru.decode(octets)
    match packet:
        case lbtru.Data():
            return packet.flags in {0, lbtru.Data.RETRANSMISSION} and _holds_messages(packet.payload)
        case lbtru.SessionMessage():
            return packet.flags in {0, lbtru.SessionMessage.SYN}
        case lbtru.Nak() | lbtru.Ncf():
            return bool(packet.sqns) and packet.reserved == 0 and packet.format <= Format.PARITY
        case lbtru.Ack() | lbtru.Request():
            return bool(packet.options)
        case lbtru.Reset():
            return False
        case _:
            assert_never(packet)


def _holds_messages(payload: bytes) -> bool:
    found = layers.messages(payload, roundtrip=False)
    return bool(found.layers) and not found.problems


def guess_stream(octets: bytes, least: int = 1) -> TrafficKind | None:
    """Return the protocol of a connection with these bytes, its first or those of any segment.

    At least `least` messages or frames must be whole: bytes that were joined until they fit are no proof.
    """
    messages = MessageReader(whole=True, roundtrip=False)
    scan = messages.scan(octets)
    if scan.count >= least and not scan.broken and not messages.decode(octets[: messages.size(octets, 0)]).problems:
        return TrafficKind.LBTTCP
    scan = FrameReader(whole=True, roundtrip=False).scan(octets)
    return TrafficKind.SRS if scan.count >= least and scan.end == len(octets) else None


def may_go_on(octets: bytes) -> bool:
    """Return whether these may be the first bytes of a connection of ours, so that more of them would help."""
    readers = (kind(whole=True, roundtrip=False) for kind in (MessageReader, FrameReader))
    return not all(reader.scan(octets).broken for reader in readers)
