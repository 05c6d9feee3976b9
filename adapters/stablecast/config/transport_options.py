"""The options of the transports: which one a source uses, and how LBT-RM and LBT-RU behave.

They stand beside the options of sources and receivers, under their documented names. What belongs to a context (rate
limits) is set by its first source of the kind, what belongs to a session by the source or receiver that made it.
"""

import ipaddress
from collections.abc import Mapping
from enum import IntEnum

import attrs

from stablecast.config.option import Option
from stablecast.config.option_kinds import Choice, Flag, Value, Whole, words
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.runtime import multicast, ports
from stablecast.runtime.address import check_ip
from stablecast.runtime.multicast import DEFAULT_GROUPS
from stablecast.runtime.stream import MAX_QUEUED_BYTES
from stablecast.transports.reliable.settings import (
    LBTRM_RATES,
    LBTRM_RECEIVER,
    LBTRU_RATES,
    LBTRU_RECEIVER,
    MAX_DATAGRAM,
    MAX_SESSIONS,
    MIN_DATAGRAM,
    RateSettings,
    ReceiverSettings,
    SourceSettings,
)

MAX_UINT32 = 0xFFFF_FFFF
MAX_SIZE = 1 << 62
MAX_BITS = 1 << 40
MIN_BUFFER, MAX_BUFFER = 65_536, 1 << 30
"""Bytes that may be set to wait for a slow receiver over TCP; the least is the documented default."""


class Transport(IntEnum):
    """What carries a source's data."""

    TCP = 0
    LBTRM = 1
    LBTRU = 2


@attrs.frozen
class KindConfig:
    """One kind: how its sources, its receivers and its context's limiter behave."""

    source: SourceSettings = SourceSettings()
    receiver: ReceiverSettings = LBTRM_RECEIVER
    rates: RateSettings = LBTRM_RATES


MAX_BATCH = 1_048_576
"""Bytes that may be asked to wait for each other."""


@attrs.frozen
class Batching:
    """When messages leave, whatever carries them: with so many bytes, or after so long.

    By the documented defaults, 2048 bytes and 200 ms, a message that none follows waits in vain. By ours it leaves at
    once, and those behind it at the end of the loop's turn (0 ns).
    """

    minimum_bytes: int = 32_768
    span_ns: int = 0


@attrs.frozen
class Range:
    """From `low` to `high`, both included."""

    low: int = 0
    high: int = 0

    @property
    def size(self) -> int:
        """How many there are."""
        return max(0, self.high - self.low + 1)

    @property
    def pair(self) -> tuple[int, int]:
        """Both ends."""
        return self.low, self.high


@attrs.frozen
class TransportConfig:
    """Which transport, and both kinds.

    Attributes:
        group, port: Where an LBT-RM source sends to ("": of the pool).
        groups, nak_ports: The pool of groups, and the ports that NAKs come to.
        lbtru_range: The ports of an LBT-RU session, or of its receivers; 0: those that are documented for them.
        tcp_port, tcp_range: Where a source over TCP is (0: in the range).
        tcp_blocks: A receiver over TCP that does not keep up holds the source; else it is dropped, and joins again.
        buffer: Bytes that wait for it before either.
        lbtru_port: Where an LBT-RU source is (0: of the pool), and how many sessions the pool has.
    """

    kind: Transport = Transport.TCP
    group: str = ""
    port: int = 14_400
    lbtru_port: int = 0
    lbtru_ports: int = 5
    groups: Range = Range(*(int(ipaddress.IPv4Address(DEFAULT_GROUPS[place])) for place in (0, -1)))
    nak_ports: Range = Range(*multicast.NAK_PORTS)
    lbtru_range: Range = Range()
    tcp_port: int = 0
    tcp_range: Range = Range(*ports.SOURCE_PORTS)
    tcp_blocks: bool = False
    buffer: int = MAX_QUEUED_BYTES
    tsni_ns: int = SourceSettings().tsni_ns
    tsni_active_ns: int = SourceSettings().tsni_active_ns
    lbtrm: KindConfig = KindConfig()
    lbtru: KindConfig = KindConfig(receiver=LBTRU_RECEIVER, rates=LBTRU_RATES)
    batching: Batching = Batching()

    @property
    def named(self) -> str:
        """What names the session that sources share; empty for one of the pool."""
        if self.kind is Transport.LBTRM:
            return f"{self.group}:{self.port}" if self.group else ""
        return str(self.lbtru_port or "")

    @property
    def pool(self) -> int:
        """How many sessions the sources share that name none."""
        return self.groups.size if self.kind is Transport.LBTRM else self.lbtru_ports

    @property
    def source(self) -> SourceSettings:
        """How a source's session behaves, of the kind that is used."""
        return attrs.evolve(self.chosen.source, tsni_ns=self.tsni_ns, tsni_active_ns=self.tsni_active_ns)

    def group_at(self, place: int) -> str:
        """The group of this place of the pool."""
        return str(ipaddress.IPv4Address(self.groups.low + place))

    @property
    def chosen(self) -> KindConfig:
        """The configuration of the kind that is used."""
        return self.lbtrm if self.kind is Transport.LBTRM else self.lbtru


