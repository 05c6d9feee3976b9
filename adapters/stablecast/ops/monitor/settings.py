"""Define where the monitor listens and what it permits."""

import ipaddress
from enum import IntEnum
from pathlib import Path

import attrs

from stablecast.core.errors import ConfigError
from stablecast.runtime import machine


class Permission(IntEnum):
    """Name what a request may do through the monitor (P-807)."""

    READ_ONLY = 0
    READ_WRITE = 1


@attrs.frozen
class MonitorSettings:
    """Hold the settings of a monitor. Without a `token` anyone who reaches the port may read."""

    host: str = "127.0.0.1"
    port: int = 0
    permission: Permission = Permission.READ_ONLY
    token: str = ""

    def __attrs_post_init__(self) -> None:
        """Reject settings that let strangers change something.

        Raises:
            ConfigError: read-write beyond loopback without a token, or a token that a header cannot carry.
        """
        if self.permission is Permission.READ_WRITE and not self.token and not self.on_loopback:
            raise ConfigError(
                f"the monitor at {self.host} would let anyone change the store: set a token, "
                "bind it to loopback or make it read-only"
            )
        if self.token and not (self.token.isascii() and self.token.isprintable() and " " not in self.token):
            raise ConfigError("the monitor's token must be printable ASCII without spaces")

    @classmethod
    def of(cls, host: str, port: int, token_file: Path | None, *, writable: bool = False) -> "MonitorSettings":
        """Return the settings with the token in a file. Raises ConfigError, and OSError if it cannot be read."""
        token = "" if token_file is None else machine.read_text(token_file).strip()
        return cls(host, port, Permission.READ_WRITE if writable else Permission.READ_ONLY, token)

    @property
    def on_loopback(self) -> bool:
        """True if only this host can reach the monitor."""
        return ipaddress.ip_address(self.host).is_loopback
