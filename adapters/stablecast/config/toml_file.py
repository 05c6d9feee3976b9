"""The same configuration as TOML, or as keyword arguments: the names of the XML file, without its brackets.

[daemon]
log = { path = "store.log", frequency = "daily", size = 10 }   # or just "store.log"
pidfile = "store.pid"
web-monitor = "127.0.0.1:15304"
tls = "certificates"

[[store]]
name = "orders"
port = 14567
interface = "10.29.3.16/25"
options = { disk-cache-directory = "cache", allow-proxy-source = 1 }
context = { resolver_unicast_daemon = "10.29.3.41:15380" }

[[store.topic]]
pattern = "^orders"
type = "PCRE"
options = { repository-type = "disk" }
receiver = { retransmit_request_interval = 500 }
source = { ume_flight_size = 1000 }
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stablecast.config.daemon_outline import (
    ConfigFileError,
    Given,
    Outline,
    Place,
    Problem,
    StoreOutline,
    Text,
    TopicOutline,
)

STORE_KEYS = {
    "name",
    "port",
    "interface",
    "options",
    "context",
    "topic",
    "restore-last",
    "limits",
    "publishing-interval",
}
_TOPIC_KEYS = {"pattern", "type", "options", "receiver", "source", "restore-last"}
_SCOPES = {"options": "store", "context": "lbm-context", "receiver": "lbm-receiver", "source": "lbm-source"}
DAEMON_KEYS = {
    "log",
    "pidfile",
    "uid",
    "gid",
    "daemon-monitor",
    "lbm-config",
    "lbm-license-file",
    "web-monitor",
    "lbm-password-file",
    "tls",
}


def load(path: Path) -> Outline:
    """Read a file. Raises ConfigFileError, and OSError if it cannot be read."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigFileError(str(path), [Problem(Place(), f"this is no TOML: {error}")]) from None
    return outline(tables, str(path))


def outline(tables: Mapping[str, Any], where: str = "configuration") -> Outline:
    """What these tables say, for instance `{"store": [{"name": "a", "port": 14567}]}`. Raises ConfigFileError."""
    reading = _Reading()
    reading.keys(tables, {"daemon", "store"}, "")
    daemon = reading.table(tables.get("daemon", {}), "daemon")
    reading.keys(daemon, DAEMON_KEYS, "daemon")
    entries = tuple((name, reading.text(value, f"daemon.{name}")) for name, value in daemon.items())
    stores = tuple(
        reading.store(reading.table(store, f"store.{index}"), f"store.{index}")
        for index, store in enumerate(reading.tables(tables.get("store", []), "store"))
    )
    if reading.problems:
        raise ConfigFileError(where, reading.problems)
    return Outline(where, entries, stores)


class _Reading:
    """Collects what is wrong instead of stopping at the first of it."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def store(self, table: Mapping[str, Any], where: str) -> StoreOutline:
        self.keys(table, STORE_KEYS, where)
        topics = tuple(
            self.topic(self.table(topic, f"{where}.topic.{index}"), f"{where}.topic.{index}")
            for index, topic in enumerate(self.tables(table.get("topic", []), f"{where}.topic"))
        )
        return StoreOutline(
            self.required(table, "name", where),
            self.required(table, "port", where),
            str(table.get("interface", "")),
            self.options(table, where),
            topics,
            Place(0, where),
            self.restore_last(table, where),
            self.given("limits", table, where),
            self.publishing(table, where),
        )

    def topic(self, table: Mapping[str, Any], where: str) -> TopicOutline:
        self.keys(table, _TOPIC_KEYS, where)
        pattern = self.required(table, "pattern", where)
        kind = str(table.get("type", "direct"))
        return TopicOutline(pattern, kind, self.options(table, where), Place(0, where), self.restore_last(table, where))

    def options(self, table: Mapping[str, Any], where: str) -> tuple[Given, ...]:
        return tuple(given for key in _SCOPES for given in self.given(key, table, where))

    def given(self, key: str, table: Mapping[str, Any], where: str) -> tuple[Given, ...]:
        return tuple(
            Given(_SCOPES.get(key, key), name, _plain(value), Place(0, f"{where}.{key}.{name}"))
            for name, value in self.table(table.get(key, {}), f"{where}.{key}").items()
        )

    def restore_last(self, table: Mapping[str, Any], where: str) -> Text | None:
        hours = table.get("restore-last")
        return None if hours is None else Text("", Place(0, f"{where}.restore-last"), {"value": _plain(hours)})

    def publishing(self, table: Mapping[str, Any], where: str) -> Text | None:
        if "publishing-interval" not in table:
            return None
        where = f"{where}.publishing-interval"
        said = self.table(table["publishing-interval"], where)
        return Text("", Place(0, where), {name: _plain(value) for name, value in said.items()})

    def text(self, value: Any, where: str) -> Text:
        if not isinstance(value, dict):
            return Text(_plain(value), Place(0, where))
        attributes = {name: _plain(given) for name, given in value.items()}
        text = attributes.pop("path", attributes.pop("address", ""))
        return Text(text, Place(0, where), attributes)

    def required(self, table: Mapping[str, Any], key: str, where: str) -> str:
        if key not in table:
            self.problems.append(Problem(Place(0, where), f"{key} is missing"))
        return str(table.get(key, ""))

    def table(self, value: Any, where: str) -> Mapping[str, Any]:
        if isinstance(value, dict):
            return value
        self.problems.append(Problem(Place(0, where), "this must be a table"))
        return {}

    def tables(self, value: Any, where: str) -> Sequence[Any]:
        if isinstance(value, list):
            return value
        self.problems.append(Problem(Place(0, where), f"this must be a list of tables: write [[{where}]]"))
        return []

    def keys(self, table: Mapping[str, Any], known: set[str], where: str) -> None:
        for key in table:
            if key not in known:
                text = f"there is no '{key}' here: there are {', '.join(sorted(known))}"
                self.problems.append(Problem(Place(0, where or key), text))


def _plain(value: Any) -> str:
    return str(int(value) if isinstance(value, bool) else value)
