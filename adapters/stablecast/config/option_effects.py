"""The effect of each documented client option: followed, without effect for a reason, or refused for a reason.

No option of a client's configuration is silent. Options that are followed stand in the tables of their module. This
module has the reasons of all others, and it decides for one option of one scope.
"""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Final

import attrs

from stablecast.config.context_options import CONTEXT_OPTIONS
from stablecast.config.library_options import documented
from stablecast.config.options import ALIASES, SCOPES, suggestion
from stablecast.config.resolution_options import ALL_CONTEXT_NAMES, PATTERN
from stablecast.config.resolution_options import RECEIVER as RESOLVED_RECEIVER
from stablecast.config.resolution_options import SOURCE as RESOLVED_SOURCE
from stablecast.config.transport_options import TRANSPORT_OPTIONS, UNHEEDED

CONTEXT, SOURCE, RECEIVER, WILDCARD = "context", "source", "receiver", "wildcard_receiver"
EVENT_QUEUE, HFX = "event_queue", "hfx"


class Effect(Enum):
    """The effects that an option of a client may have."""

    FOLLOWED = "in effect"
    UNHEEDED = "without effect"
    UNKNOWN = "unknown"


@attrs.frozen
class OptionEffect:
    """The effect of an option; `reason` is for people, and empty for an option that is followed."""

    effect: Effect
    reason: str = ""


_CALLBACK = "a configuration file cannot name a function of Python"
_TABLES = "tables grow as needed"
_OLD_TIMING = "it is the timing of releases before 4.0; phases have replaced it"
_MONITORING = "a context publishes no statistics: read Context.transports.statistics() or send --statistics"
_SYSTEM = "the event loop chooses how it waits"
_THREADS = "a context belongs to one thread, that of its event loop"
_HOT_FAILOVER = "hot failover is not served here"
_OTHER_SYSTEM = "it concerns another operating system"
_LATE_JOIN_INFO = "a request is repeated at retransmit_request_interval"
_OTR_PACE = "off-transport recovery asks at the pace of late join: retransmit_request_interval and _outstanding_maximum"
_NUMBERS = "a source announces its numbers to each receiver that joins, so none are requested"
_SRI = "a source answers each request for its stores at once, to the receiver that asked"
_REQUEST_KEEPALIVE = "TCP keepalive of the system detects a peer that is gone, within a minute"
_DIRECT = "connections are kept until the context closes, and use its interface"

