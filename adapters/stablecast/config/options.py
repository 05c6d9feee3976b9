"""The option table: documented names on the outside, fields of the core's configuration on the inside.

The table says which field an option sets, in which unit it is written, and what it may be. Defaults stand in the
configuration classes of `stablecast.core.settings` (profile `safe`); `profiles` lists where others differ.
"""

import difflib
from collections.abc import Mapping
from typing import TypeVar

from stablecast.config.client_options import RECEIVER_OPTIONS, SOURCE_OPTIONS
from stablecast.config.kinds import OptionError, Value
from stablecast.config.option import Option
from stablecast.config.store_options import STORE_OPTIONS, TOPIC_OPTIONS
from stablecast.core.settings import ReceiverConfig, RepositoryConfig, SourceConfig, StoreConfig

__all__ = ["ALIASES", "SCOPES", "Config", "Option", "OptionError", "Value", "apply", "notices"]

Config = SourceConfig | ReceiverConfig | StoreConfig | RepositoryConfig
ConfigT = TypeVar("ConfigT", SourceConfig, ReceiverConfig, StoreConfig, RepositoryConfig)

SCOPES: Mapping[str, tuple[Option, ...]] = {
    "source": SOURCE_OPTIONS,
    "receiver": RECEIVER_OPTIONS,
    "store": (*STORE_OPTIONS, *(option.below("repository") for option in TOPIC_OPTIONS)),
    "topic": TOPIC_OPTIONS,
}
"""The options of each scope. Those of a topic, given for a store, are for the topics that have none of their own."""

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
    "store": {},
    "topic": {},
}
"""Old names; they are taken with a notice."""

_TABLES = {scope: {option.name: option for option in options} for scope, options in SCOPES.items()}


GROUPS = "ume_store_group"
"""Set after all stores: without it their number is the size of their group."""


def apply(scope: str, config: ConfigT, options: Mapping[str, Value]) -> ConfigT:
    """The configuration with options set, one after the other.

    Raises OptionError for a value that cannot be, and for a name that is none: then it tells the nearest. Raises
    StoreListError and AddressError for stores that are not written as they should be.
    """
    for name in sorted(options, key=lambda name: name == GROUPS):
        config = _find(scope, name).set(config, options[name])
    return config


def notices(scope: str, options: Mapping[str, Value]) -> tuple[str, ...]:
    """What the user should know of options that are taken: old names, and those without effect."""
    found = []
    for name in options:
        option = _find(scope, name)
        if name != option.name:
            found.append(f"option {name} is an old name: write {option.name}")
        if option.field is None:
            found.append(f"option {name} has {option.summary}")
    return tuple(found)


def _find(scope: str, name: str) -> Option:
    table = _TABLES[scope]
    option = table.get(ALIASES[scope].get(name, name))
    if option is None:
        nearest = difflib.get_close_matches(name, table, n=1, cutoff=0)
        raise OptionError(f"there is no {scope} option '{name}': did you mean '{nearest[0]}'?")
    return option
