"""The configuration of a client as TOML: the options of its scopes, and sections of topics.

[context]
resolver_unicast_daemon = "127.0.0.1:15380"

[source]
ume_store = ["127.0.0.1:14567", "127.0.0.1:14568", "127.0.0.1:14569"]

[receiver]
use_late_join = true

[[topic]]
name = "orders"                     # or pattern = "^orders"
source = { ume_flight_size = 500 }
receiver = { ume_explicit_ack_only = true }
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from stablecast.config.client_configuration import ConfigLayer, TopicSection
from stablecast.config.findings import ConfigFindings, ConfigPlace
from stablecast.config.option_files import SCOPES, Setting
from stablecast.config.toml_file import read
from stablecast.config.topic_patterns import expression
from stablecast.core.protocol.settings import PatternType

TOPICS = "topic"
OF_TOPICS = ("source", "receiver", "wildcard_receiver")
"""The scopes whose options a section of topics may have."""


def load(path: Path) -> ConfigLayer:
    """Return the options of a file. Raises ConfigFileError, and OSError if it cannot be read."""
    return parse_layer(read(path), str(path))


def parse_layer(tables: Mapping[str, Any], where: str) -> ConfigLayer:
    """Return the options of tables. Raises ConfigFileError, which names the file as `where`."""
    found = _ClientToml(path=where)
    found.keys(tables, {*SCOPES, TOPICS}, ConfigPlace())
    settings = [setting for scope in SCOPES for setting in found.settings(tables, scope, scope)]
    listed = tables.get(TOPICS, [])
    if not isinstance(listed, list):
        found.problem(ConfigPlace(0, TOPICS), f"this must be a list of tables: write [[{TOPICS}]]")
        listed = []
    sections = [one for index, topic in enumerate(listed) for one in found.sections(topic, f"{TOPICS}.{index}")]
    found.check(where)
    return ConfigLayer(where, tuple(settings), tuple(sections))


@attrs.define
class _ClientToml(ConfigFindings):
    """The settings of tables, and the problems of all of them."""

    path: str = attrs.field(kw_only=True)

    def settings(self, tables: Mapping[str, Any], scope: str, where: str) -> Iterator[Setting]:
        for name, value in self.table(tables.get(scope, {}), where).items():
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, bool | int | str):
                    plain = str(int(one) if isinstance(one, bool) else one)
                    yield Setting(scope, name.lower(), plain, 0, self.path)
                else:
                    self.problem(ConfigPlace(0, f"{where}.{name}"), "write a text, a number, true, false or a list")

    def sections(self, table: Any, where: str) -> Iterator[TopicSection]:
        table = self.table(table, where)
        place = ConfigPlace(0, where)
        self.keys(table, {"name", "pattern", *OF_TOPICS}, place)
        name, pattern = str(table.get("name", "")), str(table.get("pattern", ""))
        if bool(name) == bool(pattern):
            self.problem(place, "this section needs name or pattern, and not both")
            return
        found = self.attempt(place, "", lambda: expression(pattern, PatternType.PCRE) if pattern else "")
        for scope in OF_TOPICS:
            if scope in table:
                yield TopicSection(scope, tuple(self.settings(table, scope, f"{where}.{scope}")), name, found)
