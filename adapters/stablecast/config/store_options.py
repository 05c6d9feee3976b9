"""The options of a store, and those that it may have for each topic."""

from stablecast.config import option_kinds as k
from stablecast.config.option import Option
from stablecast.core.protocol.settings import RepositoryType

MIN_DISK_LIMIT = 196_992
"""Smallest repository-disk-file-size-limit in bytes (P-827)."""
_REPOSITORY = k.words(
    no_cache=RepositoryType.NO_CACHE,
    memory=RepositoryType.MEMORY,
    disk=RepositoryType.DISK,
    reduced_fd=RepositoryType.REDUCED_FD,
)
LIFETIME = "silence after which {} and its messages are forgotten; 0: the activity timeout; 4294967295: never"
# fmt: off
STORE_OPTIONS = (
    Option("source-check-interval", "check_ns", k.SPAN_AT_LEAST_1,
           "time between checks of the timers of sources and receivers"),
    Option("keepalive-interval", "keepalive_ns", k.SPAN_AT_LEAST_1,
           "silence of a client after which the store sends it a keepalive request",
           "keep the activity timeouts at twice this or more"),
    Option("retransmission-request-processing-rate", "request_rate", k.NumberKind(1, k.MAX_COUNT, "messages/s"),
           "rate of retransmission above which requests are dropped", "the queue holds the requests of four seconds"),
    Option("allow-refill", "refill", k.FLAG,
           "ask other stores of a source for messages that this store lacks"),
    Option("refill-message-rate", "refill_rate", k.NumberKind(0, k.MAX_COUNT, "messages/s"),
           "rate at which a store asks other stores for messages; 0: no limit"),
    Option("refill-byte-rate", "refill_byte_rate", k.NumberKind(0, k.MAX_COUNT, "bytes/s"),
           "payload that a store asks other stores for; 0: no limit"),
    Option("allow-proxy-source", "allow_proxy", k.FLAG, "act as a proxy for sources that ask for it"),
    Option("proxy-source-repo-quorum-required", "proxy_quorum", k.FLAG,
           "elect a proxy only by a quorum of the stores that have state of the source",
           "set the same value at all stores of a group"),
    Option("proxy-election-interval", "proxy_interval_ns", k.SPAN_AT_LEAST_1,
           "wait before an election, times a random factor from 0.5 to 1.5"),
    Option("retransmit_request_outstanding_maximum", "window", k.MESSAGES,
           "number of messages requested from a source at one time"),
    Option("retransmit_request_interval", "retry_ns", k.SPAN_AT_LEAST_1,
           "time after which a request to a source is repeated"),
    Option("retransmit_request_message_timeout", "give_up_ns", k.SPAN_AT_LEAST_1,
           "time after which a requested message counts as lost at this store"),
    Option("delivery_control_maximum_burst_loss", "burst", k.NumberKind(2, k.MAX_COUNT, "messages"),
           "length of a gap that counts as lost at once",
           "such a gap is never recovered, so keep the value high"),
)

TOPIC_OPTIONS = (
    Option("repository-type", "kind", _REPOSITORY,
           "place where messages are kept; no-cache keeps none, and reduced-fd keeps them on disk"),
    Option("repository-size-threshold", "size_threshold", k.BYTES,
           "size in memory above which the oldest messages are deleted; 0: none",
           "keep it at repository-size-limit or less"),
    Option("repository-size-limit", "size_limit", k.BYTES,
           "size in memory above which new messages are refused; 0: none", "it holds for each source of a topic"),
    Option("repository-age-threshold", "age_ns", k.SECONDS, "age in memory at which messages are deleted; 0: no limit"),
    Option("repository-disk-file-size-limit", "disk_limit", k.NumberKind(MIN_DISK_LIMIT, k.MAX_SIZE, "bytes"),
           "size on disk above which the oldest messages are deleted",
           "with receiver-paced persistence keep repository-size-limit at 90 % of it or less"),
    Option("repository-disk-write-delay", "write_delay_ns", k.SPAN,
           "wait before a message is written; a message that is deleted meanwhile is not written",
           "receiver-paced persistence only; sources may lower it"),
    Option("source-activity-timeout", "source_activity_ns", k.SPAN_AT_LEAST_1,
           "silence of a source after which its RegID is free"),
    Option("source-state-lifetime", "source_lifetime_ns", k.SPAN, LIFETIME.format("a source")),
    Option("receiver-activity-timeout", "receiver_activity_ns", k.SPAN_AT_LEAST_1,
           "silence of a receiver after which its RegID is free"),
    Option("receiver-state-lifetime", "receiver_lifetime_ns", k.SPAN, LIFETIME.format("a receiver")),
    Option("receiver-new-registration-rollback", "rollback", k.NumberKind(0, k.MAX_COUNT, "messages"),
           "number of stored messages that a new receiver gets; 0: none; 2147483647: all"),
    Option("stability-ack-minimum-number", "ack_minimum", k.MESSAGES,
           "number of stable messages that are acknowledged together",
           "a source with a smaller flight size waits for the interval again and again"),
    Option("stability-ack-interval", "ack_interval_ns", k.SPAN_AT_LEAST_1,
           "longest time that an acknowledgement waits"),
    Option("retransmission-request-forwarding", "forwarding", k.FLAG,
           "forward requests for messages that the store does not have to the source"),
    Option("repository-allow-receiver-paced-persistence", "allow_rpp", k.FLAG,
           "let sources ask for receiver-paced persistence"),
    Option("repository-allow-ack-on-reception", "allow_ack_on_reception", k.FLAG,
           "let sources ask for acknowledgement at reception", "receiver-paced persistence on disk only"),
    Option("source-flight-size-bytes-maximum", "flight_bytes_maximum", k.NumberKind(1, k.MAX_SIZE, "bytes"),
           "largest ume_flight_size_bytes that a source may ask for", "receiver-paced persistence only"),
)
# fmt: on
