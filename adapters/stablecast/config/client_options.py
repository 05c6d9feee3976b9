"""The options of sources and receivers."""

from stablecast.config.option import Option
from stablecast.config.option_kinds import LEVELS, AckSwitch, Confirmations, Entries, Flag, Whole, numbers, words
from stablecast.config.option_names import MAX_SESSION_ID
from stablecast.config.stores import add_group, add_named_store, add_store
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.quorum import Consensus, Intergroup, Intragroup
from stablecast.core.protocol.settings import AckMode, FlightBehavior, Ordering, StoreBehavior, UseOtr

MAX_UINT32 = 0xFFFF_FFFF
MAX_COUNT = 2_147_483_647
MAX_SIZE = 1 << 62

SPAN = Whole(0, MAX_UINT32, "ms", MILLISECOND)
SPAN_AT_LEAST_1 = Whole(1, MAX_UINT32, "ms", MILLISECOND)
MESSAGES = Whole(1, MAX_COUNT, "messages")
BYTES = Whole(0, MAX_SIZE, "bytes")
TRIES = Whole(1, MAX_COUNT)
CONSENSUS = words(lowest=Consensus.LOWEST, majority=Consensus.MAJORITY, highest=Consensus.HIGHEST)

_CLIENT = (
    Option(
        "ume_session_id",
        "session_id",
        Whole(0, MAX_SESSION_ID),
        "stands for RegIDs that the store chooses and keeps; 0: none",
    ),
    Option("ume_registration_interval", "times.interval_ns", SPAN_AT_LEAST_1, "between registration requests"),
    Option(
        "ume_store_activity_timeout",
        "times.silence_ns",
        SPAN_AT_LEAST_1,
        "silence until a store is unresponsive",
        "keep it five times ume_store_check_interval, and above the store's keepalive-interval",
    ),
    Option(
        "ume_activity_timeout",
        "activity_timeout_ns",
        SPAN,
        "silence until the RegID is free; 0: the store's value",
        "overrides the store's timeout",
    ),
    Option(
        "ume_state_lifetime",
        "state_lifetime_ns",
        SPAN,
        "silence until the state is deleted; 0: not set",
        "the shorter of this and the store's value counts",
    ),
    Option(
        "ume_consensus_sequence_number_behavior", "consensus", CONSENSUS, "how differing numbers of stores become one"
    ),
)

_STORES = (
    Option(
        "ume_store",
        "",
        Entries(add_store, lambda config: len(config.stores), "[domain:]ip:port[:regid[:group]]"),
        "stores by address; 0.0.0.0:0 clears them",
        "makes the source persistent; a host name is refused",
    ),
    Option(
        "ume_store_name",
        "",
        Entries(add_named_store, lambda config: len(config.stores), "name[:regid[:group]]"),
        "stores by name; 0:0 clears them",
        "the name is the store's context-name",
    ),
    Option(
        "ume_store_group",
        "",
        Entries(add_group, lambda config: len(config.groups.sizes), "index:size"),
        "sizes of the groups; 0:0 clears them",
        "without it there is one group of all stores",
    ),
    Option(
        "ume_store_behavior",
        "behavior",
        words(
            qc=StoreBehavior.QC,
            quorum_consensus=StoreBehavior.QC,
            rr=StoreBehavior.RR,
            round_robin=StoreBehavior.RR,
        ),
        "all stores by quorum and consensus, or one after the other (deprecated)",
        "rr has no groups and no receiver-paced persistence",
    ),
    Option(
        "ume_retention_intragroup_stability_behavior",
        "groups.intragroup",
        words(
            quorum=Intragroup.QUORUM,
            all_active=Intragroup.ALL_ACTIVE,
            all=Intragroup.ALL,
            all_stores=Intragroup.ALL,
        ),
        "which stores of a group must hold a message",
        "met before the rule between groups is looked at",
    ),
    Option(
        "ume_retention_intergroup_stability_behavior",
        "groups.intergroup",
        words(
            any=Intergroup.ANY,
            any_group=Intergroup.ANY,
            majority=Intergroup.MAJORITY,
            all=Intergroup.ALL,
            all_groups=Intergroup.ALL,
            all_active=Intergroup.ALL_ACTIVE,
        ),
        "in which groups a message must be stable",
    ),
    Option(
        "ume_store_check_interval",
        "check_ns",
        SPAN_AT_LEAST_1,
        "between checks for silent stores and unstable messages",
    ),
    Option("ume_sri_inter_sri_interval", "sri_interval_ns", SPAN_AT_LEAST_1, "between announcements of the stores"),
    Option("ume_sri_max_number_of_sri_per_update", "sri_maximum", Whole(1, 65_535), "announcements per change"),
    Option(
        "ume_proxy_source",
        "wants_proxy",
        Flag(),
        "a store may stand in when the source is gone",
        "needs a RegID or a session id, and allow-proxy-source at the stores",
    ),
)

