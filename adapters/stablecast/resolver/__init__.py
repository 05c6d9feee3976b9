"""Topic resolution on sockets: a context's `Resolver`, and the relay (lbmrd) that carries its datagrams."""

from stablecast.resolver.daemon import DEFAULT_PORT, RelayDaemon
from stablecast.resolver.errors import ResolverError
from stablecast.resolver.multicast import MulticastSettings
from stablecast.resolver.resolver import Listeners, Resolver

__all__ = ["DEFAULT_PORT", "Listeners", "MulticastSettings", "RelayDaemon", "Resolver", "ResolverError"]
