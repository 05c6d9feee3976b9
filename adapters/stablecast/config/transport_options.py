"""The options of the transports: the transport of a source, and the behaviour of TCP, LBT-RM and LBT-RU.

They are set beside the options of sources and receivers, under their documented names. The first source of a kind sets
the values of its context (rate limits); the source or receiver that opens a session sets the values of the session.
"""

import ipaddress
from collections.abc import Mapping
from enum import IntEnum

import attrs

from stablecast.config import option_kinds as k
from stablecast.config.option import Option, set_known
from stablecast.core.machine.units import MILLISECOND
from stablecast.runtime import multicast, ports
from stablecast.runtime.multicast import DEFAULT_GROUPS
from stablecast.runtime.stream import MAX_QUEUED_BYTES
from stablecast.transports.reliable import settings

MAX_BITS = 1 << 40
MIN_BUFFER, MAX_BUFFER = 65_536, 1 << 30
"""Limits of transport_session_maximum_buffer in bytes; the smallest value is the documented default."""


class Transport(IntEnum):
    TCP = 0
    LBTRM = 1
    LBTRU = 2


@attrs.frozen
class KindConfig:
    """The settings of one kind of session: its sources, its receivers, and the rate limiter of its context."""

    source: settings.SourceSettings = settings.SourceSettings()
    receiver: settings.ReceiverSettings = settings.LBTRM_RECEIVER
    rates: settings.RateSettings = settings.LBTRM_RATES


MAX_BATCH = 1_048_576
"""Largest implicit_batching_minimum_length in bytes."""


@attrs.frozen
class Batching:
    """The size and the age at which a batch of messages is sent, over any transport.

    With the documented defaults, 2048 bytes and 200 ms, a single message waits for nothing. With the defaults here it
    is sent at once, and the messages after it at the end of the loop's turn (0 ns).
    """

    minimum_bytes: int = 32_768
    span_ns: int = 0


@attrs.frozen
class Range:
    """A range from `low` to `high`, both included."""

    low: int = 0
    high: int = 0

    @property
    def size(self) -> int:
        return max(0, self.high - self.low + 1)

    @property
    def pair(self) -> tuple[int, int]:
        return self.low, self.high


@attrs.frozen
class TransportConfig:
    """The transport of a source or receiver, and the settings of all transports.

    Attributes:
        group, port: Destination of an LBT-RM source; empty: a group of the pool.
        groups, nak_ports: Pool of groups, and ports at which a source receives NAKs.
        lbtru_range: Ports of LBT-RU sessions or receivers; 0: the documented ports of each.
        tcp_port, tcp_range: Port of a source over TCP; 0: one of the range.
        tcp_blocks: Whether a slow receiver over TCP holds the source; else it is dropped, and joins again.
        buffer: Bytes that may wait for a receiver over TCP before it counts as slow.
        lbtru_port, lbtru_ports: Port of an LBT-RU source (0: one of the pool), and sessions of the pool.
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
    tsni_ns: int = settings.SourceSettings().tsni_ns
    tsni_active_ns: int = settings.SourceSettings().tsni_active_ns
    lbtrm: KindConfig = KindConfig()
    lbtru: KindConfig = KindConfig(receiver=settings.LBTRU_RECEIVER, rates=settings.LBTRU_RATES)
    batching: Batching = Batching()

    @property
    def named(self) -> str:
        """Return the name of the session that sources share; empty for a session of the pool."""
        if self.kind is Transport.LBTRM:
            return f"{self.group}:{self.port}" if self.group else ""
        return str(self.lbtru_port or "")

    @property
    def pool(self) -> int:
        """Return the number of sessions of the pool, for sources that name none."""
        return self.groups.size if self.kind is Transport.LBTRM else self.lbtru_ports

    @property
    def source(self) -> settings.SourceSettings:
        """Return the settings of a source's session, of the kind that is used."""
        return attrs.evolve(self.chosen.source, tsni_ns=self.tsni_ns, tsni_active_ns=self.tsni_active_ns)

    def group_at(self, place: int) -> str:
        return str(ipaddress.IPv4Address(self.groups.low + place))

    @property
    def chosen(self) -> KindConfig:
        return self.lbtrm if self.kind is Transport.LBTRM else self.lbtru


