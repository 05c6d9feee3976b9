"""The documented XML form of a service's configuration."""

from pathlib import Path

import pytest

from stablecast.config.findings import ConfigFileError
from stablecast.resolver.srs.config import (
    DebugMonitorConfig,
    SrsConfig,
    SrsLogConfig,
    SrsMonitorConfig,
    StatisticsIntervals,
)
from stablecast.resolver.srs.xml_config import load_xml
from stablecast.runtime.logs import Compression, Frequency

EXAMPLE = """<?xml version="1.0" encoding="UTF-8"?>
<um-srs version="1.0">
  <daemon-monitor topic="statistics">
    <monitor-format>json</monitor-format>
    <ping-interval>60000</ping-interval>
    <publishing-interval><default>5000</default></publishing-interval>
  </daemon-monitor>
  <daemon>
    <log type="file" frequency="daily" size="23" max-history="7" total-size-cap="100" compression="zip">srs.log</log>
    <pid-file>srs.pid</pid-file>
  </daemon>
  <debug-monitor><enabled>false</enabled><port>27000</port></debug-monitor>
  <srs>
    <interface>10.29.3.41</interface>
    <port>12000</port>
    <state-lifetime>100</state-lifetime>
    <interest-state-lifetime>0</interest-state-lifetime>
    <route-state-lifetime>40</route-state-lifetime>
    <source-leave-backoff>250</source-leave-backoff>
  </srs>
</um-srs>
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "srs.xml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.rows("T-417", "T-421", "T-501", "T-504", "T-507")
def test_the_documented_elements_in_any_order(tmp_path: Path) -> None:
    config = load_xml(write(tmp_path, EXAMPLE))
    assert config == SrsConfig(
        "10.29.3.41",
        12_000,
        state_lifetime=100,
        interest_state_lifetime=0,
        route_state_lifetime=40,
        source_leave_backoff=250,
        log=SrsLogConfig(Path("srs.log"), Frequency.DAILY, 23, 7, 100, Compression.ZIP),
        publishing_interval=5_000,
        pid_file=Path("srs.pid"),
        monitor=SrsMonitorConfig("statistics"),
    )


def test_nothing_but_defaults(tmp_path: Path) -> None:
    assert load_xml(write(tmp_path, '<um-srs version="1.0"/>')) == SrsConfig()
    console = '<um-srs version="1.0"><daemon><log type="console"/></daemon></um-srs>'
    assert load_xml(write(tmp_path, console)) == SrsConfig()


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        (' version="1.0">', ">", 2, "um-srs'.*version"),
        (' version="1.0">', ' version="2.0">', 2, "um-srs"),
        ("<port>12000", "<port>70000", 15, "<port>: Element 'port'"),
        ("<interface>10.29.3.41</interface>", "<interface/>", 14, "<interface>: option interface wants a text"),
        ("100</state-lifetime>", "20736001</state-lifetime>", 16, "<state-lifetime>: .*between 0 and 20736000"),
        (">5000<", ">5<", 6, "<default>: .*must lie between 200"),
        (">srs.log<", "><", 9, "<log>: .*type 'file' with a name"),
        (">srs.pid<", "><", 10, "<pid-file>: .*wants a text"),
        ('"daily"', '"weekly"', 9, "log.*weekly|frequency"),
        ('"zip"', '"7z"', 9, "compression"),
        ("</um-srs>", "<srs/></um-srs>", 21, "srs"),
    ],
)
def test_problems_have_line_and_element(tmp_path: Path, old: str, new: str, line: int, text: str) -> None:
    assert old in EXAMPLE
    with pytest.raises(ConfigFileError, match=text) as told:
        load_xml(write(tmp_path, EXAMPLE.replace(old, new, 1)))
    assert str(told.value).startswith(f"{tmp_path / 'srs.xml'}:{line}: ")


WHOLE = """<um-srs version="1.0">
  <srs>
    <interface>127.0.0.1</interface><port>12000</port><state-lifetime>86400</state-lifetime>
    <source-state-lifetime>1</source-state-lifetime><interest-state-lifetime>2</interest-state-lifetime>
    <route-state-lifetime>30</route-state-lifetime><context-name-state-lifetime>86400</context-name-state-lifetime>
    <source-leave-backoff>500</source-leave-backoff><application-id>tr1</application-id>
    <otidmap><shards>16</shards></otidmap><topicmap><shards>16</shards></topicmap>
    <clientactor><request-stream-max-msg-count>10</request-stream-max-msg-count></clientactor>
  </srs>
  <debug-monitor enabled="true"><interface>127.0.0.1</interface><port>27001</port></debug-monitor>
  <daemon-monitor topic="/daemons/statistics">
    <monitor-format>pb</monitor-format><ping-interval>1000</ping-interval>
    <publishing-interval>
      <default>5000</default><srs-stats>1000</srs-stats><um-client-stats>2000</um-client-stats>
      <connection-events>3000</connection-events><srs-error-stats>4000</srs-error-stats>
      <um-client-error-stats>6000</um-client-error-stats><config-opts>7000</config-opts>
      <internal-config-opts>0</internal-config-opts>
    </publishing-interval>
    <publish-connection-events allow="true"/>
    <remote-snapshot-request allow="true"/>
    <remote-config-changes-request allow="false"/>
    <lbm-attributes>
      <option scope="context" name="resolver_service" value="127.0.0.1:12000"/>
      <option scope="source" name="transport" value="lbtru"/>
      <option scope="context" name="fd_management_type" value="epoll"/>
    </lbm-attributes>
  </daemon-monitor>
</um-srs>
"""


@pytest.mark.rows("T-421", "T-422")
def test_a_file_with_every_documented_element(tmp_path: Path) -> None:
    """Each element is in effect, or a notice has the reason why it is not."""
    config = load_xml(write(tmp_path, WHOLE))
    monitor = config.monitor
    assert (monitor.topic, monitor.connection_events, monitor.snapshots, monitor.changes) == (
        "/daemons/statistics",
        True,
        True,
        False,
    )
    assert monitor.intervals == StatisticsIntervals(1_000, 2_000, 3_000, 4_000, 6_000, 7_000, 0)
    assert config.debug == DebugMonitorConfig(True, "127.0.0.1", 27_001)
    assert config.application_id == "tr1"
    assert monitor.configuration.of_context()[0] == {"resolver_service": "127.0.0.1:12000"}
    assert monitor.configuration.of_endpoint("source") == {"transport": "lbtru"}
    assert sorted(notice.split(">: ", 1)[-1] for notice in config.notices) == [
        "clientactor has no effect: one thread serves all clients",
        "context-name-state-lifetime has no effect: services know no names of stores",
        "fd_management_type has no effect: the event loop chooses how it waits",
        "monitor-format: statistics are always published as JSON",
        "otidmap has no effect: tables grow as needed",
        "topicmap has no effect: tables grow as needed",
    ]


def test_a_wrong_option_of_the_publishing_context_is_refused(tmp_path: Path) -> None:
    text = WHOLE.replace('name="transport"', 'name="transprt"')
    with pytest.raises(
        ConfigFileError, match="<option>: there is no source option 'transprt': did you mean 'transport'"
    ):
        load_xml(write(tmp_path, text))