_RETENTION = (
    Option(
        "late_join",
        "late_join",
        Flag(),
        "receivers that come late are served",
        "stores switch it on, and the log says so (P-412)",
    ),
    Option(
        "ume_flight_size",
        "flight_messages",
        MESSAGES,
        "unstable messages (fragments) allowed",
        "whichever of the two flight sizes is exceeded first counts",
    ),
    Option(
        "ume_flight_size_bytes",
        "flight_bytes",
        BYTES,
        "unstable payload allowed; 0: no limit",
        "receiver-paced persistence needs it; a larger message is refused (T14)",
    ),
    Option(
        "ume_flight_size_behavior",
        "flight_behavior",
        words(block=FlightBehavior.BLOCK, notify=FlightBehavior.NOTIFY),
        "what a send beyond the flight size does",
    ),
    Option(
        "retransmit_retention_size_threshold",
        "retention.threshold_bytes",
        BYTES,
        "kept though it might be released",
        "stable and confirmed messages go only above it (T11)",
    ),
    Option(
        "retransmit_retention_size_limit",
        "retention.limit_bytes",
        BYTES,
        "beyond it a release is forced",
        "keep it above the flight size",
    ),
    Option(
        "retransmit_retention_age_threshold",
        "retention.age_ns",
        Whole(0, MAX_UINT32, "s", SECOND),
        "younger messages are not released; 0: of any age",
    ),
    Option(
        "ume_retention_unique_confirmations",
        "retention.unique_confirmations",
        Whole(0, 10_000, "receivers"),
        "that must confirm before a message is released",
        "counts into the flight size",
    ),
    Option(
        "ume_confirmed_delivery_notification",
        "",
        Confirmations(),
        "events of confirmations: none, for each fragment, each message, both",
        "above 0 receivers are asked to confirm",
    ),
    Option(
        "ume_message_stability_notification",
        "stable_notification",
        LEVELS,
        "events of stability: none, for each fragment, each message, both",
    ),
    Option(
        "ume_message_stability_timeout",
        "stability_timeout_ns",
        SPAN,
        "until an unstable message is sent to the stores again; 0: never",
    ),
    Option(
        "ume_message_stability_lifetime",
        "stability_lifetime_ns",
        SPAN,
        "until an unstable message is given up; 0: never",
        "keep it above ume_message_stability_timeout",
    ),
    Option(
        "ume_source_liveness_timeout",
        "liveness_ns",
        SPAN,
        "silence until a receiver that kept in touch is gone; 0: off",
        "five times ume_receiver_liveness_interval",
    ),
)

_PACED = (
    Option(
        "ume_receiver_paced_persistence",
        "pace",
        numbers([Pace.SOURCE, Pace.RECEIVERS]),
        "ask for a repository that waits for its receivers",
        "repository-allow-receiver-paced-persistence permits it",
    ),
    Option(
        "ume_repository_size_threshold",
        "wishes.size_threshold",
        BYTES,
        "lower repository-size-threshold to this; 0: the store's value",
    ),
    Option(
        "ume_repository_size_limit",
        "wishes.size_limit",
        BYTES,
        "lower repository-size-limit to this; 0: the store's value",
    ),
    Option(
        "ume_repository_disk_file_size_limit",
        "wishes.disk_limit",
        BYTES,
        "lower repository-disk-file-size-limit to this; 0: the store's value",
    ),
    Option(
        "ume_repository_ack_on_reception",
        "wishes.ack_on_reception",
        Flag(),
        "acknowledge stability at reception",
        "repository-allow-ack-on-reception permits it",
    ),
    Option(
        "ume_write_delay",
        "wishes.write_delay_ms",
        Whole(0, MAX_UINT32, "ms"),
        "lower repository-disk-write-delay to this; unset: the store's value",
    ),
)

