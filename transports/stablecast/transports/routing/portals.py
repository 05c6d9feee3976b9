"""One portal of a router: its settings, what its domain wants, what waits to leave through it, and its counters.

A portal is in a domain, or at one end of a link to another router; then its domain is 0.
"""

from collections import Counter
from enum import Enum, IntEnum

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.resolution.udp.settings import RateLimit
from stablecast.transports.routing.access import AccessList, Properties, admits
from stablecast.transports.routing.duplicates import SIZE, STEP
from stablecast.transports.routing.forwarding import UnicastDrop
from stablecast.transports.routing.interest import DomainInterest, UseTimes
from stablecast.transports.routing.link import Link, RoundTrips
from stablecast.transports.routing.names import DomainNames
from stablecast.transports.routing.queues import MAX_QUEUE_BYTES, PortalQueues
from stablecast.transports.wire.lbmr import Query, ResolutionRequest

LISTEN_NS = 2 * SECOND + 500 * MILLISECOND
"""Time for which a portal listens for another router before it forwards: twice the interval of routes, and more."""


EVERYTHING = ResolutionRequest.ADVERTISEMENTS | ResolutionRequest.QUERIES | ResolutionRequest.PATTERN_QUERIES
"""What a portal asks its domain for at its start."""


class Standing(IntEnum):
    """What a portal does in its domain."""

    LISTENS = 0
    """It waits whether another router is there already, or for a link."""
    FORWARDS = 1
    STANDS_ASIDE = 2
    """Another router is in the domain."""


class Drop(Enum):
    """Why messages of a stream do not leave through a portal; the value is the word of the statistics."""

    DUPLICATE = "duplicate"
    BLOCKING = "blocking"
    FRAGMENT_SIZE = "fragment size"
    ERROR = "error"
    LINK_DOWN = "link down"
    """They waited for a link that ended."""


@attrs.frozen
class PortalSettings:
    """One portal.

    Attributes:
        domain: The number of its domain; 0: it leads to another router.
        instances: The names of its contexts, 8 bytes each: a packet from another router has none of them.
        leased: Whether contexts of the domain are asked what they use; a service tells it.
        listen_ns: Time for which it listens for another router before it forwards.
        rival_ns: Silence after which another router is gone.
        wake_ns, wake_every_ns: Duration and interval of the requests at the start (R-030); 0: none.
        routes_ns, routes_least_ns: Longest and shortest time between two announcements of its routes (R-095).
        deletion_ns: Time for which a lost source keeps its proxies (R-062).
        alive_ns, silence_ns: Time between questions for a sign of life on a link, and silence after which it is dead.
    """

    name: str
    domain: int
    instances: tuple[bytes, ...] = ()
    cost: int = 1
    leased: bool = True
    listen_ns: int = LISTEN_NS
    rival_ns: int = 4 * SECOND
    wake_ns: int = 10 * SECOND
    wake_every_ns: int = SECOND
    routes_ns: int = SECOND
    routes_least_ns: int = 100 * MILLISECOND
    deletion_ns: int = SECOND
    alive_ns: int = SECOND
    silence_ns: int = 3 * SECOND
    topic_uses: UseTimes = UseTimes()
    pattern_uses: UseTimes = UseTimes()
    use_rate: RateLimit = RateLimit(records=500, bits=500_000)
    queue_bytes: int = MAX_QUEUE_BYTES
    window: int = SIZE
    window_step: int = STEP
    inbound: AccessList | None = None
    outbound: AccessList | None = None


@attrs.define
class PortalCounters:
    """Counters of a portal.

    Attributes:
        received, received_bytes: Messages of joined streams, without headers of the transport.
        sent, sent_bytes: Messages of proxy sources that left at once or after they waited.
        lost: Numbers that the transports of joined streams gave up.
        control: Control messages of joined streams.
        unhandled: Control messages that are none of the joined source.
        unicast_received, unicast_sent: Messages of the request port, and those that left through this portal.
        unidentified: Sources without an identity, which are never repeated.
        unopened: Proxies that could not be opened. The 1st, 2nd, 4th ... of them is named.
        disconnects: How often contexts here were to connect again, because what they sent may be lost.
        rejected: Looks at sources that an access list kept out.
        stray: Messages of sources that came over a link by which they should not come now.
        untold: Patterns that were too long to be told on a link.
        dropped: Messages that did not leave here, by reason.
        unicast_dropped: Unicast messages that came in here and went no further, by reason.
    """

    received: int = 0
    received_bytes: int = 0
    sent: int = 0
    sent_bytes: int = 0
    lost: int = 0
    control: int = 0
    unhandled: int = 0
    unicast_received: int = 0
    unicast_sent: int = 0
    unidentified: int = 0
    unopened: int = 0
    disconnects: int = 0
    rejected: int = 0
    stray: int = 0
    untold: int = 0
    dropped: Counter[Drop] = attrs.field(factory=Counter)
    unicast_dropped: Counter[UnicastDrop] = attrs.field(factory=Counter)


@attrs.define
class Portal:
    """One portal.

    Attributes:
        wants: The topics and patterns that it looks for on behalf of the others.
        link: The link to another router that it has now.
        trips: Times to the other router and back.
        backoff_ns: Time for which the next link stays out of the map, because the last one broke soon.
    """

    settings: PortalSettings
    interest: DomainInterest = attrs.field(init=False)
    queues: PortalQueues = attrs.field(init=False)
    names: DomainNames = attrs.field(factory=DomainNames, init=False)
    standing: Standing = Standing.LISTENS
    rival: str = ""
    rival_until: int = 0
    wants: dict[Query, None] = attrs.field(factory=dict)
    announced_at: int | None = None
    counted: PortalCounters = attrs.field(factory=PortalCounters)
    link: Link | None = None
    trips: RoundTrips = attrs.field(factory=RoundTrips)
    backoff_ns: int = 0

    def __attrs_post_init__(self) -> None:
        one = self.settings
        self.interest = DomainInterest(one.topic_uses, one.pattern_uses, one.use_rate)
        self.queues = PortalQueues(one.queue_bytes)

    @property
    def forwards(self) -> bool:
        """Whether it takes part in its domain."""
        return self.standing is Standing.FORWARDS

    def lets_in(self, properties: Properties) -> bool:
        """Return whether the inbound list admits a source, and count it if not."""
        return self._admits(self.settings.inbound, properties)

    def lets_out(self, properties: Properties) -> bool:
        """Return whether the outbound list admits a source, and count it if not."""
        return self._admits(self.settings.outbound, properties)

    def _admits(self, entries: AccessList | None, properties: Properties) -> bool:
        passes = admits(entries, properties)
        self.counted.rejected += not passes
        return passes
