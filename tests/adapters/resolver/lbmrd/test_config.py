"""The XML file of a relay: the documented example, and the problems of wrong files."""

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from stablecast.config import findings
from stablecast.config.findings import ConfigFileError
from stablecast.core.machine.units import SECOND
from stablecast.resolver.lbmrd.config import LbmrdConfig, load
from stablecast.runtime.interfaces import address_of
from stablecast.transports.resolution.udp.address_translation import ANY_PORT, AddressDomain, AddressRule, Transform

NAT = """<?xml version="1.0" encoding="UTF-8" ?>
<!-- two networks -->
<lbmrd version="1.0">
  <daemon>
    <interface>127.0.0.1/32</interface>
    <port>12000</port>
    <activity>30000</activity>
    <ttl>65000</ttl>
    <log>lbmrd.log</log>
    <resolver_unicast_receiver_socket_buffer>2097152</resolver_unicast_receiver_socket_buffer>
    <resolver_unicast_send_socket_buffer>65536</resolver_unicast_send_socket_buffer>
  </daemon>
  <domains>
    <domain name="A"><network>10.1.0.0/16</network></domain>
    <domain name="B"><network>192.168.1/24</network><network>192.168.2.0/24</network></domain>
  </domains>
  <transformations>
    <transform source="A" destination="B">
      <rule><match address="10.1.1.50" port="*"/><replace address="192.168.1.1"/></rule>
      <rule><match address="10.1.1.51" port="9"/><replace address="192.168.1.2" port="10"/></rule>
    </transform>
  </transformations>
</lbmrd>
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "lbmrd.xml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.rows("T-221", "T-222")
def test_the_documented_example(tmp_path: Path) -> None:
    config = load(write(tmp_path, NAT))
    assert (config.interface, config.port, config.activity, config.ttl) == ("127.0.0.1", 12_000, 30_000, 65_000)
    assert (config.log, config.receive_buffer, config.send_buffer) == (Path("lbmrd.log"), 2_097_152, 65_536)
    relay = config.relay()
    assert (relay.client_ttl, relay.check) == (65 * SECOND, 30 * SECOND)
    assert relay.translation.domains == (
        AddressDomain("A", (IPv4Network("10.1.0.0/16"),)),
        AddressDomain("B", (IPv4Network("192.168.1.0/24"), IPv4Network("192.168.2.0/24"))),
    )
    rules = (
        AddressRule("10.1.1.50", ANY_PORT, "192.168.1.1", ANY_PORT),
        AddressRule("10.1.1.51", 9, "192.168.1.2", 10),
    )
    assert relay.translation.transforms == (Transform("A", "B", rules),)


def test_omitted_elements_have_their_defaults(tmp_path: Path) -> None:
    text = NAT[: NAT.index("  <daemon>")] + NAT[NAT.index("  <domains>") :]
    config = load(write(tmp_path, text))
    assert (config.interface, config.port, config.ttl, config.log) == ("127.0.0.1", 15_380, 60_000, None)


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        (' version="1.0">', ">", 3, "<lbmrd>: .*version"),
        ('<lbmrd version="1.0">', '<lbmrd version="2.0">', 3, "<lbmrd>: version '2.0' is not '1.0'"),
        ("<port>12000</port>", "<prt>12000</prt>", 4, "daemon"),
        ("12000", "65536", 6, "<port>: option port must lie between 0 and 65535, not 65536"),
        ("12000", "many", 6, "<port>: option port wants a whole number, not 'many'"),
        ("65000", "0", 8, "<ttl>: option ttl must lie between 1"),
        ("lbmrd.log", " ", 9, "<log>: option log wants a text"),
        ("127.0.0.1/32", "no0", 5, "<interface>: 'no0' is not an interface"),
        ("10.1.0.0/16", "10.1.0.0/99", 14, "<network>: '10.1.0.0/99' is not a network"),
        ('destination="B"', 'destination="C"', None, "IDREF|unknown ID|C"),
        ('match address="10.1.1.50"', 'match address="host"', 19, "<match>: 'host' is not an IPv4 address"),
        ("</lbmrd>", "", None, "<xml>: "),
        ("<!-- two networks -->", "<!DOCTYPE lbmrd>", 1, "leave out <!DOCTYPE>"),
    ],
)
def test_problems_have_line_and_element(tmp_path: Path, old: str, new: str, line: int | None, text: str) -> None:
    assert old in NAT
    with pytest.raises(ConfigFileError, match=text) as told:
        load(write(tmp_path, NAT.replace(old, new)))
    assert f"lbmrd.xml:{line or ''}" in str(told.value)


def test_a_giant_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "MAX_BYTES", 100)
    with pytest.raises(ConfigFileError, match="more than 100 bytes"):
        load(write(tmp_path, NAT))


def test_interfaces_by_address_or_device() -> None:
    assert (address_of("192.0.2.77"), address_of("lo")) == ("192.0.2.77", "127.0.0.1")
    assert LbmrdConfig().relay().client_ttl == 60 * SECOND
