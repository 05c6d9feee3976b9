"""What an endpoint is told at its creation.

Spans in ns, sizes in bytes; the option table of spec/ names the same values.
"""

import re
from enum import IntEnum

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.history import HISTORY_LIVES
from stablecast.core.protocol.messages import Address, ElectionToken, Incarnation, Pace, Register, Role, Wishes
from stablecast.core.protocol.quorum import Consensus, GroupRules
from stablecast.core.protocol.repairs import Repair


class FlightBehavior(IntEnum):
    """What a send beyond the flight size does (P-309, P-310)."""

    BLOCK = 0
    NOTIFY = 1


class StoreBehavior(IntEnum):
    """How a source uses its stores (P-501): all of them by quorum and consensus, or one after the other.

    `RR` is deprecated: a message that one store has is gone with that store (P-505).
    """

    QC = 0
    RR = 1


class Notification(IntEnum):
    """Of what a source's application hears: nothing, numbers, whole messages, or both (P-655, P-657)."""

    NONE = 0
    FRAGMENTS = 1
    MESSAGES = 2
    BOTH = 3


@attrs.frozen
class RegistrationTimes:
    """Spans in ns: between requests, between probes, and of a store's silence (ume_store_activity_timeout)."""

    interval_ns: int = 500 * MILLISECOND
    probe_ns: int = 1 * SECOND
    silence_ns: int = 3 * SECOND


@attrs.frozen
class Retention:
    """When copies go: above `threshold_bytes` and after `age_ns` if settled, above `limit_bytes` in any case."""

    threshold_bytes: int = 0
    limit_bytes: int = 25_165_824
    unique_confirmations: int = 0
    age_ns: int = 0


@attrs.frozen
class StoreSpec:
    """A store of the source's configuration (P-212): its address, or the name it is found by; its group.

    `reg_id` is the RegID to ask for there (0: its choice).
    """

    address: Address = ""
    reg_id: int = 0
    group: int = 0
    name: str = ""


@attrs.frozen
class SourceConfig:
    """Everything a source endpoint is told. Spans in ns, sizes in bytes; a limit or span of 0 is none.

    `stability_timeout_ns`: after that long a message is sent again to stores that have not acknowledged it;
    `stability_lifetime_ns`: after that long it is given up. Both are looked at every `check_ns`. A source with
    `election` is a proxy. `liveness_ns`: a receiver that kept in touch is gone after so long a silence. `late_join` is
    for sources without stores; stores switch it on (`offers_late_join`).
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
    flight_bytes: int = 0
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
    """When consumption is acknowledged: at once, in contiguous runs at an interval, or by the application (P-343)."""

    IMMEDIATE = 0
    BATCHED = 1
    EXPLICIT = 2


class Ordering(IntEnum):
    """In what order messages are delivered; the values are those of ordered_delivery. Arrival order keeps gaps."""

    ARRIVAL = 0
    ORDERED = 1


class UseOtr(IntEnum):
    """When gaps are filled outside the transport: never, always, or where the source has stores."""

    OFF = 0
    ON = 1
    PERSISTENT = 2


@attrs.frozen
class OtrTimes:
    """Off-transport recovery: how old a gap must be, and how long it is asked for. Spans in ns."""

    delay_ns: int = 0
    give_up_ns: int = 20 * SECOND
    use: UseOtr = UseOtr.PERSISTENT


BURST_NEVER = 1_000_000_000
"""delivery_control_maximum_burst_loss: no gap is a burst; the rule would pre-empt recovery from stores (T30)."""


@attrs.frozen
class ReceiverConfig:
    """Everything one receiver's session with one source is told. Spans in ns.

    `source_request` may be empty when the source's request address is not known (then no SRI is asked for).
    `request_maximum` 0 recovers everything; `window`, `proximity` and `burst` count messages. `liveness_ns` is the
    interval at which a silent receiver tells the source that it lives, 0: never.
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
    repairs: Repair = Repair.ALL


ROLLBACK_ALL = 2_147_483_647
"""receiver-new-registration-rollback: a new receiver starts at the oldest message the store holds."""

STATE_FOR_EVER = 0xFFFF_FFFF * MILLISECOND
"""A state lifetime (ns) that never ends: the largest that 32 bits of milliseconds can say. State of this lifetime goes
when its client deregisters, or when an operator lets it go.
"""


class RepositoryType(IntEnum):
    """What a store keeps of a source, and where (P-101..P-104)."""

    NO_CACHE = 0
    MEMORY = 1
    DISK = 2
    REDUCED_FD = 3
    """As `DISK`, in one journal for the whole store."""


@attrs.frozen
class RepositoryConfig:
    """What a store allows each source of a topic. Sizes in bytes, spans in ns; 0 is none.

    Of the memory: `size_threshold` and `age_ns` let old messages go, `size_limit` keeps new ones out. `disk_limit`
    bounds what is on disk. `ack_minimum` acknowledgements of stability are collected for at most `ack_interval_ns`.
    `rollback`: how many messages back a new receiver may start (P-837).

    The lifetimes never end, against the documented 0: that one erases stable messages once their source was silent for
    its activity timeout, and lets it use their numbers again. A lifetime of 0 is "not set" (T7).
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
    """How a pattern names topics (P-817): as they are, or by an expression found anywhere in them (C-13)."""

    DIRECT = 0
    PCRE = 1
    REGEXP = 2


@attrs.frozen
class TopicPattern:
    """A repository configuration for the topics that match; the first one that does counts."""

    pattern: str
    repository: RepositoryConfig
    kind: PatternType = PatternType.DIRECT


@attrs.frozen
class StoreConfig:
    """Everything a store endpoint is told. Spans in ns.

    `topics` first, then `repository` for every other topic; None refuses those. `request_rate` is in messages per
    second. `window`, `retry_ns`, `give_up_ns` and `burst` are those of the store's own recovery from sources.
    `history_lives`: a store remembers so many lives of a source (`stablecast.core.protocol.history`).
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


def repository_for(config: StoreConfig, topic: str) -> RepositoryConfig | None:
    """What the store keeps of this topic; None: it does not serve it (P-817)."""
    for rule in config.topics:
        direct = rule.kind is PatternType.DIRECT
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
    """The PREG with which a client of this configuration asks store `index`."""
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
