"""Topic resolution on sockets: the `Resolver` of a context, and the relay (lbmrd) that forwards its datagrams."""

from typing import TYPE_CHECKING, Any

from stablecast.resolver.resolution import Listeners
from stablecast.resolver.resolver import Resolver
from stablecast.runtime.multicast import MulticastSettings

if TYPE_CHECKING:
    from stablecast.resolver.lbmrd.daemon import DEFAULT_PORT, RelayDaemon

__all__ = ["DEFAULT_PORT", "Listeners", "MulticastSettings", "RelayDaemon", "Resolver"]


def __getattr__(name: str) -> Any:
    """Import the relay when it is first used: contexts do without it."""
    if name not in ("DEFAULT_PORT", "RelayDaemon"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stablecast.resolver.lbmrd import daemon  # noqa: PLC0415

    return getattr(daemon, name)
