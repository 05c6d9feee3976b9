"""Configurations of the endpoints. Spans in ns, sizes in bytes; the option table of spec/ names the same values."""

import re
from enum import IntEnum

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.history import HISTORY_LIVES
from stablecast.core.protocol.messages import Address, ElectionToken, Incarnation, Pace, Register, Role, Wishes
from stablecast.core.protocol.quorum import Consensus, GroupRules
from stablecast.core.protocol.repairs import Repair


class FlightBehavior(IntEnum):
    """The fate of a send beyond the flight size (P-309, P-310): it waits, or succeeds with an event."""

    BLOCK = 0
    NOTIFY = 1


class StoreBehavior(IntEnum):
    """The use of several stores (P-501): all of them by quorum and consensus, or one after the other.

    `RR` is deprecated: a message that one store has is gone with that store (P-505).
    """

    QC = 0
    RR = 1


class Notification(IntEnum):
    """The events that a source's application gets: none, numbers, whole messages, or both (P-655, P-657)."""

    NONE = 0
    FRAGMENTS = 1
    MESSAGES = 2
    BOTH = 3


@attrs.frozen
class RegistrationTimes:
    """Spans in ns: between requests, between probes, and a store's silence (ume_store_activity_timeout)."""

    interval_ns: int = 500 * MILLISECOND
    probe_ns: int = 1 * SECOND
    silence_ns: int = 3 * SECOND


RETAINED_BYTES = 25_165_824
"""Bytes that a source retains by default."""

FLIGHT_BYTES = RETAINED_BYTES - RETAINED_BYTES // 16
"""Payload in flight by default: what is retained, less its headers, so that nothing goes before it is stable."""


@attrs.frozen
class Retention:
    """Limits of retention: above `threshold_bytes` settled copies older than `age_ns` go, above `limit_bytes` any."""

    threshold_bytes: int = 0
    limit_bytes: int = RETAINED_BYTES
    unique_confirmations: int = 0
    age_ns: int = 0


@attrs.frozen
class StoreSpec:
    """A store of the source's configuration (P-212): its address or name, and its group.

    `reg_id` is the RegID to ask for there (0: the store chooses).
    """

    address: Address = ""
    reg_id: int = 0
    group: int = 0
    name: str = ""


@attrs.frozen
class SourceConfig:
    """The configuration of a source endpoint. Spans in ns, sizes in bytes; a limit or span of 0 is none.

    Attributes:
        stability_timeout_ns: A message is sent again to stores that have not acknowledged it for this long.
        stability_lifetime_ns: A message that is not stable after this long is given up.
        check_ns: Interval at which both are checked.
        late_join: Serve late receivers; a source with stores always does (`offers_late_join`).
        liveness_ns: A watched receiver is gone after this much silence.
        election: The token of a proxy; None for a real source.
    """

    topic: str
    incarnation: Incarnation
    reply_to: Address
    transport: Address
    stores: tuple[StoreSpec, ...] = ()
    groups: GroupRules = GroupRules()
    consensus: Consensus = Consensus.HIGHEST
    session_id: int = 0
    context: int = 0
    times: RegistrationTimes = RegistrationTimes()
    activity_timeout_ns: int = 0
    state_lifetime_ns: int = 0
    flight_messages: int = 1000
    flight_bytes: int = FLIGHT_BYTES
    flight_behavior: FlightBehavior = FlightBehavior.BLOCK
    retention: Retention = Retention()
    confirmations: bool = False
    confirmed_notification: Notification = Notification.FRAGMENTS
    stable_notification: Notification = Notification.FRAGMENTS
    stability_timeout_ns: int = 20 * SECOND
    stability_lifetime_ns: int = 1200 * SECOND
    check_ns: int = 500 * MILLISECOND
    sri_interval_ns: int = 100 * MILLISECOND
    sri_maximum: int = 10
    behavior: StoreBehavior = StoreBehavior.QC
    late_join: bool = False
    liveness_ns: int = 0
    pace: Pace = Pace.SOURCE
    wishes: Wishes = Wishes()
    wants_proxy: bool = False
    election: ElectionToken | None = None
    repairs: Repair = Repair.ALL


