"""The options of a wildcard receiver: those of its pattern, and those that are refused or have no effect here."""

from collections.abc import Mapping

from stablecast.config.documented_options import documented
from stablecast.config.option_kinds import OptionError, Value
from stablecast.config.resolution_options import own
from stablecast.transports.resolution.udp.settings import PatternOptions

SCOPE = "wildcard_receiver"

CALLBACKS = {"receiver_create_callback": "on_create", "receiver_delete_callback": "on_delete"}
"""Options whose values are functions, and the arguments of `Context.receiver` instead."""


def wildcard_options(defaults: PatternOptions, options: Mapping[str, Value]) -> tuple[PatternOptions, dict[str, Value]]:
    """Return the options of a pattern, and the options that its receivers of topics have.

    Raises:
        OptionError: A value is not allowed, or the option cannot be followed; the message has the reason.
    """
    if str(options.get("pattern_type", "")).lower() == "appcb":
        raise OptionError("pattern_type appcb is refused: no other context can evaluate a function; write pcre")
    found, others = own(defaults, options)
    for name in [name for name in others if (SCOPE, name) in documented()]:
        _check(name, others.pop(name))
    return found, others


def wildcard_notices(options: Mapping[str, Value]) -> tuple[str, ...]:
    """Return notices for the user about accepted options of wildcard receivers: without effect, or deprecated."""
    rows = ((name, documented().get((SCOPE, name))) for name in options)
    found = [row.notice(name) for name, row in rows if row is not None and row.reason]
    if str(options.get("pattern_type", "")).lower() == "regex":
        found.append("pattern_type regex is deprecated, and is read like pcre: write pcre")
    return tuple(found)


def _check(name: str, value: Value) -> None:
    if name in CALLBACKS:
        raise OptionError(f"{name} is a function: pass it as {CALLBACKS[name]} to Context.receiver(pattern=...)")
    if refused := documented()[SCOPE, name].refusal(name, value):
        raise OptionError(refused)
