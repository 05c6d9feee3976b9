"""The option table: documented names on the outside, fields of the core's configuration on the inside.

Defaults stand in one place, the configuration classes of `stablecast.core.settings` (profile `safe`); the table only
says which field an option sets, in which unit it is written, and what it may be.
"""

import difflib
import operator
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, TypeVar

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.quorum import Consensus, Intragroup
from stablecast.core.settings import AckMode, FlightBehavior, ReceiverConfig, SourceConfig, StoreConfig
from stablecast.core.units import MILLISECOND

Value = int | str | bool
Config = SourceConfig | ReceiverConfig | StoreConfig
ConfigT = TypeVar("ConfigT", SourceConfig, ReceiverConfig, StoreConfig)

MAX_SESSION_ID = 0xFFFF_FFFF_FFFF_FFFE
MAX_UINT32 = 0xFFFF_FFFF


class OptionError(StablecastError):
    """An option that does not exist or a value it cannot take; the message names both and the remedy."""


@attrs.frozen
class Option:
    """One option: its documented name, the configuration field (dotted) it sets, and how its value is read."""

    name: str
    field: str
    read: Callable[[str, Value], object]
    unit: str = ""
    summary: str = ""


def _integer(low: int, high: int, factor: int = 1) -> Callable[[str, Value], object]:
    def read(name: str, value: Value) -> object:
        try:
            number = int(value, 0) if isinstance(value, str) else operator.index(value)
        except (ValueError, TypeError):
            raise OptionError(f"option {name} wants a whole number, not '{value}'") from None
        if not low <= number <= high:
            raise OptionError(f"option {name} must lie between {low} and {high}, not {number}")
        return number * factor

    return read


def _choice(kind: type[IntEnum]) -> Callable[[str, Value], object]:
    names = {member.name.lower(): member for member in kind}

    def read(name: str, value: Value) -> object:
        found = names.get(str(value).lower())
        if found is None:
            raise OptionError(f"option {name} must be one of {', '.join(names)}, not '{value}'")
        return found

    return read


def _flag(name: str, value: Value) -> object:
    if str(value) not in ("0", "1", "True", "False"):
        raise OptionError(f"option {name} must be 0 or 1, not '{value}'")
    return str(value) in ("1", "True")


def _batching(name: str, value: Value) -> object:
    return AckMode.BATCHED if _flag(name, value) else AckMode.IMMEDIATE


_MS = _integer(0, MAX_UINT32, MILLISECOND)
_MS_AT_LEAST_1 = _integer(1, MAX_UINT32, MILLISECOND)
_COUNT = _integer(1, 2_147_483_647)
_SIZE = _integer(0, 1 << 62)
_SESSION = _integer(0, MAX_SESSION_ID)