GROUP = k.AddressKind(empty="0.0.0.0", group=True)  # noqa: S104 - the documented word for none
GROUP_NUMBER = k.AddressKind(numeric=True, group=True)
_KINDS = k.words(
    tcp=Transport.TCP, lbtrm=Transport.LBTRM, lbtru=Transport.LBTRU, lbt_rm=Transport.LBTRM, lbt_ru=Transport.LBTRU
)
BITS = k.NumberKind(1, MAX_BITS, "bit/s")
_DATAGRAM = k.NumberKind(settings.MIN_DATAGRAM, settings.MAX_DATAGRAM, "bytes")

# fmt: off
_EACH = (
    ("datagram_max_size", "source.datagram_max", _DATAGRAM, "largest datagram"),
    ("transmission_window_size", "source.window_bytes", k.NumberKind(65_536, k.MAX_SIZE, "bytes"),
     "payload that is kept for retransmission"),
    ("transmission_window_limit", "source.window_limit", k.BYTES, "the same with overhead; 0: no limit"),
    ("ignore_interval", "source.ignore_ns", k.SPAN,
     "time in which further NAKs for a retransmitted datagram are ignored"),
    ("sm_minimum_interval", "source.sm_min_ns", k.SPAN_AT_LEAST_1, "silence before the first session message"),
    ("sm_maximum_interval", "source.sm_max_ns", k.SPAN_AT_LEAST_1, "longest interval of session messages"),
    ("data_rate_limit", "rates.data_bits", BITS, "rate of all sources of a context together"),
    ("retransmit_rate_limit", "rates.repair_bits", BITS, "rate of all retransmissions of a context together"),
    ("rate_interval", "rates.interval_ns", k.NumberKind(1, 1000, "ms", MILLISECOND),
     "period in which the rate limits hold"),
    ("nak_initial_backoff_interval", "receiver.initial_backoff_ns", k.SPAN, "wait before the first NAK; 0: none"),
    ("nak_backoff_interval", "receiver.backoff_ns", k.SPAN_AT_LEAST_1, "wait before each further NAK"),
    ("nak_suppress_interval", "receiver.suppress_ns", k.SPAN, "time without NAKs after an NCF"),
    ("nak_generation_interval", "receiver.generation_ns", k.NumberKind(5, k.MAX_UINT32, "ms", MILLISECOND),
     "time after which a missing datagram counts as lost"),
    ("send_naks", "receiver.send_naks", k.FLAG, "send NAKs for missing datagrams"),
    ("loss_rate", "receiver.drop_permille", k.NumberKind(0, 100, "%", 10),
     "share of arriving datagrams to drop, for tests"),
    ("activity_timeout", "receiver.activity_ns", k.SPAN_AT_LEAST_1, "silence after which the session is over"),
)
# fmt: on
"""Options of both LBT-RM and LBT-RU: name, field, kind, meaning."""

