"""The options of a wildcard receiver: those of its pattern, and those that are refused or have no effect here."""

from collections.abc import Mapping

from stablecast.config.option_kinds import OptionError, Value, read_flag
from stablecast.config.resolution_options import PATTERN, own
from stablecast.transports.resolution.udp.settings import PatternOptions

CALLBACKS = {"receiver_create_callback": "on_create", "receiver_delete_callback": "on_delete"}
"""Options whose values are functions, and the arguments of `Context.receiver` instead."""

UNUSED = {
    "monitor_interval": "there are no samples of pattern interest: `stablecast top` shows the receivers at the stores",
}
"""Options that are accepted without effect, with the reason."""

HOT_FAILOVER = "hf_receiver"
OLD_INTERVAL = "resolver_query_max_interval"


WILDCARD_OPTIONS = frozenset({*(option.name for option in PATTERN), *CALLBACKS, *UNUSED, HOT_FAILOVER, OLD_INTERVAL})
"""All documented options of the scope wildcard_receiver."""


def wildcard_options(defaults: PatternOptions, options: Mapping[str, Value]) -> tuple[PatternOptions, dict[str, Value]]:
    """Return the options of a pattern, and the options that its receivers of topics have.

    Raises:
        OptionError: A value is not allowed, or the option cannot be followed; the message has the reason.
    """
    if str(options.get("pattern_type", "")).lower() == "appcb":
        raise OptionError("pattern_type appcb is refused: no other context can evaluate a function; write pcre")
    found, others = own(defaults, options)
    for name in WILDCARD_OPTIONS & set(others):
        _check(name, others.pop(name))
    return found, others


def wildcard_notices(options: Mapping[str, Value]) -> tuple[str, ...]:
    """Return notices for the user about accepted options of wildcard receivers: without effect, or deprecated."""
    found = [f"{name} has no effect: {UNUSED[name]}" for name in options if name in UNUSED]
    if str(options.get("pattern_type", "")).lower() == "regex":
        found.append("pattern_type regex is deprecated, and is read like pcre: write pcre")
    return tuple(found)


def _check(name: str, value: Value) -> None:
    if name in CALLBACKS:
        raise OptionError(f"{name} is a function: pass it as {CALLBACKS[name]} to Context.receiver(pattern=...)")
    if name == OLD_INTERVAL:
        raise OptionError(f"{name} was replaced long ago: set resolver_query_maximum_interval")
    if name == HOT_FAILOVER and read_flag(name, value):
        raise OptionError(
            f"{name} 1 is not supported: a wildcard receiver delivers the messages of each source; "
            "make a hot-failover receiver of each topic"
        )
