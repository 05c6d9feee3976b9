"""Real processes in network namespaces: on two hosts of one network, and in two networks with a translator between."""

from pathlib import Path

import pytest

from tests.support.namespaces import Networks, inside, one_network, reason_to_skip, two_networks

WHY_NOT = reason_to_skip()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

CONFIG = """<lbmrd version="1.0">
  <daemon><interface>10.1.1.50</interface><port>12000</port></daemon>
  <domains>
    <domain name="A"><network>10.1.0.0/16</network></domain>
    <domain name="B"><network>192.168.1.0/24</network></domain>
  </domains>
  <transformations>
    <transform source="A" destination="B">
      <rule><match address="10.1.1.50"/><replace address="192.168.1.1"/></rule>
    </transform>
  </transformations>
</lbmrd>
"""
SHOWN, HIDDEN = "192.168.1.1:12000", "10.1.1.50:12000"


def exchange(here: Networks, source: str, receiver: str) -> list[str]:
    """Return the lines that a receiver in one network prints about a source in the other."""
    places = {here.a: ("10.1.1.50", HIDDEN), here.b: ("192.168.1.7", SHOWN)}
    with (
        inside(receiver, "tests.support.namespaces", "receiver", *places[receiver], "orders", "3") as receiving,
        inside(source, "tests.support.namespaces", "source", *places[source], "orders", "3") as sending,
    ):
        assert sending.line() == "ready"
        ready, *numbers = (receiving.line() for _ in range(4))
        assert (ready, receiving.process.wait()) == ("ready", 0)
    return numbers


@pytest.mark.rows("T-211", "T-221", "T-222", "T-223")
def test_receivers_in_either_network_get_data_of_the_other(tmp_path: Path) -> None:
    """T28: the documented example. The relay translates advertisements of A only."""
    config = tmp_path / "lbmrd.xml"
    config.write_text(CONFIG, encoding="utf-8")
    with (
        two_networks() as here,
        inside(here.a, "stablecast.cli.main", "lbmrd", str(config), "--json") as relay,
    ):
        assert relay.line() == '{"ready": true, "port": 12000}'
        for source, receiver in ((here.a, here.b), (here.b, here.a)):
            numbers = [int(number) for number in exchange(here, source, receiver)]
            assert numbers == list(range(numbers[0], numbers[0] + 3))


@pytest.mark.rows("T-007", "T-022")
def test_hosts_of_one_network_find_each_other_by_multicast() -> None:
    """The interface is given by its network; group, TTL and port are the documented ones."""
    program = "tests.support.namespaces"
    with (
        one_network() as (left, right),
        inside(left, program, "receiver", "10.29.3.1", "10.29.3.0/24", "orders", "3") as receiving,
        inside(right, program, "source", "10.29.3.2", "10.29.3.0/24", "orders", "3"),
    ):
        ready, *numbers = (receiving.line() for _ in range(4))
        assert (ready, receiving.process.wait()) == ("ready", 0)
        assert [int(number) - int(numbers[0]) for number in numbers] == [0, 1, 2]
