"""Kinds of options: how a value is read, what it makes of the field it is for, and how the field is shown."""

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.protocol.messages import UNSET
from stablecast.core.protocol.settings import AckMode, Notification, SourceConfig

Value = int | str | bool


class OptionError(StablecastError):
    """An option that does not exist or a value it cannot take; the message names both and the remedy."""


class Kind(Protocol):
    """What the options of a kind have in common."""

    @property
    def type(self) -> str:
        """The word for it."""

    @property
    def unit(self) -> str:
        """In which a value is written, if in one."""

    @property
    def allowed(self) -> str:
        """The values that it takes, for people."""

    def merge(self, name: str, before: Any, value: Value) -> object:
        """What the field becomes. Raises OptionError for a value that cannot be."""

    def show(self, field: Any) -> str:
        """The value that gives this field."""


_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+")
"""A number as the documentation's examples write it: 75,000,000."""


@attrs.frozen
class Whole:
    """A whole number from `low` to `high`, in `unit`; the field is `factor` times that."""

    low: int
    high: int
    unit: str = ""
    factor: int = 1
    type: str = "number"

    @property
    def allowed(self) -> str:
        """The range."""
        return f"{self.low}..{self.high}"

    def merge(self, name: str, before: object, value: Value) -> object:
        """The number, in the unit of the field."""
        try:
            text = value.replace(",", "") if isinstance(value, str) and _THOUSANDS.fullmatch(value.strip()) else value
            number = int(text, 0) if isinstance(text, str) else operator.index(text)
        except (ValueError, TypeError):
            raise OptionError(f"option {name} wants a whole number, not '{value}'") from None
        if not self.low <= number <= self.high:
            raise OptionError(f"option {name} must lie between {self.low} and {self.high}, not {number}")
        return number * self.factor

    def show(self, field: int) -> str:
        """The number; a wish that was not uttered has none."""
        return "unset" if field == UNSET else str(field // self.factor)


@attrs.frozen
class Choice:
    """One of several words; of those that mean the same the first is the one that is shown."""

    words: tuple[tuple[str, object], ...]
    type: str = "choice"
    unit: str = ""

    @property
    def allowed(self) -> str:
        """The words."""
        return ", ".join(word for word, _ in self.words)

    def merge(self, name: str, before: object, value: Value) -> Any:
        """What the word means."""
        text = str(int(value) if isinstance(value, bool) else value).lower()
        for word, meaning in self.words:
            if word == text:
                return meaning
        raise OptionError(f"option {name} must be one of {self.allowed}, not '{value}'")

    def show(self, field: object) -> str:
        """The first word with this meaning."""
        return next(word for word, meaning in self.words if meaning == field)


def words(**meanings: object) -> Choice:
    """A choice of words with hyphens, which are underscores here."""
    return Choice(tuple((word.replace("_", "-"), meaning) for word, meaning in meanings.items()))


def numbers(meanings: Sequence[object]) -> Choice:
    """A choice of 0, 1, 2 ..., in the order of the meanings."""
    return Choice(tuple((str(number), meaning) for number, meaning in enumerate(meanings)))


@attrs.frozen
class Flag:
    """0 or 1."""

    type: str = "flag"
    unit: str = ""
    allowed: str = "0, 1"

    def merge(self, name: str, before: object, value: Value) -> object:
        """Whether it is set."""
        return read_flag(name, value)

    def show(self, field: bool) -> str:
        """0 or 1."""
        return str(int(field))


def read_flag(name: str, value: Value) -> bool:
    """Whether a flag is set by this value. Raises OptionError."""
    if str(value) not in ("0", "1", "True", "False"):
        raise OptionError(f"option {name} must be 0 or 1, not '{value}'")
    return str(value) in ("1", "True")


@attrs.frozen
class AckSwitch:
    """Batched or explicit acknowledgement: to switch one on ends the other, to switch it off ends it alone (P-345)."""

    mode: AckMode
    type: str = "flag"
    unit: str = ""
    allowed: str = "0, 1"

    def merge(self, name: str, before: AckMode, value: Value) -> object:
        """The mode, which the last option set to 1 decides."""
        if read_flag(name, value):
            return self.mode
        return AckMode.IMMEDIATE if before is self.mode else before

    def show(self, field: AckMode) -> str:
        """Whether it is this one."""
        return str(int(field is self.mode))


LEVELS = numbers([Notification.NONE, Notification.FRAGMENTS, Notification.MESSAGES, Notification.BOTH])
"""Of what an application hears: nothing, fragments, whole messages, both."""


@attrs.frozen
class Confirmations:
    """Of which confirmations the application hears: of none, then they are not asked for either."""

    type: str = "choice"
    unit: str = ""
    allowed: str = LEVELS.allowed

    def merge(self, name: str, before: SourceConfig, value: Value) -> object:
        """The whole configuration: two fields change."""
        level = LEVELS.merge(name, before, value)
        asked = level is not Notification.NONE
        return attrs.evolve(before, confirmations=asked, confirmed_notification=level)

    def show(self, field: SourceConfig) -> str:
        """The level."""
        return LEVELS.show(field.confirmed_notification if field.confirmations else Notification.NONE)


@attrs.frozen
class Entries:
    """A list: each time it is set, entries are appended; `entry` reads one into the whole configuration."""

    entry: Callable[[Any, str], Any]
    count: Callable[[Any], int]
    allowed: str
    type: str = "list"
    unit: str = ""

    def merge(self, name: str, before: object, value: Value) -> object:
        """The configuration with the entries, which blanks or commas separate. Raises like `entry`."""
        for text in str(value).replace(",", " ").split():
            before = self.entry(before, text)
        return before

    def show(self, field: object) -> str:
        """Whether there are some: their text is not kept."""
        return f"{self.count(field)} entries" if self.count(field) else ""