# fmt: off
REASONS: Final[Mapping[tuple[str, str], str]] = {
    (CONTEXT, "compatibility_include_pre_um_6_0_behavior"): "no records of releases before 6.0 are sent",
    (CONTEXT, "context_event_function"): f"{_CALLBACK}: give on_event to Context.source and Context.receiver",
    (CONTEXT, "context_name"): "it selects a <context> of an XML file: name it in Context.from_config(context=...)",
    (CONTEXT, "delivery_control_maximum_total_map_entries"):
        "retransmit_message_caching_proximity bounds the messages that wait",
    (CONTEXT, "delivery_control_message_batching"): "messages that arrive together are always delivered together",
    (CONTEXT, "disable_extended_topic_resolution_message_options"): "peers before 4.0 are not served",
    (CONTEXT, "dynamic_fragmentation_reduction"): "the size of headers is known for each datagram already",
    (CONTEXT, "fd_management_type"): _SYSTEM,
    (CONTEXT, "file_descriptor_management_behavior"): _SYSTEM,
    (CONTEXT, "monitor_appid"): _MONITORING,
    (CONTEXT, "monitor_format"): _MONITORING,
    (CONTEXT, "monitor_format_opts"): _MONITORING,
    (CONTEXT, "monitor_interval"): _MONITORING,
    (CONTEXT, "monitor_transport"): _MONITORING,
    (CONTEXT, "monitor_transport_opts"): _MONITORING,
    (CONTEXT, "multiple_receive_maximum_datagrams"): "many datagrams are always read at one time",
    (CONTEXT, "operational_mode"): "a context runs on the event loop of the application",
    (CONTEXT, "receiver_callback_service_time_enabled"): "no times of callbacks are collected",
    (CONTEXT, "request_tcp_activity_timeout"): _REQUEST_KEEPALIVE,
    (CONTEXT, "request_tcp_exclusiveaddr"): _OTHER_SYSTEM,
    (CONTEXT, "request_tcp_listen_backlog"): "1024 connections may wait to be accepted",
    (CONTEXT, "request_tcp_reuseaddr"): "SO_REUSEADDR is always set",
    (CONTEXT, "resolver_active_source_interval"): _OLD_TIMING,
    (CONTEXT, "resolver_active_threshold"): _OLD_TIMING,
    (CONTEXT, "resolver_context_advertisement_interval"): "stores advertise their names when they start and when asked",
    (CONTEXT, "resolver_domain_id_active_propagation_timeout"): "there are no routers, so no domain IDs",
    (CONTEXT, "resolver_maximum_advertisements"): _OLD_TIMING,
    (CONTEXT, "resolver_maximum_queries"): _OLD_TIMING,
    (CONTEXT, "resolver_query_interval"): _OLD_TIMING,
    (CONTEXT, "resolver_source_notification_function"): _CALLBACK,
    (CONTEXT, "resolver_string_hash_function"): "topics are found by the dictionaries of Python",
    (CONTEXT, "resolver_string_hash_function_ex"): "topics are found by the dictionaries of Python",
    (CONTEXT, "resolver_wildcard_receiver_map_tablesz"): _TABLES,
    (CONTEXT, "response_session_maximum_buffer"): "16 MiB may wait for one peer",
    (CONTEXT, "response_session_sender_socket_buffer"): "socket buffers have the system's size",
    (CONTEXT, "response_tcp_activity_timeout"): _REQUEST_KEEPALIVE,
    (CONTEXT, "response_tcp_deletion_timeout"): _DIRECT,
    (CONTEXT, "response_tcp_interface"): _DIRECT,
    (CONTEXT, "response_tcp_nodelay"): "TCP_NODELAY is always set",
    (CONTEXT, "source_event_function"): f"{_CALLBACK}: give on_event to Context.source",
    (CONTEXT, "source_includes_topic_index"): "source strings have no topic index, which only their own context knows",
    (CONTEXT, "transport_datagram_max_size"): "write the size of the transport, transport_lbtrm_datagram_max_size",
    (CONTEXT, "transport_session_multiple_sending_threads"): _THREADS,
    (CONTEXT, "transport_session_single_receiving_thread"): _THREADS,
    (CONTEXT, "ume_proactive_keepalive_interval"): "stores ask silent receivers for a sign of life",
    (RECEIVER, "delivery_control_loss_check_interval"): "a gap has its own timer, so nothing needs a periodic check",
    (RECEIVER, "delivery_control_loss_tablesz"): _TABLES,
    (RECEIVER, "delivery_control_order_tablesz"): _TABLES,
    (RECEIVER, "hf_duplicate_delivery"): _HOT_FAILOVER,
    (RECEIVER, "hf_optional_messages"): _HOT_FAILOVER,
    (RECEIVER, "late_join_info_request_interval"): _LATE_JOIN_INFO,
    (RECEIVER, "late_join_info_request_maximum"): _LATE_JOIN_INFO,
    (RECEIVER, "monitor_interval"): _MONITORING,
    (RECEIVER, "otr_message_caching_threshold"): "retransmit_message_caching_proximity bounds the messages that wait",
    (RECEIVER, "otr_request_log_alert_cooldown"): "the beginning of off-transport recovery is not logged",
    (RECEIVER, "otr_request_maximum_interval"): _OTR_PACE,
    (RECEIVER, "otr_request_minimum_interval"): _OTR_PACE,
    (RECEIVER, "otr_request_outstanding_maximum"): _OTR_PACE,
    (RECEIVER, "retransmit_initial_sequence_number_request"): _NUMBERS,
    (RECEIVER, "source_notification_function"): f"{_CALLBACK}: give on_event to Context.receiver",
    (RECEIVER, "transport_demux_tablesz"): _TABLES,
    (RECEIVER, "transport_topic_sequence_number_info_request_interval"): _NUMBERS,
    (RECEIVER, "transport_topic_sequence_number_info_request_maximum"): _NUMBERS,
    (RECEIVER, "ume_application_outstanding_maximum"): "an application that iterates holds its sources back itself",
    (RECEIVER, "ume_recovery_sequence_number_info_function"): f"{_CALLBACK}: give start_at to Context.receiver",
    (RECEIVER, "ume_registration_extended_function"): f"{_CALLBACK}: give reg_id to Context.receiver",
    (RECEIVER, "ume_registration_function"): f"{_CALLBACK}: give reg_id to Context.receiver",
    (SOURCE, "implicit_batching_type"): "batches are sent by size and age only",
    (SOURCE, "retransmit_message_map_tablesz"): _TABLES,
    (SOURCE, "transport_source_side_filtering_behavior"): "each source has its own stream, so nothing needs a filter",
    (SOURCE, "ume_force_reclaim_function"): f"{_CALLBACK}: give on_forced_reclaim to Context.source",
    (SOURCE, "ume_message_map_tablesz"): _TABLES,
    (SOURCE, "ume_registration_id"): "write the RegID into ume_store, as ip:port:regid",
    (SOURCE, "ume_sri_flush_sri_request_response"): _SRI,
    (SOURCE, "ume_sri_immediate_sri_request_response"): _SRI,
    (SOURCE, "ume_sri_request_response_latency"): _SRI,
    (SOURCE, "use_extended_reclaim_notifications"): "the event `Reclaimed` always says whether it was forced",
    (WILDCARD, "hf_receiver"): _HOT_FAILOVER,
    (WILDCARD, "monitor_interval"): _MONITORING,
    (WILDCARD, "pattern_type"): "name the kind of the pattern where the receiver is made",
    (WILDCARD, "receiver_create_callback"): _CALLBACK,
    (WILDCARD, "receiver_delete_callback"): _CALLBACK,
    (WILDCARD, "resolver_query_max_interval"): _OLD_TIMING,
}
# fmt: on
"""The reason why an option of a scope has no effect at a client, for people."""

