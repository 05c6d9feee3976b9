"""A store daemon's configuration before it is checked, from any form of file: names and texts with their places.

XML files, TOML files and keyword arguments are read into an `Outline`; `plan_assembly` makes the plan of a daemon of
it.
"""

from collections.abc import Mapping

import attrs

from stablecast.config.findings import ConfigPlace


@attrs.frozen
class Given:
    """One option: `scope` is store, lbm-context, lbm-receiver or lbm-source."""

    scope: str
    name: str
    value: str
    place: ConfigPlace


@attrs.frozen
class ConfigEntry:
    """An element with a text and attributes."""

    value: str
    place: ConfigPlace
    attributes: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class TopicOutline:
    pattern: str
    kind: str
    options: tuple[Given, ...]
    place: ConfigPlace
    restore_last: ConfigEntry | None = None


@attrs.frozen
class StoreOutline:
    """A store; `limits` are by name, and `publishing` has the interval of each group of statistics."""

    name: str
    port: str
    interface: str
    options: tuple[Given, ...]
    topics: tuple[TopicOutline, ...]
    place: ConfigPlace
    restore_last: ConfigEntry | None = None
    limits: tuple[Given, ...] = ()
    publishing: ConfigEntry | None = None


@attrs.frozen
class Outline:
    """A whole file.

    Attributes:
        daemon: Entries of the daemon by name, in their order; a repeated entry is there twice (P-855).
        log_required: Whether the file must name the log (P-802).
    """

    path: str
    daemon: tuple[tuple[str, ConfigEntry], ...]
    stores: tuple[StoreOutline, ...]
    log_required: bool = False
