"""A store daemon's configuration as it is written, whatever the file: names and texts, each with its place.

XML and TOML files and keyword arguments are all read into this; `building` makes of it what a daemon runs by.
"""

from collections.abc import Mapping, Sequence

import attrs

from stablecast.core.errors import StablecastError


@attrs.frozen
class Place:
    """Where something stands: the line, 0 if the form has none, and the element or key."""

    line: int = 0
    element: str = ""

    def __str__(self) -> str:
        """`12: <option>` or `store.0.port`."""
        return f"{self.line}: <{self.element}>" if self.line else self.element


@attrs.frozen
class Problem:
    """Something that is wrong in a configuration."""

    place: Place
    text: str


class ConfigFileError(StablecastError):
    """A configuration that cannot be used; `problems` are all that were found, the message tells each."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        """What is wrong with the file `path`."""
        self.path = path
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{path}{_at(problem.place)}: {problem.text}" for problem in problems))


def _at(place: Place) -> str:
    """Behind the name of a file; nothing if it is all of it."""
    return f":{place}" if place != Place() else ""


@attrs.frozen
class Given:
    """One option: `scope` is store, lbm-context, lbm-receiver or lbm-source."""

    scope: str
    name: str
    value: str
    place: Place


@attrs.frozen
class Text:
    """An element with a text and attributes."""

    value: str
    place: Place
    attributes: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class TopicOutline:
    """The topics of a pattern."""

    pattern: str
    kind: str
    options: tuple[Given, ...]
    place: Place
    restore_last: Text | None = None


@attrs.frozen
class StoreOutline:
    """A store. `limits`: by name, what it takes at most; `publishing`: how often, by group of statistics."""

    name: str
    port: str
    interface: str
    options: tuple[Given, ...]
    topics: tuple[TopicOutline, ...]
    place: Place
    restore_last: Text | None = None
    limits: tuple[Given, ...] = ()
    publishing: Text | None = None


@attrs.frozen
class Outline:
    """A whole file.

    `daemon`: its entries in their order, by name; one that is repeated is there twice (P-855). `log_required`: whether
    it must say where the log goes (P-802).
    """

    path: str
    daemon: tuple[tuple[str, Text], ...]
    stores: tuple[StoreOutline, ...]
    log_required: bool = False
