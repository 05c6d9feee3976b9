"""The options of a store, and those that it may have for each topic."""

from stablecast.config.client_options import BYTES, MAX_COUNT, MAX_UINT32, MESSAGES, SPAN, SPAN_AT_LEAST_1
from stablecast.config.option import Option
from stablecast.config.option_kinds import Flag, Whole, words
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.settings import RepositoryType

MIN_DISK_LIMIT = 196_992
"""Bytes (P-827)."""
LIFETIME = "silence until {} is forgotten, with what is kept for it; 0: the activity timeout; 4294967295: never"
STORE_OPTIONS = (
    Option(
        "source-check-interval",
        "check_ns",
        SPAN_AT_LEAST_1,
        "between checks of the timers of sources and receivers",
    ),
    Option(
        "keepalive-interval",
        "keepalive_ns",
        SPAN_AT_LEAST_1,
        "silence of a client after which the store asks it for a sign of life",
        "keep the activity timeouts at twice this or more",
    ),
    Option(
        "retransmission-request-processing-rate",
        "request_rate",
        Whole(1, MAX_COUNT, "messages/s"),
        "requests above it are dropped",
        "the queue holds four times as many",
    ),
    Option("allow-proxy-source", "allow_proxy", Flag(), "stand in for sources that ask for it"),
    Option(
        "proxy-source-repo-quorum-required",
        "proxy_quorum",
        Flag(),
        "only stores that have state of the source take part, and a quorum of them must",
        "set it alike at all stores of a group",
    ),
    Option(
        "proxy-election-interval",
        "proxy_interval_ns",
        SPAN_AT_LEAST_1,
        "wait before that, times a random 0.5 to 1.5",
    ),
    Option("retransmit_request_outstanding_maximum", "window", MESSAGES, "asked of a source at one time"),
    Option("retransmit_request_interval", "retry_ns", SPAN_AT_LEAST_1, "until a request to a source is repeated"),
    Option("retransmit_request_message_timeout", "give_up_ns", SPAN_AT_LEAST_1, "until a message counts as lost here"),
    Option(
        "delivery_control_maximum_burst_loss",
        "burst",
        Whole(2, MAX_COUNT, "messages"),
        "a gap of so many is lost at once",
        "comes before all recovery, so keep it out of reach (T30)",
    ),
)

TOPIC_OPTIONS = (
    Option(
        "repository-type",
        "kind",
        words(
            no_cache=RepositoryType.NO_CACHE,
            memory=RepositoryType.MEMORY,
            disk=RepositoryType.DISK,
            reduced_fd=RepositoryType.REDUCED_FD,
        ),
        "what is kept of messages, and where",
    ),
    Option(
        "repository-size-threshold",
        "size_threshold",
        BYTES,
        "in memory, above which old messages go; 0: none",
        "at most repository-size-limit",
    ),
    Option(
        "repository-size-limit",
        "size_limit",
        BYTES,
        "in memory, above which new messages are not taken; 0: none",
        "for each source of a topic",
    ),
    Option(
        "repository-age-threshold",
        "age_ns",
        Whole(0, MAX_UINT32, "s", SECOND),
        "age in memory at which messages go; 0: any",
    ),
    Option(
        "repository-disk-file-size-limit",
        "disk_limit",
        Whole(MIN_DISK_LIMIT, 1 << 62, "bytes"),
        "on disk, above which the oldest messages go",
        "with receiver-paced persistence repository-size-limit is at most 90 % of it",
    ),
    Option(
        "repository-disk-write-delay",
        "write_delay_ns",
        SPAN,
        "before a message is written, if it is still wanted then",
        "receiver-paced persistence; sources may lower it",
    ),
    Option("source-activity-timeout", "source_activity_ns", SPAN_AT_LEAST_1, "silence until a source's RegID is free"),
    Option("source-state-lifetime", "source_lifetime_ns", SPAN, LIFETIME.format("a source")),
    Option("receiver-activity-timeout", "receiver_activity_ns", SPAN_AT_LEAST_1, "the same for receivers"),
    Option("receiver-state-lifetime", "receiver_lifetime_ns", SPAN, LIFETIME.format("a receiver")),
    Option(
        "receiver-new-registration-rollback",
        "rollback",
        Whole(0, MAX_COUNT, "messages"),
        "how far back a new receiver starts; 0: with the next one; 2147483647: with the oldest",
    ),
    Option(
        "stability-ack-minimum-number",
        "ack_minimum",
        Whole(1, MAX_COUNT, "messages"),
        "stable messages collected for one acknowledgement",
        "above the source's flight size it sends by fits and starts",
    ),
    Option("stability-ack-interval", "ack_interval_ns", SPAN_AT_LEAST_1, "how long they are collected at most"),
    Option(
        "retransmission-request-forwarding",
        "forwarding",
        Flag(),
        "requests for what is not here go on to the source",
    ),
    Option(
        "repository-allow-receiver-paced-persistence",
        "allow_rpp",
        Flag(),
        "sources may ask for receiver-paced persistence",
    ),
    Option(
        "repository-allow-ack-on-reception",
        "allow_ack_on_reception",
        Flag(),
        "sources may ask for acknowledgement at reception",
        "receiver-paced persistence on disk only",
    ),
    Option(
        "source-flight-size-bytes-maximum",
        "flight_bytes_maximum",
        Whole(1, 1 << 62, "bytes"),
        "the largest ume_flight_size_bytes that a source may ask for",
        "receiver-paced persistence only",
    ),
)