class AckMode(IntEnum):
    """The time of acknowledgement: at once, in contiguous runs at an interval, or by the application (P-343)."""

    IMMEDIATE = 0
    BATCHED = 1
    EXPLICIT = 2


class Ordering(IntEnum):
    """The order of delivery; the values are those of ordered_delivery. Arrival order keeps gaps."""

    ARRIVAL = 0
    ORDERED = 1


class UseOtr(IntEnum):
    """The use of recovery outside the transport: never, always, or if the source has stores."""

    OFF = 0
    ON = 1
    PERSISTENT = 2


@attrs.frozen
class OtrTimes:
    """Off-transport recovery: the age at which a gap is requested, and for how long. Spans in ns."""

    delay_ns: int = 0
    give_up_ns: int = 20 * SECOND
    use: UseOtr = UseOtr.PERSISTENT


BURST_NEVER = 1_000_000_000
"""delivery_control_maximum_burst_loss: no gap is a burst, because that rule would pre-empt recovery from stores (T30).
"""


@attrs.frozen
class ReceiverConfig:
    """The configuration of one receiver's session with one source. Spans in ns.

    Attributes:
        source_request: The source's request address; empty if it is unknown, then no SRI is requested.
        request_maximum: Messages of history to recover; 0 is all.
        window: Messages requested at a time. `proximity` and `burst` count messages, too.
        liveness_ns: Interval at which a silent receiver sends a sign of life; 0: never.
        divides: The receiver has one share of the topic. What an earlier session consumed may have been for other
            shares, so it is not confirmed.
    """

    topic: str
    incarnation: Incarnation
    reply_to: Address
    source_request: Address = ""
    session_id: int = 0
    context: int = 0
    times: RegistrationTimes = RegistrationTimes()
    activity_timeout_ns: int = 0
    state_lifetime_ns: int = 0
    consensus: Consensus = Consensus.HIGHEST
    request_maximum: int = 0
    window: int = 200
    retry_ns: int = 500 * MILLISECOND
    give_up_ns: int = 10 * SECOND
    proximity: int = 5000
    burst: int = BURST_NEVER
    ordering: Ordering = Ordering.ORDERED
    late_join: bool = True
    otr: OtrTimes = OtrTimes()
    use_store: bool = True
    ack_mode: AckMode = AckMode.BATCHED
    ack_interval_ns: int = 100 * MILLISECOND
    confirm: bool = True
    user_reg_id: int = 0
    sri_request_interval_ns: int = 1 * SECOND
    sri_request_maximum: int = 60
    liveness_ns: int = 0
    pace: Pace = Pace.SOURCE
    divides: bool = False
    repairs: Repair = Repair.ALL


ROLLBACK_ALL = 2_147_483_647
"""receiver-new-registration-rollback: a new receiver starts at the oldest message that the store holds."""

STATE_FOR_EVER = 0xFFFF_FFFF * MILLISECOND
"""A state lifetime (ns) that never ends: the largest in 32 bits of ms. Only deregistration or an operator ends it."""


class RepositoryType(IntEnum):
    """The messages that a store keeps of a source, and their place (P-101..P-104)."""

    NO_CACHE = 0
    MEMORY = 1
    DISK = 2
    REDUCED_FD = 3
    """As `DISK`, in one journal for the whole store."""


