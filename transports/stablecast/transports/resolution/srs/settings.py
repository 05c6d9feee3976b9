"""Settings of a service, and of a context that uses services."""

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.resolution.udp.settings import MAX_PATTERNS, MAX_SOURCES, MAX_TOPICS, DomainOptions

MAX_CLIENTS = 16_384
"""Clients of one service, including those that are potentially down; also its connections."""

MAX_INTERESTS = MAX_TOPICS + MAX_PATTERNS
"""Topics and patterns that one client wants. Each new topic is matched with each pattern."""


MAX_BURST = 2 * (MAX_SOURCES + MAX_INTERESTS)
"""Frames and records that a client may send at once: two full exchanges of the largest client."""

MAX_RATE = 20_000
"""Frames and records in a second, beyond that burst. A client that sends more is disconnected."""


@attrs.frozen
class ServiceConfig:
    """Lifetimes in nanoseconds, 0 means forever; and bounds."""

    source_lifetime_ns: int = 86_400 * SECOND
    interest_lifetime_ns: int = 86_400 * SECOND
    leave_backoff_ns: int = 500 * MILLISECOND
    max_clients: int = MAX_CLIENTS
    max_sources: int = MAX_SOURCES
    max_interests: int = MAX_INTERESTS
    max_patterns: int = MAX_PATTERNS
    max_burst: int = MAX_BURST
    max_rate: int = MAX_RATE
    route_lifetime_ns: int = 30 * SECOND


@attrs.frozen
class ClientConfig:
    """The connections of a context to services; times in nanoseconds.

    Attributes:
        keepalive_ns: Between keepalives (U7).
        lifetime_ns: Silence after which a connection is broken, at either end: three keepalives (U7).
        retry_min_ns: Wait before the second attempt to connect.
        retry_max_ns: The wait doubles up to this; each is shortened by up to a half, at random.
        grace_ns: Time that a restarted service may take to receive all records again.
        flood: Receive every source, not only those that receivers want.
        router: Register as the context of a router's portal, which tells its domain and its routes.
        domains: Whose number of the domain is believed.
    """

    keepalive_ns: int = 5 * SECOND
    lifetime_ns: int = 15 * SECOND
    retry_min_ns: int = 200 * MILLISECOND
    retry_max_ns: int = 10 * SECOND
    grace_ns: int = 30 * SECOND
    flood: bool = False
    router: bool = False
    domains: DomainOptions = DomainOptions()


CLIENT_DEFAULTS = ClientConfig()
