"""The documented XML form of a service's configuration; `config` has the options with their names."""

from pathlib import Path

from stablecast.config.findings import ConfigFindings
from stablecast.config.option_files import Setting
from stablecast.config.xml_reader import Element, NamedSchema, attributes_of, place_of, text_of
from stablecast.config.xml_reader import load as load_file
from stablecast.resolver.srs.config import OPTIONS, SrsConfig, noticed, with_log, with_option
from stablecast.runtime import machine

XSD = machine.installed_file(Path(__file__).with_name("um-srs.xsd")).decode()
"""The schema of the file, which `--dump-xsd` prints."""

_TABLES = "tables grow as needed"
UNUSED = {
    "context-name-state-lifetime": "services know no names of stores",
    "otidmap": _TABLES,
    "topicmap": _TABLES,
    "routemap": _TABLES,
    "namemap": _TABLES,
    "clientactor": "one thread serves all clients",
}
"""Elements that are accepted without effect, each with the reason for its notice."""

_SECTIONS = {
    "daemon/pid-file": "daemon",
    "srs/*": "srs",
    "debug-monitor/*": "daemon.debug-monitor",
    "daemon-monitor/monitor-format": "daemon.monitor",
    "daemon-monitor/ping-interval": "daemon.monitor",
    "daemon-monitor/publish-connection-events": "daemon.monitor",
    "daemon-monitor/remote-snapshot-request": "daemon.monitor",
    "daemon-monitor/remote-config-changes-request": "daemon.monitor",
    "daemon-monitor/publishing-interval/*": "daemon.monitor.publishing-intervals",
}
_TRUTH = {"true": "1", "false": "0"}


def load_xml(path: Path) -> SrsConfig:
    """Read an XML file.

    Raises:
        ConfigFileError: It is no XML, does not follow the schema, or has a wrong value.
        OSError: It cannot be read.
    """
    root = load_file(path, NamedSchema(XSD))
    found, config = ConfigFindings(), SrsConfig()
    for element in root.iterfind("daemon/log"):
        values = {**attributes_of(element), **({"name": text_of(element)} if text_of(element) else {})}
        config = with_log(config, values, place_of(element), found)
    for query, section in _SECTIONS.items():
        for element in root.iterfind(query):
            name, value = str(element.tag), element.get("allow", text_of(element))
            if name in UNUSED:
                found.notice(place_of(element), f"{name} has no effect: {UNUSED[name]}")
                continue
            of = section
            if name == "default":
                name, of = "publishing-interval", "daemon.monitor"
            config = found.configured(config, OPTIONS[of], name, _TRUTH.get(value, value), place_of(element))
    for element in root.iterfind("debug-monitor"):
        for name, value in attributes_of(element).items():
            options = OPTIONS["daemon.debug-monitor"]
            config = found.configured(config, options, name, _TRUTH.get(value, value), place_of(element))
    config = _publishing(root, config, found)
    found.check(str(path))
    return noticed(config, found)


def _publishing(root: Element, config: SrsConfig, found: ConfigFindings) -> SrsConfig:
    """Return the configuration with the topic of the statistics, and the options of the context that publishes."""
    for element in root.iterfind("daemon-monitor[@topic]"):
        topic = element.get("topic", "")
        config = found.configured(config, OPTIONS["daemon.monitor"], "topic", topic, place_of(element))
    for element in root.iterfind("daemon-monitor/lbm-attributes/option"):
        line = element.sourceline or 0
        setting = Setting(element.get("scope", ""), element.get("name", "").lower(), element.get("value", ""), line)
        config = with_option(config, setting, place_of(element), found)
    return config
