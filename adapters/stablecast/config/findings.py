"""What is found while a configuration is read: problems, which stop it, and notices, which do not."""

from collections.abc import Callable
from typing import TypeVar

import attrs

from stablecast.config.daemon_outline import Place, Problem
from stablecast.core.errors import StablecastError

ResultT = TypeVar("ResultT")


@attrs.define
class Findings:
    """Both, in the order found."""

    problems: list[Problem] = attrs.field(factory=list)
    notices: list[Problem] = attrs.field(factory=list)

    def problem(self, place: Place, text: str) -> None:
        """Something is wrong."""
        self.problems.append(Problem(place, text))

    def notice(self, place: Place, text: str) -> None:
        """Something is worth knowing."""
        self.notices.append(Problem(place, text))

    def attempt(self, place: Place, otherwise: ResultT, make: Callable[[], ResultT]) -> ResultT:
        """What is made; if it cannot be, that is a problem."""
        try:
            return make()
        except StablecastError as error:
            self.problem(place, str(error))
            return otherwise

    def number(self, text: str, low: int, high: int, place: Place, what: str) -> int:
        """A whole number; thousands may be set apart by commas."""
        plain = text.replace(",", "").strip()
        if plain.isascii() and plain.isdecimal() and low <= int(plain) <= high:
            return int(plain)
        self.problem(place, f"{what} must be a whole number from {low} to {high}, not '{text}'")
        return low
