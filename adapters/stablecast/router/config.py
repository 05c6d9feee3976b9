"""The configuration of a router, read and checked: its process, and one portal for each domain.

Times are nanoseconds, sizes bytes, rates bits a second. `router_files` reads it from XML and TOML files.
"""

import attrs

from stablecast.client import configured_options
from stablecast.config.client_configuration import NO_FILES, ClientConfiguration
from stablecast.config.context_options import ContextConfig
from stablecast.config.findings import ConfigProblem
from stablecast.config.plan import DaemonPlan
from stablecast.config.resolution_options import ResolutionSettings
from stablecast.config.transport_options import TransportConfig
from stablecast.config.transport_options import split as split_transport
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.routing.access import AccessList


@attrs.frozen
class RecordRate:
    """The rate of one kind of resolution records of a portal: bits and records a second; 0: no limit."""

    bits: int = 0
    records: int = 0


@attrs.frozen
class InitialRequests:
    """The requests with which a portal learns the interest and the sources of its domain when it starts (R-030)."""

    duration_ns: int = 10 * SECOND
    interval_ns: int = SECOND
    rate: RecordRate = RecordRate()


@attrs.frozen
class UseQueries:
    """The questions whether anybody still uses a topic or pattern (R-031 to R-034).

    Attributes:
        interval_ns: Time after the last sign of interest until the first question.
        timeout_ns: Time after which an unanswered question is repeated.
        tries: Questions after which the interest has ended.
        rate: Limit of the portal.
    """

    interval_ns: int = 300 * SECOND
    timeout_ns: int = 3 * SECOND
    tries: int = 5
    rate: RecordRate = RecordRate(500_000, 500)

    @property
    def longest_ns(self) -> int:
        """Return the time after which the interest of a receiver that died has certainly ended."""
        return self.interval_ns + self.tries * self.timeout_ns


@attrs.frozen
class RouteMessages:
    """The messages that tell the contexts of a domain which others can be reached through the portal (R-095).

    Each remote domain is told at once when it changes, but not within `shortest_ns`, and again every `longest_ns`.
    """

    shortest_ns: int = 100 * MILLISECOND
    longest_ns: int = SECOND
    rate: RecordRate = RecordRate(0, 50)


@attrs.frozen
class InterestMessages:
    """The messages that tell other routers of a domain what is wanted beyond this one (R-035)."""

    shortest_ns: int = SECOND
    longest_ns: int = 60 * SECOND
    rate: RecordRate = RecordRate(500_000, 0)


@attrs.frozen
class RemoteInterest:
    """The lease of interest that another router told of (R-036): its length, and how the list is walked."""

    check_ns: int = 90 * SECOND
    at_once: int = 100
    lease_ns: int = 300 * SECOND


@attrs.frozen
class NumberWindow:
    """The window of topic numbers that finds duplicates, for each source and portal (R-168)."""

    size: int = 16_384
    increment: int = 2_048


@attrs.frozen
class NameQueries:
    """The queries for names of contexts on behalf of other domains (R-224)."""

    interval_ns: int = 200 * MILLISECOND
    contexts: int = 20
    cycle_ns: int = 300 * SECOND
    timeout_ns: int = 900 * SECOND


@attrs.frozen
class PortalTimes:
    """The times and limits of the resolution of one portal."""

    initial: InitialRequests = InitialRequests()
    topic_uses: UseQueries = UseQueries()
    pattern_uses: UseQueries = UseQueries()
    routes: RouteMessages = RouteMessages()
    topic_interest: InterestMessages = InterestMessages()
    pattern_interest: InterestMessages = InterestMessages()
    remote_topics: RemoteInterest = RemoteInterest()
    remote_patterns: RemoteInterest = RemoteInterest()
    names: NameQueries = NameQueries()


@attrs.frozen
class PortalConfig:
    """One portal: the presence of the router in one domain.

    Attributes:
        name: Its name within the router.
        domain: The number of the domain, from 1.
        cost: The cost of a path through it, from 1.
        source_deletion_delay_ns: Time for which a lost source keeps its proxies (R-062).
        max_queue_bytes: Bytes that may wait to leave through it (R-164).
        times: Times and limits of its resolution.
        window: The window that finds duplicates.
        inbound, outbound: Access lists; None: everything is accepted.
        options: Options of its context, its proxy sources and its proxy receivers, the later layer above the earlier.
    """

    name: str = ""
    domain: int = 0
    cost: int = 1
    source_deletion_delay_ns: int = SECOND
    max_queue_bytes: int = 1_000_000
    times: PortalTimes = PortalTimes()
    window: NumberWindow = NumberWindow()
    inbound: AccessList | None = None
    outbound: AccessList | None = None
    options: ClientConfiguration = NO_FILES
    source_context_name: str = ""
    receiver_context_name: str = ""

    @property
    def resolution(self) -> ResolutionSettings:
        """Return how the portal finds sources and is found."""
        return configured_options.of_context(self.options, None, (), ())[0]

    @property
    def context(self) -> ContextConfig:
        """Return the interface and the request port of the portal."""
        return configured_options.of_context(self.options, None, (), ())[1]

    def transport(self, topic: str | None = None) -> TransportConfig:
        """Return the transport of proxy sources of a topic; None: of topics without options of their own."""
        return split_transport(self.options.of_endpoint("source", topic), TransportConfig())[0]

    def receiving(self, topic: str | None = None) -> TransportConfig:
        """Return the settings with which the portal joins sources of a topic, likewise."""
        return split_transport(self.options.of_endpoint("receiver", topic), self.transport(topic))[0]


@attrs.frozen
class RouteTimes:
    """The times of route information between routers (R-085 to R-089), which a single router does not send."""

    interval_ns: int = SECOND
    check_ns: int = 750 * MILLISECOND
    timeout_ns: int = 4 * SECOND
    hops: int = 100
    backoff_ns: int = 5 * SECOND
    warning_ns: int = 10 * SECOND


@attrs.frozen
class RouterConfig:
    """A whole router.

    Attributes:
        name: Its name, unique among all routers.
        portals: Its portals, two or more.
        daemon: Log, pidfile, user and monitor of its process.
        routes: Times between routers.
        notices: Notices about the file.
        path: The file.
        elsewhere: Whether the file names interfaces that this host lacks.
    """

    name: str = ""
    portals: tuple[PortalConfig, ...] = ()
    daemon: DaemonPlan = DaemonPlan()
    routes: RouteTimes = RouteTimes()
    notices: tuple[ConfigProblem, ...] = ()
    path: str = ""
    elsewhere: bool = False

    @property
    def healing_ns(self) -> int:
        """Return the longest time without routes after the crash of a router on the only path (R-118)."""
        longest = max((portal.times.routes.longest_ns for portal in self.portals), default=0)
        return self.routes.timeout_ns + 2 * self.routes.check_ns + self.routes.backoff_ns + longest
