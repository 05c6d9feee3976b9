"""Problems and notices that are found while a configuration is read, with their places."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from stablecast.config.option import Option
from stablecast.core.errors import StablecastError
from stablecast.runtime import machine
from stablecast.runtime.interfaces import InterfaceError

ResultT = TypeVar("ResultT")


@attrs.frozen
class ConfigPlace:
    """A place in a configuration: the line, 0 if the form has none, the element or key, and its file.

    `path` is empty for the file that is read. It names another one, from which this file takes options.
    """

    line: int = 0
    element: str = ""
    path: str = ""

    def __str__(self) -> str:
        """Return `12: <option>` or `store.0.port`."""
        return f"{self.line}: <{self.element}>" if self.line else self.element


@attrs.frozen
class ConfigProblem:
    place: ConfigPlace
    text: str

    def where(self, path: str) -> str:
        """Return the file and the place; `path` is the file that is read."""
        return ":".join(part for part in (self.place.path or path, str(self.place)) if part)

    def told(self, path: str) -> str:
        return f"{self.where(path)}: {self.text}"


class ConfigFileError(StablecastError):
    """A configuration that cannot be used; `problems` has all problems, and the message has a line for each."""

    def __init__(self, path: str, problems: Sequence[ConfigProblem]) -> None:
        """Report the problems of the file `path`."""
        self.path = path
        self.problems = tuple(problems)
        super().__init__("\n".join(problem.told(path) for problem in problems))


MAX_BYTES = 4 << 20
"""Largest configuration file in bytes."""


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a configuration file. Raises ConfigFileError, and OSError if it cannot be read."""
    with machine.files.file(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        text = f"more than {MAX_BYTES} bytes: this is no configuration"
        raise ConfigFileError(str(path), [ConfigProblem(ConfigPlace(), text)])
    return data


def read_text(path: Path) -> str:
    """Return the text of a configuration file, with the newlines of Unix.

    Raises ConfigFileError, OSError, and UnicodeDecodeError if it is no UTF-8.
    """
    return machine.text_of(read_bytes(path))


@attrs.define
class ConfigFindings:
    """Problems, which make a configuration unusable, and notices, which do not, in the order found.

    `here` is false for a file that may be of another host: interfaces that this one lacks are notices then, and the
    file is `elsewhere`.
    """

    problems: list[ConfigProblem] = attrs.field(factory=list)
    notices: list[ConfigProblem] = attrs.field(factory=list)
    here: bool = True
    elsewhere: bool = False

    def problem(self, place: ConfigPlace, text: str) -> None:
        """Add a problem, which makes the configuration unusable, unless it was found before."""
        one = ConfigProblem(place, text)
        if one not in self.problems:
            self.problems.append(one)

    def notice(self, place: ConfigPlace, text: str) -> None:
        """Add a notice, which only informs the user."""
        self.notices.append(ConfigProblem(place, text))

    def check(self, path: str) -> None:
        """Raise ConfigFileError about the file `path` if there are problems."""
        if self.problems:
            raise ConfigFileError(path, self.problems)

    def attempt(self, place: ConfigPlace, otherwise: ResultT, make: Callable[[], ResultT]) -> ResultT:
        """Return the result of `make`; if it fails, add a problem and return `otherwise`."""
        try:
            return make()
        except InterfaceError as error:
            (self.problem if self.here else self.notice)(place, str(error))
            self.elsewhere = True
            return otherwise
        except StablecastError as error:
            self.problem(place, str(error))
            return otherwise

    def tried(self, place: ConfigPlace, check: Callable[[], Sequence[str]]) -> bool:
        """Add the notices that a check returns; return whether it did not fail, which adds a problem."""
        texts = self.attempt(place, None, check)
        for text in texts or ():
            self.notice(place, text)
        return texts is not None

    def number(self, text: str, low: int, high: int, place: ConfigPlace, what: str) -> int:
        """Return a whole number, whose thousands may be separated by commas; add a problem if it is none."""
        plain = text.replace(",", "").strip()
        if plain.isascii() and plain.isdecimal() and low <= int(plain) <= high:
            return int(plain)
        self.problem(place, f"{what} must be a whole number from {low} to {high}, not '{text}'")
        return low

    def keys(self, names: Collection[str], known: Collection[str], place: ConfigPlace) -> None:
        """Add a problem for each name that is not known."""
        for name in names:
            if name not in known:
                text = f"there is no '{name}' here: there are {', '.join(sorted(known))}"
                self.problem(place if place.element else ConfigPlace(0, name), text)

    def table(self, value: Any, where: str) -> Mapping[str, Any]:
        """Return a TOML table; add a problem if the value is none."""
        if isinstance(value, dict):
            return value
        self.problem(ConfigPlace(0, where), "this must be a table")
        return {}

    def tables(self, value: Any, where: str) -> Sequence[Any]:
        """Return a list of TOML tables; add a problem if the value is none."""
        if isinstance(value, list):
            return value
        self.problem(ConfigPlace(0, where), f"this must be a list of tables: write [[{where}]]")
        return []

    def configured(
        self, config: ResultT, options: Mapping[str, Option], name: str, value: Any, place: ConfigPlace
    ) -> ResultT:
        """Return a configuration with one option set; add a problem for an unknown name or a wrong value."""
        if name not in options:
            self.keys((name,), options, place)
            return config
        return self.attempt(place, config, lambda: options[name].set(config, value))
