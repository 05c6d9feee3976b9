"""What a rule over one trace is: what it wants to be asked about, and what is to be asked."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

Ask = Callable[[Any], str | None]
"""Takes an input, an effect, a message or an event; returns what is wrong with it."""


At = Callable[[int, int], str | None]
"""Takes a record's number and its time in ns, before what the record is about; returns what is wrong by then."""


class Rule(Protocol):
    """One rule and what it remembers."""

    @property
    def name(self) -> str:
        """What violations call it."""

    @property
    def hears(self) -> Mapping[type, Ask]:
        """By class: inputs it is about, or messages that arrive; it is not asked about others."""

    @property
    def tells(self) -> Mapping[type, Ask]:
        """By class: effects it is about, or messages that are sent and events that are told."""


def at_of(rule: Rule) -> At | None:
    """What a rule that is about time, too, is asked at each record; such a rule has a method `at`."""
    at: At | None = getattr(rule, "at", None)
    return at
