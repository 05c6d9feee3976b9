"""Options of the client library in a store's configuration: type lbm-context, lbm-receiver and lbm-source (P-845).

A store is a context with receivers, and its proxies are sources. Some of these options have an effect at a store. A
notice names each option without effect, documented or not. Options that break a store are refused.
"""

from stablecast.config.client_options import RECEIVER_OPTIONS
from stablecast.config.documented_options import documented, documented_option, suggestion
from stablecast.config.options import ALIASES, SCOPES
from stablecast.config.store_options import STORE_OPTIONS
from stablecast.config.transport_options import OF_RECEIVERS, TRANSPORT_OPTIONS

CONTEXT = (
    "resolver_unicast_daemon",
    "resolver_service",
    "request_tcp_port_low",
    "request_tcp_port_high",
    "request_tcp_interface",
    "default_interface",
)
"""Context options that a store follows, in addition to those of resolution."""

OF_TRANSPORTS = frozenset(option.name for option in TRANSPORT_OPTIONS)
"""Options of the transports, which a store follows in its receivers and its proxies (P-845)."""

OF_RESOLUTION = ("resolver_", "resolution_")
"""The first words of options of resolution."""

RECEIVER = frozenset(option.name for option in RECEIVER_OPTIONS) & {option.name for option in STORE_OPTIONS}
"""Receiver options that a store follows for all its topics, in addition to those of LBT-RM and LBT-RU."""

OF_THE_SOURCE = frozenset(
    {
        "ume_store",
        "ume_store_name",
        "ume_store_group",
        "ume_session_id",
        "ume_receiver_paced_persistence",
        "ume_proxy_source",
        "ume_repository_size_threshold",
        "ume_repository_size_limit",
        "ume_repository_disk_file_size_limit",
        "ume_repository_ack_on_reception",
        "ume_write_delay",
    }
)
"""Source options that a proxy takes from the source that it replaces."""

DEADLY = {
    "ordered_delivery": "1",
    "use_late_join": "1",
    "umq_queue_participation": "0",
    "null_channel_behavior": "deliver",
    "unrecognized_channel_behavior": "deliver",
}
"""Options that break a store's receiving, unless they have this value, their documented default."""


def followed(scope: str, name: str) -> bool:
    """Return whether an option has an effect at a store; `scope` is context, receiver or source."""
    if scope == "context":
        return name in CONTEXT or name in OF_TRANSPORTS or _of_resolution(name)
    if scope == "receiver":
        return name in OF_RECEIVERS or ALIASES["receiver"].get(name, name) in RECEIVER
    known = ALIASES["source"].get(name, name)
    if name in OF_TRANSPORTS:
        return True
    return known not in OF_THE_SOURCE and any(option.name == known for option in SCOPES["source"])


def _of_resolution(name: str) -> bool:
    if not name.startswith(OF_RESOLUTION):
        return False
    from stablecast.config.resolution_options import of_contexts  # noqa: PLC0415 - most stores do not need it

    return bool(of_contexts({name: ""})[0])


def comment(scope: str, name: str) -> str:
    """Return the notice about an option that has no effect at a store."""
    if scope == "source" and name in OF_THE_SOURCE:
        return f"{name} has no effect: a proxy uses the value of its source"
    row = documented_option(scope, name)
    if row is not None:
        return row.notice(name) or f"{name} has no effect at this store"
    known = sorted(other for of_scope, other in documented() if of_scope == scope)
    remedy = suggestion(name, known)
    return f"{name} is not a documented {scope} option, and the store runs without it: {remedy}"
