"""The address of the monitor, and the permissions that it gives."""

import pytest

from stablecast.core.errors import ConfigError
from stablecast.ops.monitor.settings import MonitorSettings, Permission

ANY = "0.0.0.0"


@pytest.mark.rows("P-807")
def test_loopback_is_the_default() -> None:
    """Read-only unless told."""
    assert MonitorSettings().on_loopback
    assert MonitorSettings().permission is Permission.READ_ONLY
    assert not MonitorSettings(ANY).on_loopback


def test_strangers_may_look_but_not_touch() -> None:
    assert MonitorSettings(ANY, 1).permission is Permission.READ_ONLY
    with pytest.raises(ConfigError, match="set a token"):
        MonitorSettings(ANY, 1, Permission.READ_WRITE)
    assert MonitorSettings(ANY, 1, Permission.READ_WRITE, "secret").token == "secret"


@pytest.mark.parametrize("token", ["two words", "schlüssel", "line\n"])
def test_a_token_fits_a_header(token: str) -> None:
    with pytest.raises(ConfigError, match="printable ASCII"):
        MonitorSettings(token=token)
