"""The interfaces of a host, and the address that a setting selects."""

import pytest

from stablecast.runtime import interfaces as module
from stablecast.runtime.interfaces import (
    Interface,
    InterfaceError,
    announced,
    check_local,
    choose,
    choose_device,
    has_address,
    interfaces,
)

LOOPBACK = Interface("lo", "127.0.0.1", up=True, loopback=True, multicast=False)
DOWN = Interface("eth9", "10.0.0.9", up=False, loopback=False, multicast=True)
TUNNEL = Interface("tun0", "10.8.0.1", up=True, loopback=False, multicast=False)
ETHERNET = Interface("eth0", "10.29.3.41", up=True, loopback=False, multicast=True)
ALL = (LOOPBACK, DOWN, TUNNEL, ETHERNET)


@pytest.mark.parametrize(
    ("wanted", "address"),
    [
        ("", "10.29.3.41"),
        ("0.0.0.0", "10.29.3.41"),
        ("10.8.0.1", "10.8.0.1"),
        ("10.29.0.0/16", "10.29.3.41"),
        ("10.29.3.1/24", "10.29.3.41"),
        ("tun0", "10.8.0.1"),
        ('"lo"', "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("localhost/8", "127.0.0.1"),
    ],
)
def test_an_interface_by_address_network_or_name(wanted: str, address: str) -> None:
    assert choose_device(wanted, ALL) == address


@pytest.mark.parametrize(
    ("wanted", "devices", "text"),
    [
        ("", (LOOPBACK, DOWN, TUNNEL), "no interface of this host is up and can multicast"),
        ("10.30.0.0/16", ALL, r"no interface of this host matches '10.30.0.0/16': it has lo \(127.0.0.1\), "),
        ("10.30.0.1", (), "it has none with an IPv4 address"),
        ("10.0.0.0/99", ALL, "'10.0.0.0/99' is not an interface"),
        ("no such host.invalid", ALL, "is not an interface: write an address"),
    ],
)
def test_a_missing_interface_is_reported(wanted: str, devices: tuple[Interface, ...], text: str) -> None:
    with pytest.raises(InterfaceError, match=text):
        choose_device(wanted, devices)


def test_an_address_of_this_machine_need_not_be_the_first_of_its_device() -> None:
    assert [has_address(host) for host in ("127.0.0.1", "127.0.0.9", "192.0.2.1")] == [True, True, False]


def test_the_interfaces_of_this_machine() -> None:
    loopback = next(device for device in interfaces() if device.address == "127.0.0.1")
    assert (loopback.up, loopback.loopback) == (True, True)


@pytest.mark.rows("P-209", "P-810")
def test_a_range_selects_the_first_address_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose("127.0.0.9/8") == "127.0.0.1"
    monkeypatch.setattr(module, "interfaces", lambda: ALL)
    assert choose("10.29.3.16/25") == "10.29.3.41"
    assert announced("0.0.0.0") == "10.0.0.9"
    assert announced("10.29.3.18") == "10.29.3.18"
    with pytest.raises(InterfaceError, match=r"no interface of this host matches '192\.0\.2\.0/24': it has lo \(127"):
        choose("192.0.2.0/24")


def test_a_host_without_a_network_announces_its_loopback_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "interfaces", lambda: [LOOPBACK])
    assert announced("0.0.0.0") == "127.0.0.1"


@pytest.mark.parametrize("text", ["host", "10.0.0", "10.0.0.1/99", ""])
def test_a_listening_address_is_no_name(text: str) -> None:
    with pytest.raises(InterfaceError, match="is not an interface"):
        choose(text)


def test_an_address_is_used_as_it_is() -> None:
    assert choose("192.0.2.7") == "192.0.2.7"


def test_an_interface_without_an_address_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.if_nameindex", lambda: [(1, "lo"), (99, "nowhere0")])
    assert [one.address for one in interfaces()] == ["127.0.0.1"]


def test_a_place_to_listen_is_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "interfaces", lambda: [LOOPBACK])
    for text in ("0.0.0.0", "127.0.0.9", "[::1]"):
        check_local(text)
    with pytest.raises(InterfaceError):
        check_local("192.0.2.7")
