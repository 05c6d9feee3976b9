"""Topic resolution on sockets: the `Resolver` of a context, and the relay (lbmrd) that forwards its datagrams."""

from stablecast.resolver.lbmrd.daemon import DEFAULT_PORT, RelayDaemon
from stablecast.resolver.resolver import Listeners, Resolver
from stablecast.runtime.multicast import MulticastSettings

__all__ = ["DEFAULT_PORT", "Listeners", "MulticastSettings", "RelayDaemon", "Resolver"]
