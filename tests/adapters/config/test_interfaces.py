"""Addresses, ranges, and all interfaces."""

import pytest

from stablecast.config import interfaces
from stablecast.config.interfaces import InterfaceError, addresses, announced, choose


def test_this_host_has_a_loopback_interface() -> None:
    assert "127.0.0.1" in addresses()


def test_a_range_is_the_first_address_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """P-810."""
    assert choose("127.0.0.9/8") == "127.0.0.1"
    monkeypatch.setattr(interfaces, "addresses", lambda: ["127.0.0.1", "10.29.3.17", "10.29.3.18"])
    assert choose("10.29.3.16/25") == "10.29.3.17"
    assert announced("0.0.0.0") == "10.29.3.17"
    assert announced("10.29.3.18") == "10.29.3.18"
    with pytest.raises(InterfaceError, match=r"no interface of this host lies in 192\.0\.2\.0/24: it has 127"):
        choose("192.0.2.0/24")


def test_a_host_that_nobody_reaches_announces_itself_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interfaces, "addresses", lambda: ["127.0.0.1"])
    assert announced("0.0.0.0") == "127.0.0.1"


@pytest.mark.parametrize("text", ["host", "10.0.0", "10.0.0.1/99", ""])
def test_what_is_no_interface(text: str) -> None:
    with pytest.raises(InterfaceError, match="is not an interface"):
        choose(text)


def test_an_address_is_taken_as_it_is() -> None:
    assert choose("192.0.2.7") == "192.0.2.7"


def test_an_interface_without_an_address_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.if_nameindex", lambda: [(1, "lo"), (99, "nowhere0")])
    assert addresses() == ["127.0.0.1"]
