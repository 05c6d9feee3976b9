"""Kinds of options: how each reads a value, and changes the field that it sets."""

import ipaddress
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.settings import AckMode, Notification, SourceConfig
from stablecast.runtime.address import MAX_PORT

Value = int | str | bool


class OptionError(StablecastError):
    """An option that does not exist, or a value that it cannot have; the message names both and the remedy."""


class OptionKind(Protocol):
    @property
    def allowed(self) -> str: ...

    def merge(self, name: str, before: Any, value: Value) -> object:
        """Return the new field. Raises OptionError for a value that is not allowed."""


def plain(value: Any) -> str:
    """Return a value as an option file has it: a flag is 0 or 1."""
    return str(int(value) if isinstance(value, bool) else value)


_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+")
"""A number as the documentation's examples write it: 75,000,000."""


@attrs.frozen
class NumberKind:
    """A whole number from `low` to `high`, in `unit`, or 0 if `or_zero`; the field is `factor` times the number."""

    low: int
    high: int
    unit: str = ""
    factor: int = 1
    or_zero: bool = False

    @property
    def allowed(self) -> str:
        return f"{'0, ' if self.or_zero else ''}{self.low}..{self.high}"

    def merge(self, name: str, before: object, value: Value) -> object:
        """Return the number in the unit of the field. Raises OptionError."""
        text = str(value) if isinstance(value, bool) else value  # Python counts True as 1; here it is no number.
        try:
            if isinstance(text, str) and _THOUSANDS.fullmatch(text.strip()):
                text = text.replace(",", "")
            number = int(text, 0) if isinstance(text, str) else operator.index(text)
        except (ValueError, TypeError):
            raise OptionError(f"option {name} wants a whole number, not '{value}'") from None
        if not self.low <= number <= self.high and not (self.or_zero and not number):
            raise OptionError(f"option {name} must lie between {self.low} and {self.high}, not {number}")
        return number * self.factor


@attrs.frozen
class ChoiceKind:
    """One of several words; of words with one meaning the chapters show the first."""

    words: tuple[tuple[str, object], ...]

    @property
    def allowed(self) -> str:
        """Return the words, separated by commas."""
        return ", ".join(word for word, _ in self.words)

    def merge(self, name: str, before: object, value: Value) -> Any:
        """Return the meaning of the word. Raises OptionError."""
        text = plain(value).lower()
        for word, meaning in self.words:
            if word == text:
                return meaning
        raise OptionError(f"option {name} must be one of {self.allowed}, not '{value}'")


def words(**meanings: object) -> ChoiceKind:
    """Return a choice of words; an underscore of a keyword is a hyphen of its word."""
    return ChoiceKind(tuple((word.replace("_", "-"), meaning) for word, meaning in meanings.items()))


def numbers(meanings: Sequence[object]) -> ChoiceKind:
    """Return a choice of 0, 1, 2 ..., in the order of the meanings."""
    return ChoiceKind(tuple((str(number), meaning) for number, meaning in enumerate(meanings)))


@attrs.frozen
class FlagKind:
    """A flag that is written as 0 or 1."""

    allowed: str = "0, 1"

    def merge(self, name: str, before: object, value: Value) -> object:
        """Return whether the flag is set. Raises OptionError."""
        return read_flag(name, value)


def read_flag(name: str, value: Value) -> bool:
    """Return whether this value sets a flag. Raises OptionError."""
    if str(value) not in ("0", "1", "True", "False"):
        raise OptionError(f"option {name} must be 0 or 1, not '{value}'")
    return str(value) in ("1", "True")


@attrs.frozen
class AddressKind:
    """An IPv4 address; the field is its text, or its number if `numeric`. `empty` is the address of an empty field.

    `group` means a group of multicast, or 0.0.0.0 for none.
    """

    empty: str = ""
    numeric: bool = False
    group: bool = False
    allowed: str = "a.b.c.d"

    def merge(self, name: str, before: object, value: Value) -> object:
        """Return the field. Raises OptionError."""
        try:
            address = ipaddress.IPv4Address(str(value))
        except ValueError:
            raise OptionError(f"option {name} wants an IPv4 address, not '{value}'") from None
        if self.group and not address.is_multicast and int(address):
            raise OptionError(f"option {name}: {value} is not a multicast group: 224.0.0.0 to 239.255.255.255")
        return int(address) if self.numeric else str(address) if str(address) != self.empty else ""


@attrs.frozen
class TextKind:
    """A text, which `make` turns into the field; `allowed` describes its form."""

    allowed: str
    make: Callable[[str], object] = str

    def merge(self, name: str, before: object, value: Value) -> object:
        """Return the field. Raises OptionError for an empty text, and what `make` raises."""
        if not isinstance(value, str) or not value:
            raise OptionError(f"option {name} wants a text, not {value!r}")
        return self.make(value)


@attrs.frozen
class AckModeKind:
    """A flag for one mode of acknowledgement: 1 selects the mode, 0 leaves it for immediate acknowledgement (P-345)."""

    mode: AckMode
    allowed: str = "0, 1"

    def merge(self, name: str, before: AckMode, value: Value) -> object:
        """Return the mode; of several flags the last one set to 1 wins. Raises OptionError."""
        if read_flag(name, value):
            return self.mode
        return AckMode.IMMEDIATE if before is self.mode else before


LEVELS = numbers([Notification.NONE, Notification.FRAGMENTS, Notification.MESSAGES, Notification.BOTH])
"""The events that an application gets: none, one for each fragment, one for each message, both."""


@attrs.frozen
class ConfirmationsKind:
    """The confirmation events that an application gets; with none, only a release that waits for them asks for any."""

    allowed: str = LEVELS.allowed

    def merge(self, name: str, before: SourceConfig, value: Value) -> object:
        """Return the whole configuration, because two fields change. Raises OptionError."""
        level = LEVELS.merge(name, before, value)
        asked = level is not Notification.NONE
        return attrs.evolve(before, confirmations=asked, confirmed_notification=level)


@attrs.frozen
class ListKind:
    """A list that grows each time it is set; `entry` reads one entry into the whole configuration."""

    entry: Callable[[Any, str], Any]
    allowed: str

    def merge(self, name: str, before: object, value: Value) -> object:
        """Return the configuration with the entries, which blanks or commas separate. Raises like `entry`."""
        for text in str(value).replace(",", " ").split():
            before = self.entry(before, text)
        return before


MAX_INT32 = 0x7FFF_FFFF
MAX_UINT32 = 0xFFFF_FFFF
MAX_COUNT = 2_147_483_647
MAX_SIZE = 1 << 62

SPAN = NumberKind(0, MAX_UINT32, "ms", MILLISECOND)
SPAN_AT_LEAST_1 = NumberKind(1, MAX_UINT32, "ms", MILLISECOND)
SECONDS = NumberKind(0, MAX_UINT32, "s", SECOND)
MESSAGES = NumberKind(1, MAX_COUNT, "messages")
BYTES = NumberKind(0, MAX_SIZE, "bytes")
PORT = NumberKind(0, MAX_PORT)
FLAG = FlagKind()
