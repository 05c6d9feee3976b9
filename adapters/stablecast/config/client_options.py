"""The options of sources and receivers."""

from stablecast.config import option_kinds as k
from stablecast.config.option import Option
from stablecast.config.option_names import MAX_SESSION_ID
from stablecast.config.stores import add_group, add_named_store, add_store
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.quorum import Consensus, Intergroup, Intragroup
from stablecast.core.protocol.settings import AckMode, FlightBehavior, Ordering, StoreBehavior, UseOtr

_CONSENSUS = k.words(lowest=Consensus.LOWEST, majority=Consensus.MAJORITY, highest=Consensus.HIGHEST)
_BEHAVIOR = k.words(
    qc=StoreBehavior.QC, quorum_consensus=StoreBehavior.QC, rr=StoreBehavior.RR, round_robin=StoreBehavior.RR
)
_INTRAGROUP = k.words(
    quorum=Intragroup.QUORUM, all_active=Intragroup.ALL_ACTIVE, all=Intragroup.ALL, all_stores=Intragroup.ALL
)
_INTERGROUP = k.words(
    any=Intergroup.ANY,
    any_group=Intergroup.ANY,
    majority=Intergroup.MAJORITY,
    all=Intergroup.ALL,
    all_groups=Intergroup.ALL,
    all_active=Intergroup.ALL_ACTIVE,
)

# fmt: off
_CLIENT = (
    Option("ume_session_id", "session_id", k.NumberKind(0, MAX_SESSION_ID),
           "identity for which each store chooses and keeps a RegID; 0: none"),
    Option("ume_registration_interval", "times.interval_ns", k.SPAN_AT_LEAST_1, "time between registration requests"),
    Option("ume_store_activity_timeout", "times.silence_ns", k.SPAN_AT_LEAST_1,
           "silence after which a store counts as unresponsive",
           "keep it at five times ume_store_check_interval or more, and above the store's keepalive-interval"),
    Option("ume_activity_timeout", "activity_timeout_ns", k.SPAN,
           "silence of this client after which a store frees its RegID; 0: the store's value",
           "it overrides the store's timeout"),
    Option("ume_state_lifetime", "state_lifetime_ns", k.SPAN,
           "silence of this client after which a store deletes its state; 0: the store's value",
           "the smaller of this and the store's value counts"),
    Option("ume_consensus_sequence_number_behavior", "consensus", _CONSENSUS,
           "the number to continue with when the stores return different numbers"),
)

_STORES = (
    Option("ume_store", "", k.ListKind(add_store, "[domain:]ip:port[:regid[:group]]"),
           "stores by address; 0.0.0.0:0 clears the list",
           "it makes the source persistent; a host is looked up, and again when its store is lost"),
    Option("ume_store_name", "", k.ListKind(add_named_store, "name[:regid[:group]]"),
           "stores by name; 0:0 clears the list", "the name is the context-name of the store"),
    Option("ume_store_group", "", k.ListKind(add_group, "index:size"),
           "sizes of the groups of stores; 0:0 clears the list",
           "without it all stores are one group; the numbers need not begin with 0"),
    Option("ume_store_behavior", "behavior", _BEHAVIOR,
           "use all stores by quorum and consensus, or one store after the other (deprecated)",
           "rr supports neither groups nor receiver-paced persistence"),
    Option("ume_retention_intragroup_stability_behavior", "groups.intragroup", _INTRAGROUP,
           "the stores of a group that must hold a message before it is stable in the group",
           "it is evaluated before ume_retention_intergroup_stability_behavior"),
    Option("ume_retention_intergroup_stability_behavior", "groups.intergroup", _INTERGROUP,
           "the groups in which a message must be stable"),
    Option("ume_store_check_interval", "check_ns", k.SPAN_AT_LEAST_1,
           "time between checks for silent stores and unstable messages"),
    Option("ume_sri_inter_sri_interval", "sri_interval_ns", k.SPAN_AT_LEAST_1,
           "time between announcements (SRI) of the source's stores"),
    Option("ume_sri_max_number_of_sri_per_update", "sri_maximum", k.NumberKind(1, 65_535),
           "number of announcements after each change of the stores"),
    Option("ume_proxy_source", "wants_proxy", k.FLAG,
           "let a store act as a proxy when the source is gone",
           "it needs a RegID or a session id, and allow-proxy-source at the stores"),
)

