"""The documented XML form of a service's configuration."""

from pathlib import Path

import pytest

from stablecast.config.findings import ConfigFileError
from stablecast.resolver.srs.config import SrsConfig, SrsLogConfig
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
    <route-state-lifetime>30</route-state-lifetime>
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
        source_leave_backoff=250,
        log=SrsLogConfig(Path("srs.log"), Frequency.DAILY, 23, 7, 100, Compression.ZIP),
        publishing_interval=5_000,
        pid_file=Path("srs.pid"),
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