@attrs.frozen
class RepositoryConfig:
    """The limits of a store for each source of a topic. Sizes in bytes, spans in ns; 0 is none.

    In memory `size_threshold` and `age_ns` drop old messages, `size_limit` refuses new ones. `disk_limit` bounds the
    disk. Acknowledgements of stability are collected up to `ack_minimum` messages for at most `ack_interval_ns`.
    `rollback`: number of messages by which a new receiver may start back (P-837).

    By default lifetimes never end, against the documented 0. That 0 erases stable messages once their source was silent
    for its activity timeout, and lets the source use their numbers again. A lifetime of 0 is "not set" (T7).
    """

    kind: RepositoryType = RepositoryType.DISK
    size_threshold: int = 25_165_824
    size_limit: int = 50_331_648
    age_ns: int = 0
    disk_limit: int = 104_857_600
    rollback: int = ROLLBACK_ALL
    ack_interval_ns: int = 200 * MILLISECOND
    ack_minimum: int = 1
    forwarding: bool = False
    allow_rpp: bool = False
    allow_ack_on_reception: bool = False
    write_delay_ns: int = 0
    flight_bytes_maximum: int = 4_194_304
    source_activity_ns: int = 30 * SECOND
    source_lifetime_ns: int = STATE_FOR_EVER
    receiver_activity_ns: int = 30 * SECOND
    receiver_lifetime_ns: int = STATE_FOR_EVER


class PatternType(IntEnum):
    """The kind of a topic pattern (P-817): the topic itself, or an expression found anywhere in it (C-13)."""

    DIRECT = 0
    PCRE = 1
    REGEXP = 2


@attrs.frozen
class TopicPattern:
    """A repository configuration for the topics that match; the first match counts."""

    pattern: str
    repository: RepositoryConfig
    kind: PatternType = PatternType.DIRECT


@attrs.frozen
class StoreConfig:
    """The configuration of a store endpoint. Spans in ns.

    `topics` first, then `repository` for every other topic; None refuses those. `request_rate` is in messages a second.
    `window`, `retry_ns`, `give_up_ns` and `burst` govern the store's own recovery from sources. `history_lives` bounds
    the lives of a source that the store remembers. `refill`: the store asks other stores for what it lacks, at
    `refill_rate` messages and `refill_byte_rate` bytes a second; 0: no limit.
    """

    address: Address
    seed: int
    repository: RepositoryConfig | None = RepositoryConfig()
    topics: tuple[TopicPattern, ...] = ()
    check_ns: int = 100 * MILLISECOND
    keepalive_ns: int = 500 * MILLISECOND
    request_rate: int = 262_144
    allow_proxy: bool = False
    proxy_interval_ns: int = 5 * SECOND
    proxy_quorum: bool = False
    window: int = 200
    retry_ns: int = 500 * MILLISECOND
    give_up_ns: int = 10 * SECOND
    burst: int = BURST_NEVER
    repairs: Repair = Repair.ALL
    history_lives: int = HISTORY_LIVES
    refill: bool = True
    refill_rate: int = 10_000
    refill_byte_rate: int = 4_194_304


def repository_for(config: StoreConfig, topic: str) -> RepositoryConfig | None:
    """Return the repository configuration for this topic, or None if the store does not serve it (P-817)."""
    for rule in config.topics:
        direct = rule.kind is PatternType.DIRECT
        # Expressions match anywhere in the topic, as the documented stores match (C-13).
        if rule.pattern == topic if direct else re.search(rule.pattern, topic):
            return rule.repository
    return config.repository


def register_request(
    role: Role,
    index: int,
    config: SourceConfig | ReceiverConfig,
    *,
    reg_id: int,
    source_reg_id: int,
    transport: Address,
) -> Register:
    """Return the PREG with which a client of this configuration registers at store `index`."""
    return Register(
        role=role,
        store_index=index,
        generation=0,
        reg_id=reg_id,
        incarnation=config.incarnation,
        source_reg_id=source_reg_id,
        topic=config.topic,
        session_id=config.session_id,
        reply_to=config.reply_to,
        transport=transport,
        activity_timeout_ms=config.activity_timeout_ns // MILLISECOND,
        state_lifetime_ms=config.state_lifetime_ns // MILLISECOND,
        context=config.context,
        pace=config.pace,
    )
