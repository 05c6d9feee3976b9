"""The documented options of a context itself: its interface and its request port."""

from collections.abc import Mapping

import attrs

from stablecast.config import option_kinds as k
from stablecast.config.option import option_field, options_of, set_known
from stablecast.config.resolution_options import plain_interface
from stablecast.core.errors import ConfigError
from stablecast.runtime.ports import REQUEST_PORTS

NO_REQUEST_PORT = (
    "request_tcp_bind_request_port 0 turns persistence off, and the source has stores: set it to 1, or name no stores"
)


INTERFACE = k.TextKind("a.b.c.d[/n], device, host", plain_interface)


@attrs.frozen
class ContextConfig:
    default_interface: str = option_field(
        "default_interface",
        INTERFACE,
        "interface of the context: address, network, device or host name; 0.0.0.0: by route",
        "",
    )
    request_interface: str = option_field(
        "request_tcp_interface",
        INTERFACE,
        "interface of the request port and of all connections; 0.0.0.0: default_interface",
        "",
    )
    request_port: int = option_field("request_tcp_port", k.PORT, "port of the context; 0: one of the range", 0)
    low: int = option_field("request_tcp_port_low", k.PORT, "first port of the range", REQUEST_PORTS[0])
    high: int = option_field(
        "request_tcp_port_high", k.PORT, "last port of the range; if none is free, any port", REQUEST_PORTS[1]
    )
    binds: bool = option_field(
        "request_tcp_bind_request_port",
        k.FLAG,
        "0: refuse stores, which answer to the request port",
        True,  # P-038
    )

    @property
    def interface(self) -> str:
        """Return the configured interface of the context; empty: none is configured."""
        return self.request_interface or self.default_interface

    @property
    def ports(self) -> tuple[int, int]:
        """Return the range of the request port. Raises ConfigError if it is empty."""
        if self.request_port:
            return self.request_port, self.request_port
        if self.low > self.high:
            raise ConfigError(f"request_tcp_port_low {self.low} is above request_tcp_port_high {self.high}")
        return self.low, self.high


CONTEXT_OPTIONS = tuple(options_of(ContextConfig).values())


def split(options: Mapping[str, k.Value]) -> tuple[ContextConfig, dict[str, k.Value]]:
    """Return the configuration of the context, and the other options. Raises OptionError."""
    return set_known(CONTEXT_OPTIONS, ContextConfig(), options)
