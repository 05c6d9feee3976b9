"""The configuration of a router, read and checked: its process, one portal for each domain and for each other router.

Times are nanoseconds, sizes bytes, rates bits a second. `router_files` reads it from XML and TOML files.
"""

import attrs

from stablecast.client import configured_options
from stablecast.config import option_kinds as k
from stablecast.config.client_configuration import NO_FILES, ClientConfiguration
from stablecast.config.context_options import ContextConfig
from stablecast.config.findings import ConfigProblem
from stablecast.config.option import option_field
from stablecast.config.plan import DaemonPlan
from stablecast.config.resolution_options import ResolutionSettings
from stablecast.config.transport_options import TransportConfig
from stablecast.config.transport_options import split as split_transport
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.routing.access import AccessList

STEP = 8
"""Numbers by which sizes of the window are counted, as documented."""
TEXT = k.TextKind("text")


@attrs.frozen
class RecordRate:
    """The rate of one kind of resolution records of a portal; 0: no limit."""

    bits: int = option_field("bps", k.NumberKind(0, k.MAX_SIZE, "bit/s"), "bits a second", 0)
    records: int = option_field("objects-per-second", k.NumberKind(0, k.MAX_UINT32), "records a second", 0)


@attrs.frozen
class InitialRequests:
    """The requests with which a portal learns the interest and the sources of its domain when it starts (R-030)."""

    duration_ns: int = option_field("duration", k.SECONDS, "time of requests at the start", 10 * SECOND)
    interval_ns: int = option_field("periodic-interval", k.SPAN_AT_LEAST_1, "time between them", SECOND)
    rate: RecordRate = RecordRate()


@attrs.frozen
class UseQueries:
    """The questions whether anybody still uses a topic or pattern (R-031 to R-034); `rate` is that of the portal."""

    interval_ns: int = option_field(
        "periodic-interval",
        k.SPAN_AT_LEAST_1,
        "time after the last sign of interest until the first question",
        300 * SECOND,
    )
    timeout_ns: int = option_field(
        "timeout", k.SPAN_AT_LEAST_1, "time after which an unanswered question is repeated", 3 * SECOND
    )
    tries: int = option_field("max", k.NumberKind(1, 1_000), "questions after which the interest has ended", 5)
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

    shortest_ns: int = option_field("min-interval", k.SPAN, "shortest time between messages", 100 * MILLISECOND)
    longest_ns: int = option_field("max-interval", k.SPAN_AT_LEAST_1, "longest time between messages", SECOND)
    rate: RecordRate = RecordRate(0, 50)


@attrs.frozen
class InterestMessages:
    """The messages that tell other routers of a domain what is wanted beyond this one (R-035)."""

    shortest_ns: int = option_field("min-interval", k.SPAN, "shortest time between messages", SECOND)
    longest_ns: int = option_field("max-interval", k.SPAN_AT_LEAST_1, "longest time between messages", 60 * SECOND)
    rate: RecordRate = RecordRate(500_000, 0)


@attrs.frozen
class RemoteInterest:
    """The lease of interest in topics that another router told of (R-036), and how the list is walked."""

    check_ns: int = option_field("check-interval", k.SPAN_AT_LEAST_1, "time between checks of one", 90 * SECOND)
    at_once: int = option_field("max-topics", k.NumberKind(1, k.MAX_COUNT), "most that are checked at once", 100)
    lease_ns: int = option_field("timeout", k.SPAN_AT_LEAST_1, "time after which interest ends", 300 * SECOND)


@attrs.frozen
class RemotePatterns(RemoteInterest):
    """The same of interest in patterns."""

    at_once: int = option_field("max-patterns", k.NumberKind(1, k.MAX_COUNT), "most that are checked at once", 100)


@attrs.frozen
class NumberWindow:
    """The window of topic numbers that finds duplicates, for each source and portal (R-168)."""

    size: int = option_field("size", k.NumberKind(STEP, 1 << 24), "numbers of the window", 16_384)
    increment: int = option_field("increment", k.NumberKind(STEP, 1 << 24), "numbers by which it moves", 2_048)


@attrs.frozen
class NameQueries:
    """The queries for names of contexts on behalf of other domains (R-224)."""

    interval_ns: int = option_field("interval", k.SPAN_AT_LEAST_1, "time between groups of queries", 200 * MILLISECOND)
    contexts: int = option_field("max-contexts", k.NumberKind(1, k.MAX_COUNT), "names in a group", 20)
    cycle_ns: int = option_field("periodic-interval", k.SPAN_AT_LEAST_1, "time between cycles", 300 * SECOND)
    timeout_ns: int = option_field("timeout", k.SECONDS, "time after which a name is forgotten", 900 * SECOND)


@attrs.frozen
class PortalTimes:
    initial: InitialRequests = InitialRequests()
    topic_uses: UseQueries = UseQueries()
    pattern_uses: UseQueries = UseQueries()
    routes: RouteMessages = RouteMessages()
    topic_interest: InterestMessages = InterestMessages()
    pattern_interest: InterestMessages = InterestMessages()
    remote_topics: RemoteInterest = RemoteInterest()
    remote_patterns: RemotePatterns = RemotePatterns()
    names: NameQueries = NameQueries()


