"""Topic resolution on sockets: a context's `Resolver`, and the relay (lbmrd) that carries its datagrams."""

from stablecast.resolver.daemon import DEFAULT_PORT, RelayDaemon
from stablecast.resolver.errors import ResolverError
from stablecast.resolver.resolver import Resolver

__all__ = ["DEFAULT_PORT", "RelayDaemon", "Resolver", "ResolverError"]