SOURCE_OPTIONS = (*_CLIENT, *_STORES, *_RETENTION, *_PACED)

_RECOVERY = (
    Option(
        "use_late_join",
        "late_join",
        Flag(),
        "take part in late join where a source offers it",
    ),
    Option("ume_use_store", "use_store", Flag(), "0: receive from a persistent source without its stores"),
    Option(
        "retransmit_request_maximum",
        "request_maximum",
        Whole(0, MAX_COUNT, "messages"),
        "how far back to recover; 0: everything",
    ),
    Option("retransmit_request_outstanding_maximum", "window", MESSAGES, "asked for at one time"),
    Option("retransmit_request_interval", "retry_ns", SPAN_AT_LEAST_1, "until a request is repeated"),
    Option("retransmit_request_message_timeout", "give_up_ns", SPAN_AT_LEAST_1, "until a message counts as lost"),
    Option(
        "retransmit_message_caching_proximity",
        "proximity",
        MESSAGES,
        "held ahead of the next to deliver; 2147483647: any number",
    ),
    Option(
        "delivery_control_maximum_burst_loss",
        "burst",
        Whole(2, MAX_COUNT, "messages"),
        "a gap of so many is lost at once",
        "comes before all recovery, so keep it out of reach (T30)",
    ),
    Option(
        "use_otr",
        "otr.use",
        numbers([UseOtr.OFF, UseOtr.ON, UseOtr.PERSISTENT]),
        "fill gaps outside the transport: never, always, where the source has stores",
    ),
    Option("otr_request_initial_delay", "otr.delay_ns", SPAN, "age of a gap when that starts"),
    Option("otr_request_message_timeout", "otr.give_up_ns", SPAN_AT_LEAST_1, "until a message of a gap is lost"),
    Option("ume_sri_request_interval", "sri_request_interval_ns", SPAN_AT_LEAST_1, "between SRI requests"),
    Option("ume_sri_request_maximum", "sri_request_maximum", TRIES, "SRI requests before an error"),
)

_CONSUMPTION = (
    Option(
        "ordered_delivery",
        "ordering",
        words(**{"1": Ordering.ORDERED, "-1": Ordering.ARRIVAL, "0": Ordering.ARRIVAL}),
        "1: in order; -1 and 0: as messages arrive",
    ),
    Option(
        "ume_use_ack_batching",
        "ack_mode",
        AckSwitch(AckMode.BATCHED),
        "acknowledge contiguous runs at an interval; else at once",
        "1 switches ume_explicit_ack_only off: the last one set wins",
    ),
    Option("ume_ack_batching_interval", "ack_interval_ns", SPAN_AT_LEAST_1, "that interval"),
    Option(
        "ume_explicit_ack_only",
        "ack_mode",
        AckSwitch(AckMode.EXPLICIT),
        "the application acknowledges",
        "1 switches ume_use_ack_batching off: the last one set wins",
    ),
    Option(
        "ume_allow_confirmed_delivery",
        "confirm",
        Flag(),
        "confirm to sources that ask for it",
        "receiver liveness needs it",
    ),
    Option(
        "ume_user_receiver_registration_id",
        "user_reg_id",
        Whole(0, MAX_UINT32),
        "the number under which sources see this receiver; 0: its RegID",
        "receiver liveness needs it",
    ),
    Option(
        "ume_receiver_liveness_interval",
        "liveness_ns",
        SPAN,
        "a silent receiver tells its sources so often that it lives; 0: never",
        "ume_source_liveness_timeout is five times this",
    ),
    Option(
        "ume_receiver_paced_persistence",
        "pace",
        numbers([Pace.SOURCE, Pace.RECEIVERS, Pace.NON_BLOCKING]),
        "1: the source waits for this receiver; 2: only while there is room",
        "a store rejects one that differs from its repository",
    ),
)

RECEIVER_OPTIONS = (*_CLIENT, *_RECOVERY, *_CONSUMPTION)