# fmt: off
TRANSPORT_OPTIONS: tuple[Option, ...] = (
    Option("transport", "kind", _KINDS,
           "transport of the data to receivers and stores"),
    Option("implicit_batching_minimum_length", "batching.minimum_bytes", k.NumberKind(1, MAX_BATCH, "bytes"),
           "size at which a batch of messages is sent"),
    Option("implicit_batching_interval", "batching.span_ns", k.SPAN,
           "time after which a batch is sent; 0: at the end of the event loop's turn",
           "with 0 the minimum length only concerns messages of one turn of the event loop"),
    Option("transport_tcp_multiple_receiver_behavior", "tcp_blocks",
           k.ChoiceKind((("normal", True), ("source_paced", False))),
           "normal: a slow receiver holds the source; source_paced: it is dropped, joins again and recovers"),
    Option("transport_session_maximum_buffer", "buffer", k.NumberKind(MIN_BUFFER, MAX_BUFFER, "bytes"),
           "bytes that may wait for a receiver over TCP before it counts as slow"),
    Option("transport_lbtrm_multicast_address", "group", GROUP, "group of the data; 0.0.0.0: a group of the pool"),
    Option("transport_lbtrm_destination_port", "port", k.NumberKind(1, 65_535), "port of the group"),
    Option("transport_lbtrm_multicast_address_low", "groups.low", GROUP_NUMBER, "first group of the pool"),
    Option("transport_lbtrm_multicast_address_high", "groups.high", GROUP_NUMBER, "last group of the pool"),
    Option("transport_lbtrm_source_port_low", "nak_ports.low", k.PORT, "first port at which a source receives NAKs"),
    Option("transport_lbtrm_source_port_high", "nak_ports.high", k.PORT, "last port at which a source receives NAKs"),
    Option("transport_lbtru_port_low", "lbtru_range.low", k.PORT,
           "first port of sessions or of receivers; 0: the documented"),
    Option("transport_lbtru_port_high", "lbtru_range.high", k.PORT,
           "last port of sessions or of receivers; 0: the documented"),
    Option("transport_tcp_port", "tcp_port", k.PORT, "port of the source; 0: one of the range"),
    Option("transport_tcp_port_low", "tcp_range.low", k.PORT, "first port of the range of sources over TCP"),
    Option("transport_tcp_port_high", "tcp_range.high", k.PORT, "last port of that range; if none is free, any port"),
    Option("transport_topic_sequence_number_info_interval", "tsni_ns", k.SPAN,
           "interval at which the newest number of an idle topic is sent; 0: never"),
    Option("transport_topic_sequence_number_info_active_threshold", "tsni_active_ns", k.SECONDS,
           "time for which it is sent after the topic became idle; 0: without end"),
    Option("transport_lbtru_port", "lbtru_port", k.PORT, "port of the session; 0: a session of the pool"),
    Option("transport_lbtru_maximum_ports", "lbtru_ports", k.NumberKind(1, settings.MAX_SESSIONS),
           "number of sessions of the pool"),
    *(
        Option(f"transport_{kind}_{name}", f"{kind}.{field}", reader, summary)
        for kind in ("lbtrm", "lbtru")
        for name, field, reader, summary in _EACH
    ),
    Option("transport_lbtrm_preactivity_timeout", "lbtrm.receiver.preactivity_ns", k.SPAN,
           "activity timeout before the first datagram of a session; 0: transport_lbtrm_activity_timeout"),
    Option("transport_lbtru_client_activity_timeout", "lbtru.source.client_ns", k.SPAN_AT_LEAST_1,
           "silence after which a source drops a client"),
    Option("transport_lbtru_connect_interval", "lbtru.receiver.connect_ns", k.SPAN_AT_LEAST_1,
           "time between connection requests"),
    Option("transport_lbtru_maximum_connect_attempts", "lbtru.receiver.connect_attempts", k.NumberKind(1, k.MAX_UINT32),
           "number of connection requests before the source is given up"),
    Option("transport_lbtru_acknowledgement_interval", "lbtru.receiver.alive_ns", k.SPAN_AT_LEAST_1,
           "time between keepalives"),
)
# fmt: on

OF_RECEIVERS = frozenset(option.name for option in TRANSPORT_OPTIONS if "receiver" in option.path)
"""Names of the options that a receiver follows; it ignores the others."""


def split(
    options: Mapping[str, k.Value], config: TransportConfig = TransportConfig()
) -> tuple[TransportConfig, dict[str, k.Value]]:
    """Return the configuration with the transport options set, and the other options. Raises OptionError."""
    return set_known(TRANSPORT_OPTIONS, config, options)
