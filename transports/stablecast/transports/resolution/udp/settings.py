"""Settings of resolution over UDP; times in nanoseconds. `presets` has the documented strategies.

Options that differ by topic come with the source or the receiver (T-003). `ResolutionLimits` apply to the context.
"""

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.wire.lbmr import MAX_DATAGRAM, PatternLanguage

MAX_SOURCES = 131_072
"""Sources of one context."""

MAX_TOPICS = 131_072
"""Topics that the receivers of one context want."""

MAX_PATTERNS = 250
"""Patterns that the receivers of one context want."""


ONE_FRAME = 1_400
"""Bytes of a datagram that IP does not fragment."""

MIN_DATAGRAM = 500
"""The smallest datagram maximum: the longest advertisement fits (resolver_datagram_max_size)."""

DOCUMENTED_DATAGRAM = 8_192
"""Bytes of an accepted datagram, unless another size is set."""


@attrs.frozen
class PhasePace:
    """The phases of one topic.

    Attributes:
        tick: Grid of the initial phase; also its shortest interval.
        shortest: First interval of the initial phase; 0: there is none (T-115).
        longest: Interval at which it stops growing; 0: there is no initial phase.
        initial: Length of the initial phase; 0: it never ends.
        sustain_tick: Grid of the sustaining phase; also its shortest interval.
        sustain: Interval of the sustaining phase; 0: there is none.
        sustaining: Length of the sustaining phase; 0: it never ends.
    """

    tick: int
    shortest: int
    longest: int
    initial: int = 5 * SECOND
    sustain_tick: int = 100 * MILLISECOND
    sustain: int = SECOND
    sustaining: int = 0


ADVERTISING = PhasePace(tick=10 * MILLISECOND, shortest=10 * MILLISECOND, longest=500 * MILLISECOND)
"""0, 10, 30, 70, 150, 310, 630, 1130 ms, then every 500 ms to 5130 ms; then every second (T-102, T-103, T-109)."""

QUERYING = PhasePace(tick=20 * MILLISECOND, shortest=20 * MILLISECOND, longest=200 * MILLISECOND)
"""0, 20, 60, 140, 300, 500 ms, then every 200 ms to 5100 ms; then every second (T-107, T-112)."""

PATTERN_QUERYING = PhasePace(
    tick=30 * MILLISECOND, shortest=50 * MILLISECOND, longest=SECOND, initial=60 * SECOND, sustain=0
)
"""0, 50, 150, 350, 750, 1550 ms on a grid of 30 ms, then every second; there is no sustaining phase (T-032)."""

NAMING = PhasePace(tick=100 * MILLISECOND, shortest=100 * MILLISECOND, longest=SECOND, initial=0, sustain=0)
"""0, 100, 300, 700, 1500 ms, then every second until the name is resolved (T-205)."""


@attrs.frozen
class AdvertiseOptions:
    """Options of one source's advertisements.

    Attributes:
        at_creation: Advertise the source once at its creation, independent of the phases.
        at_once: Answer a query at once, in a datagram of its own; else with the next turn.
        at_end: Advertise the end of the source (best effort; T-015).
    """

    pace: PhasePace = ADVERTISING
    at_creation: bool = True
    at_once: bool = True
    at_end: bool = False


@attrs.frozen
class QueryOptions:
    """Options of one topic's queries.

    Attributes:
        enough: Known sources at which queries stop (T-307); they continue when one is lost.
        until_resolved: A topic with a live session is not queried after its initial phase.
        report_after: Unanswered queries before `SourceNotFound` is reported; 0: never.
    """

    pace: PhasePace = QUERYING
    enough: int = 10_000_000
    until_resolved: bool = True
    report_after: int = 0


@attrs.frozen
class PatternOptions:
    """Options of a pattern, of its queries, and of queries for found topics after the loss of their sources.

    Attributes:
        kind: The language of the pattern.
        report_after: Unanswered queries for a lost topic before it is abandoned.
        linger: Time that it stays after that.
    """

    pace: PhasePace = attrs.field(default=attrs.evolve(PATTERN_QUERYING, initial=0))
    report_after: int = 10
    linger: int = SECOND
    kind: int = PatternLanguage.PCRE


