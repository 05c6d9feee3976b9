"""The option table: documented names for users, fields of the core's configuration for the program.

The table has the field that an option sets, the unit and the allowed values. The configuration classes of
`stablecast.core.protocol.settings` have the defaults (profile `safe`); `profiles` lists the differences of other
profiles.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from stablecast.config.client_options import RECEIVER_OPTIONS, SOURCE_OPTIONS
from stablecast.config.disk_options import DISK_OPTIONS, DiskConfig
from stablecast.config.documented_options import Documented, documented_option, unknown
from stablecast.config.option import Option
from stablecast.config.option_kinds import OptionError, Value
from stablecast.config.store_options import STORE_OPTIONS, TOPIC_OPTIONS
from stablecast.config.stores import numbered
from stablecast.config.transport_options import TRANSPORT_OPTIONS, TransportConfig
from stablecast.core.protocol.settings import ReceiverConfig, RepositoryConfig, SourceConfig, StoreConfig

__all__ = [
    "ALIASES",
    "SCOPES",
    "Config",
    "Option",
    "OptionError",
    "Value",
    "apply",
    "disk_options",
    "notices",
    "parse_options",
]

Config = SourceConfig | ReceiverConfig | StoreConfig | RepositoryConfig | DiskConfig | TransportConfig
ConfigT = TypeVar("ConfigT", SourceConfig, ReceiverConfig, StoreConfig, RepositoryConfig, DiskConfig, TransportConfig)

_DISK_ELSEWHERE = tuple(option.elsewhere() for option in DISK_OPTIONS)

SCOPES: Mapping[str, tuple[Option, ...]] = {
    "source": SOURCE_OPTIONS,
    "receiver": RECEIVER_OPTIONS,
    "store": (*STORE_OPTIONS, *(option.below("repository") for option in TOPIC_OPTIONS), *_DISK_ELSEWHERE),
    "topic": (*TOPIC_OPTIONS, *_DISK_ELSEWHERE),
    "disk": DISK_OPTIONS,
    "transport": TRANSPORT_OPTIONS,
}
"""The options of each scope. A topic option of a store holds for all topics that do not set it themselves.

Disk options may be set for a topic or a store. `apply` only checks them there, and `disk_options` selects them.
"""

_OLD_DISK_NAMES = {"repository-disk-max-async-cbs": "repository-disk-max-read-async-cbs"}

ALIASES: Mapping[str, Mapping[str, str]] = {
    "source": {
        "ume_late_join": "late_join",
        "ume_retention_size_threshold": "retransmit_retention_size_threshold",
        "ume_retention_size_limit": "retransmit_retention_size_limit",
    },
    "receiver": {
        "ume_use_late_join": "use_late_join",
        "ume_retransmit_request_interval": "retransmit_request_interval",
        "ume_retransmit_request_maximum": "retransmit_request_maximum",
        "ume_retransmit_request_outstanding_maximum": "retransmit_request_outstanding_maximum",
        "ume_retransmit_request_generation_interval": "retransmit_request_message_timeout",
        "retransmit_request_generation_interval": "retransmit_request_message_timeout",
        "otr_request_duration": "otr_request_message_timeout",
    },
    "store": _OLD_DISK_NAMES,
    "topic": _OLD_DISK_NAMES,
    "disk": _OLD_DISK_NAMES,
    "transport": {},
}
"""Old names, which are accepted with a notice."""

_TABLES = {scope: {option.name: option for option in options} for scope, options in SCOPES.items()}


WRITES = "repository-disk-max-write-async-cbs"
_ACK_FLAGS = ("ume_explicit_ack_only", "ume_use_ack_batching")
GROUPS = "ume_store_group"
"""The option that is set after all stores, because each store enlarges a group without an explicit size."""


def apply(scope: str, config: ConfigT, options: Mapping[str, Value]) -> ConfigT:
    """Return the configuration with options set, one after the other.

    Raises:
        OptionError: A value is not allowed, or a name is unknown; the message has the nearest known name.
            A documented option without effect is passed over, unless its value asks for what is not here.
        StoreListError, AddressError: A store is malformed.
    """
    for name in sorted(options, key=lambda name: name == GROUPS):
        option = _find(scope, name, options[name])
        if isinstance(option, Option):
            config = option.set(config, options[name])
    return config if scope != "source" else numbered(config)


def disk_options(options: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in options.items() if ALIASES["disk"].get(name, name) in _TABLES["disk"]}


def notices(scope: str, options: Mapping[str, Value]) -> tuple[str, ...]:
    """Return notices for the user about accepted options: old names, and those that are not followed."""
    found = []
    for name in options:
        option = _find(scope, name, options[name])
        if isinstance(option, Documented):
            found.append(option.notice(name))
            continue
        if name != option.name:
            found.append(f"option {name} is an old name: write {option.name}")
        if option.name == WRITES and str(options[name]) != "1":
            found.append(f"option {name} is not followed: there is one write at a time, for all waiting messages")
    return tuple(found)


def contradictions(scope: str, options: Mapping[str, Value], stores: Iterable[object] = ()) -> tuple[str, ...]:
    """Return notices about options of one source or receiver that contradict each other, and which of them counts.

    `stores` are those that the caller gives beside the options.
    """
    if scope == "receiver":
        flags = [name for name in options if name in _ACK_FLAGS and str(options[name]) == "1"]
        if len(flags) > 1:
            return (f"options {' and '.join(_ACK_FLAGS)} contradict each other: {flags[-1]}, the last one, counts",)
    off = scope == "source" and str(options.get("late_join", options.get("ume_late_join", 1))) == "0"
    if off and (any(stores) or any(str(options.get(name, "")) for name in ("ume_store", "ume_store_name"))):
        return ("option late_join 0 contradicts the stores: a source with stores always serves late receivers",)
    return ()


def _find(scope: str, name: str, value: Value = "") -> Option | Documented:
    """Return the option, or the row of one without effect. Raises OptionError for an unknown one or a refused value."""
    table = _TABLES[scope]
    option = table.get(ALIASES[scope].get(name, name))
    if option is not None:
        return option
    row = documented_option(scope, name)
    if row is None or not row.reason:
        raise OptionError(unknown(scope, name, table))
    if refused := row.refusal(name, value):
        raise OptionError(refused)
    return row


def parse_options(texts: Iterable[str]) -> dict[str, Value]:
    """Return the options of `name=value` texts. Raises OptionError."""
    options: dict[str, Value] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"'{text}' is not an option: write name=value")
        options[name] = value
    return options
