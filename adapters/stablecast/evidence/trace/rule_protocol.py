"""The interface between a rule over one trace and the watch that feeds it."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

Ask = Callable[[Any], str | None]
"""Judge an input, an effect, a message or an event; return a sentence if it breaks the rule."""

At = Callable[[int, int], str | None]
"""Judge the time: take a record's number and clock (ns) before the record itself; return a sentence or None."""

RuleHandlers = tuple[Mapping[type, Ask], Mapping[type, Ask]]
"""Handlers by class: of inputs and arriving messages; of effects, sent messages and events."""


class EndpointRule(Protocol):
    """A rule over one trace, with the state that it keeps from record to record."""

    @property
    def name(self) -> str:
        """Return the id of the rule in the catalogue."""

    def handlers(self) -> RuleHandlers:
        """Return the handlers by class; the rule is not asked about other classes."""


def at_of(rule: EndpointRule) -> At | None:
    """Return the method `at` of a rule that judges time too, else None."""
    at: At | None = getattr(rule, "at", None)
    return at
