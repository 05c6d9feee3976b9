"""Each option that a client follows, with its default and another value that it may have."""

from typing import Any

import attrs

from stablecast.config import option_kinds as kinds
from stablecast.config.context_options import CONTEXT_OPTIONS, ContextConfig
from stablecast.config.option import Option
from stablecast.config.options import ALIASES, SCOPES
from stablecast.config.profiles import Profile
from stablecast.config.resolution_options import CONTEXT, PATTERN, RECEIVER, SOURCE, ResolutionSettings
from stablecast.config.transport_options import TRANSPORT_OPTIONS, TransportConfig
from stablecast.runtime.multicast import MulticastSettings
from stablecast.transports.resolution.udp.settings import AdvertiseOptions, PatternOptions, QueryOptions
from tests.support.option_values import show

_DEFAULTS: list[tuple[tuple[str, ...], tuple[Option, ...], Any]] = [
    (("context", "source"), SCOPES["source"], Profile().source),
    (("context", "receiver"), SCOPES["receiver"], Profile().receiver),
    (("context", "source", "receiver"), TRANSPORT_OPTIONS, TransportConfig()),
    (("context", "source"), SOURCE, AdvertiseOptions()),
    (("context", "receiver"), RECEIVER, QueryOptions()),
    (("context", "wildcard_receiver"), PATTERN, PatternOptions()),
    (("context",), CONTEXT, attrs.evolve(ResolutionSettings(), multicast=MulticastSettings())),
    (("context",), CONTEXT_OPTIONS, ContextConfig()),
]
_SPECIAL = {
    "resolver_multicast_address": ("0.0.0.0", "239.1.2.3"),
    "resolver_multicast_outgoing_address": ("0.0.0.0", "239.1.2.3"),
    "resolver_multicast_port": ("12965", "12966"),
    "resolver_multicast_outgoing_port": ("12965", "12966"),
    "resolver_unicast_address": ("0.0.0.0", "10.1.2.3"),
    "resolver_unicast_destination_port": ("15380", "15381"),
    "resolver_unicast_port": ("0", "15381"),
    "ume_store": ("", "10.1.2.3:14567"),
    "ume_store_name": ("", "NAMED"),
    "ume_store_group": ("", "0:3"),
    "resolver_unicast_daemon": ("", "10.1.2.3:15380"),
    "resolver_service": ("", "10.1.2.3:27000"),
}
"""Options without a field of their own: their default, and another value."""


def values_of(scope: str, name: str) -> tuple[str, str]:
    """Return the default of an option that is followed, as a file writes it, and another value."""
    known = ALIASES.get(scope, {}).get(name, name)
    if known in _SPECIAL:
        return _SPECIAL[known]
    for scopes, options, config in _DEFAULTS:
        for option in options if scope in scopes else ():
            if option.name == known:
                default = show(option, config)
                default = "0" if default == "unset" else default
                return default or "0.0.0.0", _another(option.kind, default)
    raise KeyError((scope, name))


def _another(kind: kinds.OptionKind, default: str) -> str:
    if isinstance(kind, kinds.NumberKind):
        return str(next(number for number in (kind.high // 2, kind.high, kind.low) if str(number) != default))
    if isinstance(kind, kinds.AddressKind):
        return "239.1.2.3"
    if isinstance(kind, kinds.TextKind):
        return "127.0.0.1"
    return next(word for word in reversed(kind.allowed.split(", ")) if word != default)