@attrs.frozen
class PortalConfig:
    """One portal: the presence of the router in one domain.

    Attributes:
        times: Times and limits of its resolution.
        window: The window that finds duplicates.
        inbound, outbound: Access lists; None: everything is accepted.
        options: Options of its context, its proxy sources and its proxy receivers, the later layer above the earlier.
    """

    name: str = option_field("name", TEXT, "name of the portal within the router", "")
    domain: int = option_field(
        "domain-id", k.NumberKind(1, k.MAX_UINT32), "number of the domain; all routers use the same one", 0
    )
    cost: int = option_field("cost", k.NumberKind(1, k.MAX_COUNT), "cost of a path through the portal", 1)
    source_deletion_delay_ns: int = option_field(
        "source-deletion-delay", k.SPAN, "time for which a lost source keeps its proxies (R-062)", SECOND
    )
    max_queue_bytes: int = option_field(
        "max-queue", k.NumberKind(1, k.MAX_COUNT, "bytes"), "data that may wait to leave (R-164)", 1_000_000
    )
    times: PortalTimes = PortalTimes()
    window: NumberWindow = NumberWindow()
    inbound: AccessList | None = None
    outbound: AccessList | None = None
    options: ClientConfiguration = NO_FILES
    source_context_name: str = option_field(
        "source-context-name", TEXT, "context of proxy sources in the file of `xml-config`", ""
    )
    receiver_context_name: str = option_field(
        "receiver-context-name", TEXT, "context of proxy receivers in that file", ""
    )

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
class SignsOfLife:
    """The questions for a sign of life on a link (R-133); they measure the time to the other router and back."""

    interval_ns: int = option_field("interval", k.SPAN_AT_LEAST_1, "time between questions", SECOND)
    timeout_ns: int = option_field("timeout", k.SPAN_AT_LEAST_1, "silence after which the link has ended", 3 * SECOND)


@attrs.frozen
class PeerConfig:
    """One portal that leads to another router, over one connection.

    Attributes:
        address: The host of the other router, which this one connects to; empty: it listens.
        port: The port there, or here.
        interface: The address of this host; empty: any.
        signs: The times after which a silent link ends.
        window, inbound, outbound: As in `PortalConfig`.
    """

    name: str = option_field("name", TEXT, "name of the portal within the router", "")
    cost: int = option_field("cost", k.NumberKind(1, k.MAX_COUNT), "cost of a path through the portal", 1)
    source_deletion_delay_ns: int = option_field(
        "source-deletion-delay", k.SPAN, "time for which a lost source keeps its proxies (R-062)", SECOND
    )
    max_queue_bytes: int = option_field(
        "max-queue", k.NumberKind(1, k.MAX_COUNT, "bytes"), "data that may wait to leave (R-164)", 1_000_000
    )
    address: str = ""
    port: int = 0
    interface: str = ""
    signs: SignsOfLife = SignsOfLife()
    window: NumberWindow = NumberWindow()
    inbound: AccessList | None = None
    outbound: AccessList | None = None

    @property
    def silence_ns(self) -> int:
        """Return the time in which the end of a link is certainly known."""
        return self.signs.timeout_ns + self.signs.interval_ns


@attrs.frozen
class RouteTimes:
    """The times of route information between routers (R-085 to R-089), which a single router does not send."""

    interval_ns: int = option_field("propagation-interval", k.SPAN_AT_LEAST_1, "time between messages", SECOND)
    check_ns: int = option_field("check-interval", k.SPAN_AT_LEAST_1, "time between checks", 750 * MILLISECOND)
    timeout_ns: int = option_field("timeout", k.SPAN_AT_LEAST_1, "silence after which a router is out", 4 * SECOND)
    hops: int = option_field("max-hop-count", k.NumberKind(1, 255), "routers that a message passes", 100)
    backoff_ns: int = option_field("backoff-interval", k.SPAN, "wait after the last change", 5 * SECOND)
    warning_ns: int = option_field(
        "warning-interval", k.SPAN_AT_LEAST_1, "time of changes that is a warning", 10 * SECOND
    )


@attrs.frozen
class RouterConfig:
    """A whole router.

    Attributes:
        name: Its name, unique among all routers.
        portals: Its portals in domains.
        peers: Its portals to other routers; there are two of both at least.
        daemon: Log, pidfile, user and monitor of its process.
        routes: Times between routers.
        notices: Notices about the file.
        path: The file.
        elsewhere: Whether the file names interfaces that this host lacks.
    """

    name: str = ""
    portals: tuple[PortalConfig, ...] = ()
    peers: tuple[PeerConfig, ...] = ()
    daemon: DaemonPlan = DaemonPlan()
    routes: RouteTimes = RouteTimes()
    notices: tuple[ConfigProblem, ...] = ()
    path: str = ""
    elsewhere: bool = False

    @property
    def healing_ns(self) -> int:
        """Return the longest time without routes after the crash of a router on the only path (R-118)."""
        longest = max((portal.times.routes.longest_ns for portal in self.portals), default=0)
        if self.peers:
            return longest + max(peer.silence_ns for peer in self.peers)
        return self.routes.timeout_ns + 2 * self.routes.check_ns + self.routes.backoff_ns + longest