OF_SCOPES: Final = {
    EVENT_QUEUE: "there are no event queues: messages come by iteration or on_message",
    HFX: _HOT_FAILOVER,
}
"""The reason why no option of a scope has an effect."""


@cache
def _followed(scope: str) -> frozenset[str]:
    """Return the names that an endpoint or a context follows in a scope."""
    transport = {option.name for option in TRANSPORT_OPTIONS}
    match scope:
        case "context":
            both = _of_endpoint("source") | _of_endpoint("receiver")
            shared = {name for of_scope, name in documented() if of_scope == CONTEXT and name in both}
            return frozenset({*ALL_CONTEXT_NAMES, *(option.name for option in CONTEXT_OPTIONS), *transport, *shared})
        case "source":
            return frozenset(_of_endpoint("source") | transport | {option.name for option in RESOLVED_SOURCE})
        case "receiver":
            return frozenset(_of_endpoint("receiver") | transport | {option.name for option in RESOLVED_RECEIVER})
        case "wildcard_receiver":
            return frozenset(option.name for option in PATTERN)
        case _:
            return frozenset()


def for_endpoint(scope: str, name: str) -> bool:
    """Return whether a source or receiver follows an option that is set for its context."""
    return name in _of_endpoint(scope) or any(option.name == name for option in TRANSPORT_OPTIONS)


def _of_endpoint(scope: str) -> set[str]:
    return {option.name for option in SCOPES[scope]} | set(ALIASES[scope])


def effect_of(scope: str, name: str) -> OptionEffect:
    """Return the effect of an option in a scope of a client's configuration."""
    if scope in OF_SCOPES:
        return OptionEffect(Effect.UNHEEDED, OF_SCOPES[scope])
    if name in UNHEEDED:
        return OptionEffect(Effect.UNHEEDED, UNHEEDED[name])
    if name in _followed(scope):
        return OptionEffect(Effect.FOLLOWED)
    reason = REASONS.get((scope, name))
    if reason is not None:
        return OptionEffect(Effect.UNHEEDED, reason)
    return OptionEffect(Effect.UNKNOWN, _unknown(scope, name))


def _unknown(scope: str, name: str) -> str:
    elsewhere = sorted(of_scope for of_scope, known in documented() if known == name)
    if elsewhere:
        return f"{name} is an option of the scope {elsewhere[0]}, not {scope}"
    known = {known for of_scope, known in documented() if of_scope == scope} | _followed(scope)
    return f"there is no {scope} option '{name}': {suggestion(name, sorted(known))}"