@attrs.frozen
class Group:
    """A multicast address; 0.0.0.0: one of the pool."""

    type: str = "address"
    unit: str = ""
    allowed: str = "ip"

    def merge(self, name: str, before: object, value: Value) -> str:
        """The address. Raises AddressError."""
        address = check_ip(str(value))
        return "" if address == "0.0.0.0" else address  # noqa: S104 - the documented word for none

    def show(self, field: str) -> str:
        """The address."""
        return field or "0.0.0.0"  # noqa: S104


@attrs.frozen
class GroupNumber:
    """A multicast address; the field is its number."""

    type: str = "address"
    unit: str = ""
    allowed: str = "ip"

    def merge(self, name: str, before: object, value: Value) -> int:
        """Its number. Raises AddressError."""
        return int(ipaddress.IPv4Address(check_ip(str(value))))

    def show(self, field: int) -> str:
        """The address."""
        return str(ipaddress.IPv4Address(field))


NUMBER = Whole(0, 65_535)
SPAN = Whole(0, MAX_UINT32, "ms", MILLISECOND)
SPAN_1 = Whole(1, MAX_UINT32, "ms", MILLISECOND)
SECONDS = Whole(0, MAX_UINT32, "s", SECOND)
BYTES = Whole(0, MAX_SIZE, "bytes")
BITS = Whole(1, MAX_BITS, "bit/s")
FLAG = Flag()

_EACH = (
    ("datagram_max_size", "source.datagram_max", Whole(MIN_DATAGRAM, MAX_DATAGRAM, "bytes"), "largest datagram"),
    ("transmission_window_size", "source.window_bytes", Whole(65_536, MAX_SIZE, "bytes"), "payload kept to send again"),
    ("transmission_window_limit", "source.window_limit", BYTES, "the same with overhead; 0: no limit"),
    ("ignore_interval", "source.ignore_ns", SPAN, "a datagram is sent again once in so long"),
    ("sm_minimum_interval", "source.sm_min_ns", SPAN_1, "silence before the first session message"),
    ("sm_maximum_interval", "source.sm_max_ns", SPAN_1, "the longest interval of session messages"),
    ("data_rate_limit", "rates.data_bits", BITS, "of all sources of a context"),
    ("retransmit_rate_limit", "rates.repair_bits", BITS, "the same of what is sent again"),
    ("rate_interval", "rates.interval_ns", Whole(1, 1000, "ms", MILLISECOND), "the limits hold in each of these"),
    ("nak_initial_backoff_interval", "receiver.initial_backoff_ns", SPAN, "before the first NAK; 0: at once"),
    ("nak_backoff_interval", "receiver.backoff_ns", SPAN_1, "before each further NAK"),
    ("nak_suppress_interval", "receiver.suppress_ns", SPAN, "silence after an NCF"),
    ("nak_generation_interval", "receiver.generation_ns", Whole(5, MAX_UINT32, "ms", MILLISECOND), "until it is lost"),
    ("send_naks", "receiver.send_naks", FLAG, "ask for what is missing"),
    ("loss_rate", "receiver.drop_permille", Whole(0, 100, "%", 10), "arriving datagrams that are dropped, for tests"),
    ("activity_timeout", "receiver.activity_ns", SPAN_1, "silence until the session is over"),
)
"""Options of both kinds: name, field, how it is read, meaning."""

