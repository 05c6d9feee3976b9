"""Store configurations in TOML and as keyword arguments: the same outline as from XML."""

from pathlib import Path

import pytest

from stablecast.config import xml_file
from stablecast.config.findings import MAX_BYTES, ConfigFileError
from stablecast.config.option_files import read
from stablecast.config.plan_assembly import build
from stablecast.config.toml_file import DAEMON_KEYS, STORE_KEYS, load, outline
from tests.adapters.config.test_xml_file import GUIDE

SAME = """
[daemon]
log = "stored.log"
pidfile = "stored.pid"
web-monitor = "*:15304"

[[store]]
name = "test-store"
port = 14567
options = { disk-cache-directory = "cache", disk-state-directory = "state", context-name = "remote-store" }

[[store.topic]]
pattern = "test*"
type = "PCRE"
[store.topic.options]
repository-type = "disk"
repository-size-threshold = 104_857_600
repository-size-limit = 209_715_200
repository-disk-file-size-limit = 1_073_741_824
source-activity-timeout = 120_000
receiver-activity-timeout = 120_000
retransmission-request-forwarding = false
"""


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "#" * (MAX_BYTES + 1)])
def test_no_file_takes_memory_or_a_stack_out_of_proportion(tmp_path: Path, text: str) -> None:
    path = tmp_path / "f.toml"
    path.write_text(text)
    with pytest.raises(ConfigFileError):
        load(path)
    option_file = tmp_path / "f.cfg"
    option_file.write_text("#" * (MAX_BYTES + 1))
    with pytest.raises(ConfigFileError):
        read(option_file)


def test_it_gives_the_plan_of_the_xml_file(tmp_path: Path) -> None:
    path = tmp_path / "f.toml"
    path.write_text(SAME)
    plan, xml = build(load(path)), build(xml_file.parse(GUIDE.encode(), "f.xml"))
    assert (plan.daemon, plan.stores, plan.notices) == (xml.daemon, xml.stores, xml.notices)


def test_keyword_arguments_are_the_same_tables() -> None:
    log = {"path": "a.log", "frequency": "daily", "size": 3}
    tables = {
        "daemon": {"log": log, "web-monitor": {"address": "127.0.0.1:1"}},
        "store": [
            {
                "name": "a", "port": 0, "interface": "127.0.0.1", "restore-last": 4,
                "context": {"resolver_service": "127.0.0.1:27000"},
                "topic": [{"pattern": "t", "receiver": {"retransmit_request_interval": 7},
                           "source": {"ume_flight_size": 9}}],
            }
        ],
    }  # fmt: skip
    plan = build(outline(tables))
    (store,) = plan.stores
    assert store.resolver_service == ("127.0.0.1:27000",)
    assert store.proxy_options("t") == {"ume_flight_size": "9"}
    assert store.topics[0].restore_last_hours == 4
    assert plan.daemon.log.size == 3


def test_problems_have_their_key(tmp_path: Path) -> None:
    tables = {
        "daemons": 1,
        "daemon": {"logs": "a"},
        "store": [{"name": "a", "colour": 1, "topic": [{"type": "PCRE"}, 3]}, {"port": 1, "topic": {}}],
    }
    with pytest.raises(ConfigFileError) as told:
        outline(tables, "f.toml")
    assert [f"{one.place}: {one.text}" for one in told.value.problems] == [
        "daemons: there is no 'daemons' here: there are daemon, store",
        f"daemon: there is no 'logs' here: there are {', '.join(sorted(DAEMON_KEYS))}",
        f"store.0: there is no 'colour' here: there are {', '.join(sorted(STORE_KEYS))}",
        "store.0.topic.0: pattern is missing",
        "store.0.topic.1: this must be a table",
        "store.0.topic.1: pattern is missing",
        "store.0: port is missing",
        "store.1.topic: this must be a list of tables: write [[store.1.topic]]",
        "store.1: name is missing",
    ]
    path = tmp_path / "f.toml"
    path.write_text("a = ")
    with pytest.raises(ConfigFileError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: this is no TOML: ")


def test_the_certificates_of_a_daemon_are_one_entry(tmp_path: Path) -> None:
    """`stablecast.runtime.tls` uses them for every port and connection of the daemon."""
    path = tmp_path / "f.toml"
    path.write_text(SAME.replace("[daemon]", '[daemon]\ntls = "certificates"'))
    assert build(load(path)).daemon.tls == Path("certificates")
    path.write_text(SAME)
    assert build(load(path)).daemon.tls is None