@attrs.frozen
class RateLimit:
    """The records of one kind that the whole context may send in a second; 0: no limit."""

    records: int = 0
    bits: int = 1_000_000


@attrs.frozen
class ResolutionLimits:
    """The limits of a context, as documented (T-104, T-108, T-111, T-114)."""

    initial_advertisements: RateLimit = RateLimit(records=1_000)
    sustaining_advertisements: RateLimit = RateLimit()
    initial_queries: RateLimit = RateLimit(records=1_000)
    sustaining_queries: RateLimit = RateLimit()
    pattern_queries: RateLimit = RateLimit()


@attrs.frozen
class DatagramSizes:
    """Bytes of a datagram; 0: not set.

    Attributes:
        size: The maximum in both directions; the same in the whole network.
        sent: The maximum of sent datagrams, instead.
        received: The maximum of accepted datagrams, instead.
    """

    size: int = 0
    sent: int = 0
    received: int = 0

    @property
    def most_sent(self) -> int:
        """Bytes that records share. The default is one Ethernet frame: one lost IP fragment loses the datagram."""
        return min(self.sent or self.size or ONE_FRAME, MAX_DATAGRAM)

    @property
    def most_received(self) -> int:
        """Bytes beyond which a datagram is dropped."""
        return self.received or self.size or DOCUMENTED_DATAGRAM


@attrs.frozen
class CacheOptions:
    """Options of a context's cache of sources.

    Attributes:
        on: True if there is a cache; patterns need it.
        most: The most sources; beyond that the longest silent one is removed.
        forget_after: Silence after which an unwanted source is removed; 0: never, as documented (T-015).
    """

    on: bool = True
    most: int = 1 << 20
    forget_after: int = 0


@attrs.frozen
class NameOptions:
    """Options of queries for names of stores.

    Attributes:
        activity_timeout: Silence of a resolved name after which queries for it begin again.
    """

    pace: PhasePace = NAMING
    activity_timeout: int = 60 * SECOND


@attrs.frozen
class RelayTimes:
    """Times of a context's relays.

    Attributes:
        keepalive: Between keepalives to a relay to which nothing else was sent.
        activity_timeout: Silence after which a relay is inactive; 0: never.
        check: Between checks for silence; 0: none.
        change: Approximate turn of one active relay; half of that while none is active.
        force_alive: Send keepalives even without sources and receivers (T-217).
        only_ours: Accept nothing from relays that are not configured.
    """

    keepalive: int = 500 * MILLISECOND
    activity_timeout: int = 1_000 * MILLISECOND
    check: int = 200 * MILLISECOND
    change: int = 200 * MILLISECOND
    force_alive: bool = False
    only_ours: bool = True


FROM_ANYBODY = -1
"""In place of seconds: the number is learnt from any context."""


@attrs.frozen
class DomainOptions:
    """Whose number a context believes, and hands on.

    Attributes:
        number: The number of the domain, if the context is given it; 0: it is learnt.
        handed_on: How long after a router was heard the number is handed on, ns; 0: only routers are believed, and the
            number is handed on for ever; `FROM_ANYBODY`: every context is believed, and the number is handed on for
            ever.
    """

    number: int = 0
    handed_on: int = 0


@attrs.frozen
class ResolutionConfig:
    """The configuration of a context; `advertise`, `query` and `patterns` are defaults for topics without options."""

    advertise: AdvertiseOptions = AdvertiseOptions()
    query: QueryOptions = QueryOptions()
    patterns: PatternOptions = PatternOptions()
    limits: ResolutionLimits = ResolutionLimits()
    cache: CacheOptions = CacheOptions()
    names: NameOptions = NameOptions()
    relays: RelayTimes = RelayTimes()
    datagrams: DatagramSizes = DatagramSizes()
    domains: DomainOptions = DomainOptions()


SAFE = ResolutionConfig(advertise=AdvertiseOptions(at_end=True))
"""The documented phases, but sustaining never ends while something is missing: nobody becomes quiescent (T26).

Sources advertise their end, because a transport session that other sources share does not end with them (T-015).
"""