TRANSPORT_OPTIONS: tuple[Option, ...] = (
    Option(
        "transport",
        "kind",
        words(tcp=Transport.TCP, lbtrm=Transport.LBTRM, lbtru=Transport.LBTRU),
        "what carries the data to receivers and stores",
    ),
    Option(
        "implicit_batching_minimum_length",
        "batching.minimum_bytes",
        Whole(1, MAX_BATCH, "bytes"),
        "what is sent leaves when it has grown to this",
    ),
    Option(
        "implicit_batching_interval",
        "batching.span_ns",
        SPAN,
        "so long a message waits for others; 0: until the end of the loop's turn",
        "with 0 the minimum length matters for what is sent in one turn of the event loop only",
    ),
    Option(
        "transport_tcp_multiple_receiver_behavior",
        "tcp_blocks",
        Choice((("normal", True), ("source_paced", False))),
        "normal: who does not keep up holds the source; else it is dropped, joins again and recovers",
    ),
    Option(
        "transport_session_maximum_buffer",
        "buffer",
        Whole(MIN_BUFFER, MAX_BUFFER, "bytes"),
        "what waits for a receiver over TCP before it counts as one that does not keep up",
    ),
    Option("transport_lbtrm_multicast_address", "group", Group(), "where data goes; 0.0.0.0: one of the pool"),
    Option("transport_lbtrm_destination_port", "port", Whole(1, 65_535), "the port of the group"),
    Option("transport_lbtrm_multicast_address_low", "groups.low", GroupNumber(), "the first group of the pool"),
    Option("transport_lbtrm_multicast_address_high", "groups.high", GroupNumber(), "the last one"),
    Option("transport_lbtrm_source_port_low", "nak_ports.low", NUMBER, "the first of the ports that NAKs come to"),
    Option("transport_lbtrm_source_port_high", "nak_ports.high", NUMBER, "the last one"),
    Option("transport_lbtru_port_low", "lbtru_range.low", NUMBER, "the first port of sessions, or of receivers"),
    Option("transport_lbtru_port_high", "lbtru_range.high", NUMBER, "the last one; 0: as documented for each"),
    Option("transport_tcp_port", "tcp_port", NUMBER, "where the source is; 0: in the range"),
    Option("transport_tcp_port_low", "tcp_range.low", NUMBER, "the first port of sources over TCP"),
    Option("transport_tcp_port_high", "tcp_range.high", NUMBER, "the last one, then any"),
    Option(
        "transport_topic_sequence_number_info_interval",
        "tsni_ns",
        SPAN,
        "a topic that was idle for so long is told with its newest number, and again after as long; 0: never",
    ),
    Option(
        "transport_topic_sequence_number_info_active_threshold",
        "tsni_active_ns",
        SECONDS,
        "so long an idle topic is told; 0: for ever",
    ),
    Option("transport_lbtru_port", "lbtru_port", Whole(0, 65_535), "where the session is; 0: one of the pool"),
    Option("transport_lbtru_maximum_ports", "lbtru_ports", Whole(1, MAX_SESSIONS), "sessions of the pool"),
    *(
        Option(f"transport_{kind}_{name}", f"{kind}.{field}", reader, summary)
        for kind in ("lbtrm", "lbtru")
        for name, field, reader, summary in _EACH
    ),
    Option(
        "transport_lbtrm_preactivity_timeout",
        "lbtrm.receiver.preactivity_ns",
        SPAN,
        "activity timeout while nothing was heard; 0: the same",
    ),
    Option("transport_lbtru_client_activity_timeout", "lbtru.source.client_ns", SPAN_1, "silence of a client"),
    Option("transport_lbtru_connect_interval", "lbtru.receiver.connect_ns", SPAN_1, "between connection requests"),
    Option(
        "transport_lbtru_maximum_connect_attempts",
        "lbtru.receiver.connect_attempts",
        Whole(1, MAX_UINT32),
        "requests until the source is given up",
    ),
    Option("transport_lbtru_acknowledgement_interval", "lbtru.receiver.alive_ns", SPAN_1, "between signs of life"),
)