_CLIENT = (
    Option("ume_session_id", "session_id", _SESSION, "", "stands for RegIDs that the store chooses and keeps"),
    Option("ume_registration_interval", "times.interval_ns", _MS_AT_LEAST_1, "ms", "between registration requests"),
    Option(
        "ume_store_activity_timeout", "times.silence_ns", _MS_AT_LEAST_1, "ms", "silence until a store is unresponsive"
    ),
    Option(
        "ume_activity_timeout",
        "activity_timeout_ns",
        _MS,
        "ms",
        "silence until the RegID is free; 0: the store's value",
    ),
    Option("ume_state_lifetime", "state_lifetime_ns", _MS, "ms", "silence until the state is deleted; 0: not set"),
    Option(
        "ume_consensus_sequence_number_behavior", "consensus", _choice(Consensus), "", "how stores' numbers are merged"
    ),
)
SOURCE_OPTIONS = (
    *_CLIENT,
    Option("ume_flight_size", "flight_messages", _COUNT, "messages", "unstable messages allowed"),
    Option("ume_flight_size_bytes", "flight_bytes", _SIZE, "bytes", "unstable payload bytes allowed; 0: no limit"),
    Option("ume_flight_size_behavior", "flight_behavior", _choice(FlightBehavior), "", "what a send beyond it does"),
    Option(
        "ume_retention_intragroup_stability_behavior",
        "group.intragroup",
        _choice(Intragroup),
        "",
        "which stores of the group must hold a message",
    ),
    Option(
        "retransmit_retention_size_threshold", "retention.threshold_bytes", _SIZE, "bytes", "kept though releasable"
    ),
    Option("retransmit_retention_size_limit", "retention.limit_bytes", _SIZE, "bytes", "beyond it a reclaim is forced"),
    Option(
        "ume_retention_unique_confirmations",
        "retention.unique_confirmations",
        _integer(0, 10_000),
        "receivers",
        "that must confirm before a message is released",
    ),
    Option("ume_confirmed_delivery_notification", "confirmations", _flag, "", "receivers confirm to the source"),
    Option("ume_sri_inter_sri_interval", "sri_interval_ns", _MS_AT_LEAST_1, "ms", "between announcements"),
    Option("ume_sri_max_number_of_sri_per_update", "sri_maximum", _integer(1, 65_535), "", "announcements per change"),
)
RECEIVER_OPTIONS = (
    *_CLIENT,
    Option(
        "retransmit_request_maximum", "request_maximum", _SIZE, "messages", "how far back to recover; 0: everything"
    ),
    Option("retransmit_request_outstanding_maximum", "window", _COUNT, "messages", "asked for at one time"),
    Option("retransmit_request_interval", "retry_ns", _MS_AT_LEAST_1, "ms", "until a request is repeated"),
    Option("retransmit_request_message_timeout", "give_up_ns", _MS_AT_LEAST_1, "ms", "until a message counts as lost"),
    Option(
        "retransmit_message_caching_proximity", "proximity", _COUNT, "messages", "held ahead of the next to deliver"
    ),
    Option("ume_use_ack_batching", "ack_mode", _batching, "", "acknowledge contiguous runs at an interval"),
    Option("ume_ack_batching_interval", "ack_interval_ns", _MS_AT_LEAST_1, "ms", "that interval"),
    Option("ume_sri_request_interval", "sri_request_interval_ns", _MS_AT_LEAST_1, "ms", "between SRI requests"),
    Option("ume_sri_request_maximum", "sri_request_maximum", _COUNT, "", "SRI requests before an error"),
)
STORE_OPTIONS = (
    Option(
        "source-activity-timeout", "source_activity_ns", _MS_AT_LEAST_1, "ms", "silence until a source's RegID is free"
    ),
    Option("source-state-lifetime", "source_lifetime_ns", _MS, "ms", "silence until a source is forgotten; 0: not set"),
    Option("receiver-activity-timeout", "receiver_activity_ns", _MS_AT_LEAST_1, "ms", "the same for receivers"),
    Option("receiver-state-lifetime", "receiver_lifetime_ns", _MS, "ms", "the same for receivers"),
    Option("source-check-interval", "check_ns", _MS_AT_LEAST_1, "ms", "between checks of the timers"),
    Option(
        "receiver-new-registration-rollback", "rollback", _integer(0, 2_147_483_647), "messages", "for new receivers"
    ),
)
SCOPES: Mapping[str, tuple[Option, ...]] = {
    "source": SOURCE_OPTIONS,
    "receiver": RECEIVER_OPTIONS,
    "store": STORE_OPTIONS,
}


def apply(scope: str, config: ConfigT, options: Mapping[str, Value]) -> ConfigT:
    """The configuration with options set.

    Raises OptionError for a value that cannot be, and for a name that is none: then it tells the nearest.
    """
    table = {option.name: option for option in SCOPES[scope]}
    for name, value in options.items():
        option = table.get(name)
        if option is None:
            raise OptionError(_unknown(scope, name, list(table)))
        config = _set(config, option.field.split("."), option.read(name, value))
    return config


def _set(config: Any, path: list[str], value: object) -> Any:
    inner = value if len(path) == 1 else _set(getattr(config, path[0]), path[1:], value)
    return attrs.evolve(config, **{path[0]: inner})


def _unknown(scope: str, name: str, names: list[str]) -> str:
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0)
    return f"there is no {scope} option '{name}': did you mean '{nearest[0]}'?"
