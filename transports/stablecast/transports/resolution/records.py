"""The record of a topic's source, and its advertisement (TIR) on the wire."""

from collections.abc import Iterable

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.protocol.messages import Incarnation
from stablecast.transports.codec.identity import join
from stablecast.transports.codec.places import (
    context_names,
    joinable,
    life_of_otid,
    otid,
    place_of,
    split,
    transport_of,
)
from stablecast.transports.wire import lbmr

MAX_TOPIC_BYTES = 246
"""Length of a topic name in bytes, without its NUL."""

ENDED_TTL = 0
"""Time to live of a final advertisement, which marks the end of a source (ours; no form is documented)."""

INSTANCE_BYTES = 8
"""Length of the name of a context."""

PORTAL_BYTES = 4
"""Bytes at the beginning of the name of a router's portal that stay when the router begins again."""

PERSISTENT = lbmr.ExtendedFunctionality.LATE_JOIN | lbmr.ExtendedFunctionality.UME
"""The services that a persistent source offers."""


@attrs.frozen
class SourceRecord:
    """All that a receiver needs to join a source.

    Behind a router, address, session and index are those of the router's own source, which repeats the original one.

    Attributes:
        address: The place to join its data, `ip:port` or a source string (`places`).
        session_id: Its transport session, 32 bits.
        index: Its topic index, 32 bits; with the session ID it names the source on this hop.
        request_address: Request port of the original context, `ip:port`; "" if unknown.
        persistent: True if it registers at stores.
        instance: The 8 bytes that name its context; empty if unknown.
        origin: The OTID of the original source, 32 bytes; empty if unknown, or not made yet by the context itself.
        cost: The sum of the costs of the routers between this context and the source; 0 without routers.
        hops: The number of those routers.
        domain: The domain of the original source; 0: that of whoever hears of it.
    """

    address: str
    session_id: int
    index: int
    request_address: str = ""
    persistent: bool = False
    instance: bytes = b""
    origin: bytes = b""
    cost: int = 0
    hops: int = 0
    domain: int = 0

    @property
    def hop(self) -> Incarnation:
        """The name of the source on this hop."""
        return join(self.session_id, self.index)

    @property
    def life(self) -> Incarnation:
        """The life of the original source. Without an OTID the source is where it was heard."""
        life = life_of_otid(self.origin) if self.origin else None
        return self.hop if life is None else life

    @property
    def is_direct(self) -> bool:
        """Whether the source itself is joined here, not a router that repeats it."""
        return self.life == self.hop

    @property
    def name(self) -> tuple[str, int, int]:
        """The name of the place: address, session ID and index."""
        return self.address, self.session_id, self.index


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


def named(record: SourceRecord) -> SourceRecord:
    """Return a record with its OTID, which is made here for a source of this context, if the context has a name.

    Raises:
        MisuseError: If the address of the record is malformed.
    """
    if record.origin or not record.instance:
        return record
    transport = transport_of(record.address, record.session_id)
    return attrs.evolve(record, origin=otid(transport, record.index, *context_names(record.instance)))


def advertisement(topic: str, record: SourceRecord, ttl: int) -> lbmr.Advertisement:
    """Return the TIR of a source. Cost and domain are there only if routers gave it one.

    Raises:
        MisuseError: If an address of the record is malformed.
    """
    transport = transport_of(record.address, record.session_id)
    options: list[lbmr.TirOption] = []
    if origin := named(record).origin:
        options.append(lbmr.OriginatingTransport(otid=origin))
    if record.request_address:
        request_host, request_port = split(record.request_address)
        offered = PERSISTENT if record.persistent else 0
        options.append(
            lbmr.ExtendedFunctionality(source_port=request_port, source_address=request_host, functionality=offered)
        )
    if record.instance:
        options.append(lbmr.ContextInstance(instance=record.instance))
    if record.cost or record.hops:
        options.append(lbmr.Cost(hop_count=record.hops, cost=record.cost))
    if record.domain:
        options.append(lbmr.DomainId(domain=record.domain))
    return lbmr.Advertisement(topic, transport, ttl, record.index, tuple(options))


def source_record(tir: lbmr.Advertisement, trailer: Iterable[lbmr.PacketOption]) -> SourceRecord | None:
    """Return the record of an advertised source; None if receivers cannot join its transport."""
    transport = joinable(tir.transport)
    if transport is None:
        return None
    request_address, persistent = "", False
    instance = next((option.source_id for option in trailer if isinstance(option, lbmr.SourceId)), b"")
    origin, cost, hops, domain = b"", 0, 0, 0
    for option in tir.options:
        match option:
            case lbmr.ExtendedFunctionality():
                request_address = f"{option.source_address}:{option.source_port}"
                persistent = bool(option.functionality & lbmr.ExtendedFunctionality.UME)
            case lbmr.ContextInstance():
                instance = option.instance
            case lbmr.OriginatingTransport():
                origin = option.otid
            case lbmr.Cost():
                cost, hops = max(0, option.cost), option.hop_count
            case lbmr.DomainId():
                domain = option.domain
    session_id = transport.session_id or 0  # old sources have none
    return SourceRecord(
        place_of(transport), session_id, tir.index, request_address, persistent, instance, origin, cost, hops, domain
    )


def sender_of(options: Iterable[lbmr.PacketOption]) -> tuple[bytes, bool]:
    """Return the name of the context that sent a packet, empty if it has none, and whether it is a router's."""
    instance, router = b"", False
    for option in options:
        if isinstance(option, lbmr.SourceId):
            instance = option.source_id
        elif isinstance(option, lbmr.SourceType):
            router = option.source_type == lbmr.SourceType.GATEWAY
    return instance, router


def proof_of(packet: lbmr.AnyPacket | None) -> bytes | None:
    """Return the proof of an address in a relay's answer to a keepalive, empty if it has none.

    Other packets are no answers: None.
    """
    if not isinstance(packet, lbmr.Packet) or packet.kind != lbmr.PacketKind.NORMAL:
        return None
    if packet.queries or packet.advertisements:
        return None
    return next((option.source_id for option in packet.options if isinstance(option, lbmr.SourceId)), b"")