_TABLE = {option.name: option for option in TRANSPORT_OPTIONS}

_SOCKETS = "the sizes of socket buffers are those that are documented, or of the system (TCP)"
_COALESCING = "what leaves together is one block already"
_OWN_LIMIT = "the datagram maximum is the one of the transport, at both ends"
_BUFFERS = "memory is not handed out again by hand here"
_INTERFACE = "the interface is that of the context"

UNHEEDED: Mapping[str, str] = {
    "transport_lbtrm_coalesce_threshold": _COALESCING,
    "transport_lbtru_coalesce_threshold": _COALESCING,
    "transport_tcp_coalesce_threshold": _COALESCING,
    "transport_lbtrm_receiver_socket_buffer": _SOCKETS,
    "transport_lbtrm_source_socket_buffer": _SOCKETS,
    "transport_lbtru_receiver_socket_buffer": _SOCKETS,
    "transport_lbtru_source_socket_buffer": _SOCKETS,
    "transport_tcp_receiver_socket_buffer": _SOCKETS,
    "transport_tcp_sender_socket_buffer": _SOCKETS,
    "transport_lbtrm_receiver_datagram_max_size": _OWN_LIMIT,
    "transport_lbtrm_source_datagram_max_size": _OWN_LIMIT,
    "transport_lbtru_receiver_datagram_max_size": _OWN_LIMIT,
    "transport_lbtru_source_datagram_max_size": _OWN_LIMIT,
    "transport_lbtrm_recycle_receive_buffers": _BUFFERS,
    "transport_lbtru_recycle_receive_buffers": _BUFFERS,
    "transport_lbtru_client_map_size": _BUFFERS,
    "transport_lbtrm_receiver_timestamp": "datagrams have no timestamps of the network card",
    "transport_lbtrm_source_timestamp": "datagrams have no timestamps of the network card",
    "transport_lbtrm_tgsz": "there is no parity",
    "transport_lbtru_interface": _INTERFACE,
    "transport_tcp_interface": _INTERFACE,
    "transport_lbtru_allow_ephemeral": "a port that is named and taken is an error",
    "transport_lbtru_use_session_id": "sessions have an ID, or a restarted source would be taken for the earlier one",
    "transport_tcp_use_session_id": "sessions have an ID, or a restarted source would be taken for the earlier one",
    "transport_tcp_maximum_ports": "each source over TCP has a port of its own",
    "transport_tcp_activity_method": "the system's keepalive finds a peer that is gone",
    "transport_tcp_activity_timeout": "the system's keepalive finds a peer that is gone, within a minute",
    "transport_tcp_datagram_max_size": "over TCP a message is cut at 65,535 bytes, which is the documented default",
    "transport_tcp_dro_loss_recovery_timeout": "no router feeds a stream",
    "transport_tcp_exclusiveaddr": "it is of another operating system",
    "transport_tcp_listen_backlog": "128 connections may wait to be accepted",
    "transport_tcp_multiple_receiver_send_order": "who joined last is written to first (measured)",
    "transport_tcp_nodelay": "nothing that is sent waits for more (TCP_NODELAY is set)",
    "transport_tcp_reuseaddr": "a port may be used again at once (SO_REUSEADDR is set)",
}
"""Documented options that are taken and have no effect, each with the reason; the user is told."""


def notices(options: Mapping[str, Value]) -> tuple[str, ...]:
    """What the user should know of options that have no effect."""
    return tuple(f"option {name} has no effect: {UNHEEDED[name]}" for name in options if name in UNHEEDED)


OF_RECEIVERS = frozenset(option.name for option in TRANSPORT_OPTIONS if "receiver" in option.path)
"""The names of those that a receiver follows; others are passed over there."""


def split(
    options: Mapping[str, Value], config: TransportConfig = TransportConfig()
) -> tuple[TransportConfig, dict[str, Value]]:
    """The transports' configuration with its options, and those that are not its. Raises OptionError, AddressError."""
    others: dict[str, Value] = {}
    for name, value in options.items():
        if name in UNHEEDED:
            continue
        option = _TABLE.get(name)
        if option is None:
            others[name] = value
        else:
            config = option.set(config, value)
    return config, others
