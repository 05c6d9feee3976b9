"""The TOML configuration of a store daemon, or the same as keyword arguments: the names of the XML file.

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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stablecast.config.daemon_outline import ConfigEntry, Given, Outline, StoreOutline, TopicOutline
from stablecast.config.findings import ConfigFileError, ConfigFindings, ConfigPlace, ConfigProblem, read_text
from stablecast.config.option_kinds import plain
from stablecast.config.schema import DAEMON_TEXTS

# fmt: off
STORE_KEYS = frozenset({
    "name", "port", "interface", "options", "context", "topic", "restore-last", "limits", "publishing-interval",
})
_TOPIC_KEYS = frozenset({"pattern", "type", "options", "receiver", "source", "restore-last"})
_SCOPES = {"options": "store", "context": "lbm-context", "receiver": "lbm-receiver", "source": "lbm-source"}
# fmt: on
DAEMON_KEYS = frozenset(DAEMON_TEXTS) | {"daemon-monitor", "tls"}


def read(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file. Raises ConfigFileError, and OSError if it cannot be read."""
    try:
        return tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigFileError(str(path), [ConfigProblem(ConfigPlace(), f"this is no TOML: {error}")]) from None


def load(path: Path) -> Outline:
    """Read a file. Raises ConfigFileError, and OSError if it cannot be read."""
    return outline(read(path), str(path))


def outline(tables: Mapping[str, Any], where: str = "configuration") -> Outline:
    """Return the outline of tables like `{"store": [{"name": "a", "port": 14567}]}`. Raises ConfigFileError."""
    found = _TomlFindings()
    found.keys(tables, {"daemon", "store"}, ConfigPlace())
    daemon = found.table(tables.get("daemon", {}), "daemon")
    found.keys(daemon, DAEMON_KEYS, ConfigPlace(0, "daemon"))
    entries = tuple((name, found.entry(value, f"daemon.{name}")) for name, value in daemon.items())
    stores = tuple(
        found.store(found.table(store, f"store.{index}"), f"store.{index}")
        for index, store in enumerate(found.tables(tables.get("store", []), "store"))
    )
    found.check(where)
    return Outline(where, entries, stores)


class _TomlFindings(ConfigFindings):
    """The outlines of tables, and the problems of all of them."""

    def store(self, table: Mapping[str, Any], where: str) -> StoreOutline:
        self.keys(table, STORE_KEYS, ConfigPlace(0, where))
        topics = tuple(
            self.topic(self.table(topic, f"{where}.topic.{index}"), f"{where}.topic.{index}")
            for index, topic in enumerate(self.tables(table.get("topic", []), f"{where}.topic"))
        )
        return StoreOutline(
            name=self.required(table, "name", where),
            port=self.required(table, "port", where),
            interface=str(table.get("interface", "")),
            options=self.options(table, where),
            topics=topics,
            place=ConfigPlace(0, where),
            restore_last=self.restore_last(table, where),
            limits=self.given("limits", table, where),
            publishing=self.publishing(table, where),
        )

    def topic(self, table: Mapping[str, Any], where: str) -> TopicOutline:
        self.keys(table, _TOPIC_KEYS, ConfigPlace(0, where))
        pattern = self.required(table, "pattern", where)
        kind = str(table.get("type", "direct"))
        return TopicOutline(
            pattern, kind, self.options(table, where), ConfigPlace(0, where), self.restore_last(table, where)
        )

    def options(self, table: Mapping[str, Any], where: str) -> tuple[Given, ...]:
        return tuple(given for key in _SCOPES for given in self.given(key, table, where))

    def given(self, key: str, table: Mapping[str, Any], where: str) -> tuple[Given, ...]:
        return tuple(
            Given(_SCOPES.get(key, key), name, plain(value), ConfigPlace(0, f"{where}.{key}.{name}"))
            for name, value in self.table(table.get(key, {}), f"{where}.{key}").items()
        )

    def restore_last(self, table: Mapping[str, Any], where: str) -> ConfigEntry | None:
        hours = table.get("restore-last")
        return (
            None if hours is None else ConfigEntry("", ConfigPlace(0, f"{where}.restore-last"), {"value": plain(hours)})
        )

    def publishing(self, table: Mapping[str, Any], where: str) -> ConfigEntry | None:
        if "publishing-interval" not in table:
            return None
        where = f"{where}.publishing-interval"
        groups = self.table(table["publishing-interval"], where)
        return ConfigEntry("", ConfigPlace(0, where), {name: plain(value) for name, value in groups.items()})

    def entry(self, value: Any, where: str) -> ConfigEntry:
        if not isinstance(value, dict):
            return ConfigEntry(plain(value), ConfigPlace(0, where))
        attributes = {name: plain(given) for name, given in value.items()}
        text = attributes.pop("path", attributes.pop("address", ""))
        return ConfigEntry(text, ConfigPlace(0, where), attributes)

    def required(self, table: Mapping[str, Any], key: str, where: str) -> str:
        if key not in table:
            self.problem(ConfigPlace(0, where), f"{key} is missing")
        return str(table.get(key, ""))
