"""The record of a topic's source, and its advertisement (TIR) on the wire."""

from collections.abc import Iterable

import attrs

from stablecast.core.errors import MisuseError
from stablecast.transports.codec.places import joinable, otid, place_of, split, transport_of
from stablecast.transports.wire import lbmr

MAX_TOPIC_BYTES = 246
"""Length of a topic name in bytes, without its NUL."""

ENDED_TTL = 0
"""Time to live of a final advertisement, which marks the end of a source (ours; no form is documented)."""

INSTANCE_BYTES = 8
"""Length of the name of a context."""

PERSISTENT = lbmr.ExtendedFunctionality.LATE_JOIN | lbmr.ExtendedFunctionality.UME
"""The services that a persistent source offers."""


@attrs.frozen
class SourceRecord:
    """All that a receiver needs to join a source.

    Attributes:
        address: The place to join its data, `ip:port` or a source string (`places`).
        session_id: Its transport session, 32 bits.
        index: Its topic index, 32 bits; with the session ID it names the source.
        request_address: Request port of its context, `ip:port`; "" if unknown.
        persistent: True if it registers at stores.
        instance: The 8 bytes that name its context; empty if unknown.
    """

    address: str
    session_id: int
    index: int
    request_address: str = ""
    persistent: bool = False
    instance: bytes = b""


def check_instance(instance: bytes) -> None:
    """Raise MisuseError unless `instance` can name a context."""
    if len(instance) != INSTANCE_BYTES:
        raise MisuseError(f"a context instance has {INSTANCE_BYTES} bytes, not {len(instance)}")


def check_topic(topic: str) -> None:
    """Raise MisuseError unless `topic` can be requested on the wire."""
    try:
        octets = topic_bytes(topic)
    except UnicodeEncodeError:
        octets = b""  # a stray surrogate has no bytes
    if not 0 < len(octets) <= MAX_TOPIC_BYTES or 0 in octets:
        raise MisuseError(f"the topic name {topic!r} must be text of 1 to {MAX_TOPIC_BYTES} bytes without NUL")


def topic_bytes(topic: str) -> bytes:
    """Return the bytes of a topic name on the wire, without its NUL."""
    return topic.encode("utf-8", "surrogateescape")


def advertisement(topic: str, record: SourceRecord, ttl: int) -> lbmr.Advertisement:
    """Return the TIR of a source. With LBT-RM it contains the OTID, whose layout is known.

    Raises:
        MisuseError: If an address of the record is malformed.
    """
    transport = transport_of(record.address, record.session_id)
    options: list[lbmr.TirOption] = []
    if record.instance and isinstance(transport, lbmr.LbtrmTransport):
        options.append(lbmr.OriginatingTransport(otid=otid(transport, record.index, record.instance)))
    if record.request_address:
        request_host, request_port = split(record.request_address)
        offered = PERSISTENT if record.persistent else 0
        options.append(
            lbmr.ExtendedFunctionality(source_port=request_port, source_address=request_host, functionality=offered)
        )
    if record.instance:
        options.append(lbmr.ContextInstance(instance=record.instance))
    return lbmr.Advertisement(topic, transport, ttl, record.index, tuple(options))


def source_record(tir: lbmr.Advertisement, trailer: Iterable[lbmr.PacketOption]) -> SourceRecord | None:
    """Return the record of an advertised source; None if receivers cannot join its transport."""
    transport = joinable(tir.transport)
    if transport is None:
        return None
    request_address, persistent = "", False
    instance = next((option.source_id for option in trailer if isinstance(option, lbmr.SourceId)), b"")
    for option in tir.options:
        match option:
            case lbmr.ExtendedFunctionality():
                request_address = f"{option.source_address}:{option.source_port}"
                persistent = bool(option.functionality & lbmr.ExtendedFunctionality.UME)
            case lbmr.ContextInstance():
                instance = option.instance
    session_id = transport.session_id or 0  # old sources have none
    return SourceRecord(place_of(transport), session_id, tir.index, request_address, persistent, instance)


def proof_of(packet: lbmr.AnyPacket | None) -> bytes | None:
    """Return the proof of an address in a relay's answer to a keepalive, empty if it has none.

    Other packets are no answers: None.
    """
    if not isinstance(packet, lbmr.Packet) or packet.kind != lbmr.PacketKind.NORMAL:
        return None
    if packet.queries or packet.advertisements:
        return None
    return next((option.source_id for option in packet.options if isinstance(option, lbmr.SourceId)), b"")
