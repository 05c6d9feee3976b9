"""The effect of each option of a client: followed, without effect for a reason, or refused for a reason.

No option of a client's configuration is silent. Options that are followed stand in the tables of their modules, and
`documented.txt` has the reasons of all others.
"""

from enum import Enum
from functools import cache

import attrs

from stablecast.config.context_options import CONTEXT_OPTIONS
from stablecast.config.documented_options import documented, documented_option, unknown
from stablecast.config.option_kinds import Value
from stablecast.config.options import ALIASES, SCOPES
from stablecast.config.resolution_options import ALL_CONTEXT_NAMES, PATTERN
from stablecast.config.resolution_options import RECEIVER as RESOLVED_RECEIVER
from stablecast.config.resolution_options import SOURCE as RESOLVED_SOURCE
from stablecast.config.transport_options import TRANSPORT_OPTIONS


class Effect(Enum):
    FOLLOWED = "in effect"
    UNHEEDED = "without effect"
    REFUSED = "refused"


@attrs.frozen
class OptionEffect:
    """The effect of an option; `reason` is for people, and empty for an option that is followed."""

    effect: Effect
    reason: str = ""


@cache
def _followed(scope: str) -> frozenset[str]:
    """Return the names that an endpoint or a context follows in a scope."""
    transport = {option.name for option in TRANSPORT_OPTIONS}
    match scope:
        case "context":
            both = _of_endpoint("source") | _of_endpoint("receiver")
            shared = {name for of_scope, name in documented() if of_scope == "context" and name in both}
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


def effect_of(scope: str, name: str, value: Value = "") -> OptionEffect:
    row = documented_option(scope, name)
    if row is not None and row.reason:
        refused = row.refusal(name, value)
        return OptionEffect(Effect.REFUSED, refused) if refused else OptionEffect(Effect.UNHEEDED, row.reason)
    if name in _followed(scope):
        return OptionEffect(Effect.FOLLOWED)
    return OptionEffect(Effect.REFUSED, unknown(scope, name, _followed(scope)))
