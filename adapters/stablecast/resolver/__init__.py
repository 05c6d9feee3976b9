"""Topic resolution on sockets: a context's `Resolver`, and the relay (lbmrd) that carries its datagrams."""

from stablecast.resolver.lbmrd.daemon import DEFAULT_PORT, RelayDaemon
from stablecast.resolver.resolver import Listeners, Resolver
from stablecast.runtime.resolution_group import MulticastSettings
from stablecast.runtime.resolver_error import ResolverError

__all__ = ["DEFAULT_PORT", "Listeners", "MulticastSettings", "RelayDaemon", "Resolver", "ResolverError"]
