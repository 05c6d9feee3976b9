"""Where the monitor listens, and what it lets people do."""

import pytest

from stablecast.core.errors import ConfigError
from stablecast.ops.monitor.settings import ANY, MonitorSettings, Permission
from stablecast.runtime.address import AddressError


def test_an_address_with_a_port() -> None:
    """P-807: address:port, * for any address, read-only unless told."""
    assert MonitorSettings.parse("127.0.0.1:15304") == MonitorSettings("127.0.0.1", 15304, Permission.READ_ONLY)
    assert MonitorSettings.parse("*:15304").host == ANY
    assert MonitorSettings.parse("127.0.0.1:1", "read-write").permission is Permission.READ_WRITE


def test_loopback_is_the_default() -> None:
    assert MonitorSettings().on_loopback
    assert not MonitorSettings(ANY).on_loopback


@pytest.mark.parametrize(("listen", "permission"), [("127.0.0.1:1", "write"), ("127.0.0.1:1", "READ_ONLY")])
def test_other_permissions_are_refused(listen: str, permission: str) -> None:
    with pytest.raises(ConfigError, match="read-only or read-write"):
        MonitorSettings.parse(listen, permission)


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(AddressError):
        MonitorSettings.parse("localhost")


def test_strangers_may_look_but_not_touch() -> None:
    assert MonitorSettings.parse("*:1").permission is Permission.READ_ONLY
    with pytest.raises(ConfigError, match="set a token"):
        MonitorSettings.parse("*:1", "read-write")
    assert MonitorSettings.parse("*:1", "read-write", "secret").token == "secret"


@pytest.mark.parametrize("token", ["two words", "schlüssel", "line\n"])
def test_a_token_fits_a_header(token: str) -> None:
    with pytest.raises(ConfigError, match="printable ASCII"):
        MonitorSettings(token=token)