_RETENTION = (
    Option("late_join", "late_join", k.FLAG,
           "retransmit earlier messages to receivers that join late",
           "naming stores switches it on, with a log line"),
    Option("ume_flight_size", "flight_messages", k.MESSAGES,
           "number of messages that may be unstable at one time; a message that was cut counts once",
           "the flight is full when this or ume_flight_size_bytes is reached"),
    Option("ume_flight_size_bytes", "flight_bytes", k.BYTES,
           "payload that may be unstable at one time; 0: no limit",
           "receiver-paced persistence needs it; a message that is larger is refused"),
    Option("ume_flight_size_behavior", "flight_behavior",
           k.words(block=FlightBehavior.BLOCK, notify=FlightBehavior.NOTIFY),
           "when the flight is full: let a send wait, or send and notify the application"),
    Option("retransmit_retention_size_threshold", "retention.threshold_bytes", k.BYTES,
           "size of retained messages up to which none is released",
           "stable and confirmed messages are released only above it"),
    Option("retransmit_retention_size_limit", "retention.limit_bytes", k.BYTES,
           "size of retained messages above which the oldest are released by force", "keep it above the flight size"),
    Option("retransmit_retention_age_threshold", "retention.age_ns", k.SECONDS,
           "age below which a message is not released; 0: no minimum"),
    Option("ume_retention_unique_confirmations", "retention.unique_confirmations", k.NumberKind(0, 10_000, "receivers"),
           "number of receivers that must confirm a message before its release",
           "messages that wait for it count into the flight"),
    Option("ume_confirmed_delivery_notification", "", k.ConfirmationsKind(),
           "events of confirmed delivery: 0 none, 1 for each fragment, 2 for each message, 3 both",
           "above 0 the source asks receivers to confirm"),
    Option("ume_message_stability_notification", "stable_notification", k.LEVELS,
           "events of stability: 0 none, 1 for each fragment, 2 for each message, 3 both"),
    Option("ume_message_stability_timeout", "stability_timeout_ns", k.SPAN,
           "time after which an unstable message is sent to the stores again; 0: never"),
    Option("ume_message_stability_lifetime", "stability_lifetime_ns", k.SPAN,
           "time after which an unstable message is given up; 0: never", "keep it above ume_message_stability_timeout"),
    Option("ume_source_liveness_timeout", "liveness_ns", k.SPAN,
           "silence after which a receiver that reported its liveness counts as gone; 0: off",
           "it must be five times ume_receiver_liveness_interval"),
)

_PACED = (
    Option("ume_receiver_paced_persistence", "pace", k.numbers([Pace.SOURCE, Pace.RECEIVERS]),
           "1: ask the stores for a repository that keeps messages until its receivers have consumed them",
           "repository-allow-receiver-paced-persistence must permit it"),
    Option("ume_repository_size_threshold", "wishes.size_threshold", k.BYTES,
           "lower value for repository-size-threshold; 0: the store's value"),
    Option("ume_repository_size_limit", "wishes.size_limit", k.BYTES,
           "lower value for repository-size-limit; 0: the store's value"),
    Option("ume_repository_disk_file_size_limit", "wishes.disk_limit", k.BYTES,
           "lower value for repository-disk-file-size-limit; 0: the store's value"),
    Option("ume_repository_ack_on_reception", "wishes.ack_on_reception", k.FLAG,
           "let the stores acknowledge stability at reception, before the message is on disk",
           "repository-allow-ack-on-reception must permit it"),
    Option("ume_write_delay", "wishes.write_delay_ms", k.NumberKind(0, k.MAX_UINT32, "ms"),
           "lower value for repository-disk-write-delay; unset: the store's value"),
)
# fmt: on

SOURCE_OPTIONS = (*_CLIENT, *_STORES, *_RETENTION, *_PACED)

# fmt: off
_RECOVERY = (
    Option("use_late_join", "late_join", k.FLAG, "request earlier messages from sources with late_join"),
    Option("ume_use_store", "use_store", k.FLAG, "0: receive from a persistent source without its stores"),
    Option("retransmit_request_maximum", "request_maximum", k.NumberKind(0, k.MAX_COUNT, "messages"),
           "number of earlier messages to recover at most; 0: all"),
    Option("retransmit_request_outstanding_maximum", "window", k.MESSAGES, "number of messages requested at one time"),
    Option("retransmit_request_interval", "retry_ns", k.SPAN_AT_LEAST_1, "time after which a request is repeated"),
    Option("retransmit_request_message_timeout", "give_up_ns", k.SPAN_AT_LEAST_1,
           "time after which a requested message counts as lost"),
    Option("retransmit_message_caching_proximity", "proximity", k.MESSAGES,
           "number of messages held ahead of the next one to deliver; 2147483647: no limit"),
    Option("delivery_control_maximum_burst_loss", "burst", k.NumberKind(2, k.MAX_COUNT, "messages"),
           "length of a gap that counts as lost at once",
           "such a gap is never recovered, so keep the value high"),
    Option("use_otr", "otr.use", k.numbers([UseOtr.OFF, UseOtr.ON, UseOtr.PERSISTENT]),
           "recover gaps outside the transport: 0 never, 1 always, 2 if the source has stores"),
    Option("otr_request_initial_delay", "otr.delay_ns", k.SPAN, "age of a gap at which that recovery begins"),
    Option("otr_request_message_timeout", "otr.give_up_ns", k.SPAN_AT_LEAST_1,
           "time after which a message of a gap counts as lost"),
    Option("ume_sri_request_interval", "sri_request_interval_ns", k.SPAN_AT_LEAST_1, "time between SRI requests"),
    Option("ume_sri_request_maximum", "sri_request_maximum", k.NumberKind(1, k.MAX_COUNT),
           "number of SRI requests without an answer that is an error"),
)

_CONSUMPTION = (
    Option("ordered_delivery", "ordering",
           k.words(**{"1": Ordering.ORDERED, "-1": Ordering.ARRIVAL, "0": Ordering.ARRIVAL}),
           "1: deliver in the order of sending; -1 and 0: in the order of arrival"),
    Option("ume_use_ack_batching", "ack_mode", k.AckModeKind(AckMode.BATCHED),
           "1: acknowledge contiguous runs of messages at an interval; 0: acknowledge each at once",
           "1 switches ume_explicit_ack_only off, because the last one set wins"),
    Option("ume_ack_batching_interval", "ack_interval_ns", k.SPAN_AT_LEAST_1, "interval of batched acknowledgements"),
    Option("ume_explicit_ack_only", "ack_mode", k.AckModeKind(AckMode.EXPLICIT),
           "1: acknowledge only the messages that the application acknowledges",
           "1 switches ume_use_ack_batching off, because the last one set wins"),
    Option("ume_allow_confirmed_delivery", "confirm", k.FLAG,
           "confirm messages to sources that ask for it", "receiver liveness needs it"),
    Option("ume_user_receiver_registration_id", "user_reg_id", k.NumberKind(0, k.MAX_UINT32),
           "number of this receiver in `Confirmed` and `ReceiverGone` of its sources; 0: its RegID",
           "receiver liveness needs it"),
    Option("ume_receiver_liveness_interval", "liveness_ns", k.SPAN,
           "interval at which a silent receiver reports its liveness to its sources; 0: never",
           "ume_source_liveness_timeout must be five times this"),
    Option("ume_receiver_paced_persistence", "pace", k.numbers([Pace.SOURCE, Pace.RECEIVERS, Pace.NON_BLOCKING]),
           "1: the source waits for this receiver; 2: it waits only while the repository has room",
           "a store refuses a receiver whose value differs from its repository"),
)
# fmt: on

RECEIVER_OPTIONS = (*_CLIENT, *_RECOVERY, *_CONSUMPTION)
