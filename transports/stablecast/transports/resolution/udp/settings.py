"""What can be set about resolution over UDP; times in nanoseconds. The documented strategies are in `presets`.

Values that differ per topic are given with the source or the receiver (T-003); `ResolutionLimits` is of the context.
"""

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.wire.lbmr import MAX_DATAGRAM

MAX_SOURCES = 131_072
"""Sources of one context."""

MAX_TOPICS = 131_072
"""Topics that the receivers of one context want."""

MAX_PATTERNS = 250
"""Patterns that the receivers of one context want."""


ONE_FRAME = 1_400
"""Bytes of a datagram that is not cut up on its way."""

MIN_DATAGRAM = 500
"""Bytes that a datagram may at least have: the longest advertisement fits (resolver_datagram_max_size)."""

DOCUMENTED_DATAGRAM = 8_192
"""Bytes of a datagram that is taken unless another size was agreed on."""


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
    """How one source is advertised.

    Attributes:
        at_creation: Say it once when it is made, apart from the phases.
        at_once: Answer a query at once, in a datagram of its own; else with the next turn.
        at_end: Say it when the source is no more (best effort; T-015).
    """

    pace: PhasePace = ADVERTISING
    at_creation: bool = True
    at_once: bool = True
    at_end: bool = False


@attrs.frozen
class QueryOptions:
    """How one topic is asked for.

    Attributes:
        enough: Known sources at which asking stops (T-307); it goes on when one is lost.
        until_resolved: A topic with a live session is not asked for past its initial phase.
        report_after: Unanswered queries after which `NoSource` is reported; 0: never.
    """

    pace: PhasePace = QUERYING
    enough: int = 10_000_000
    until_resolved: bool = True
    report_after: int = 0


@attrs.frozen
class PatternOptions:
    """How a pattern is asked for, and the topics that it found once they are lost.

    Attributes:
        report_after: Unanswered queries for a lost topic after which it is left.
        linger: How long it stays then.
    """

    pace: PhasePace = attrs.field(default=attrs.evolve(PATTERN_QUERYING, initial=0))
    report_after: int = 10
    linger: int = SECOND


@attrs.frozen
class RateLimit:
    """How much may be said of one kind in a second, by the whole context; 0: no limit."""

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
        size: The most in both directions; the same in the whole network.
        sent: The most that is sent, instead.
        received: The most that is taken, instead.
    """

    size: int = 0
    sent: int = 0
    received: int = 0

    @property
    def most_sent(self) -> int:
        """Bytes that records share; unset it is one Ethernet frame: of what IP cuts up, one lost piece loses all."""
        return min(self.sent or self.size or ONE_FRAME, MAX_DATAGRAM)

    @property
    def most_received(self) -> int:
        """Bytes beyond which a datagram is dropped."""
        return self.received or self.size or DOCUMENTED_DATAGRAM


@attrs.frozen
class CacheOptions:
    """What a context remembers of sources that it heard of.

    Attributes:
        on: Whether it does at all; patterns need it.
        most: Sources at most; beyond that the one not heard of for the longest time goes.
        forget_after: Silence after which a source is forgotten that nobody wants; 0: never, as documented (T-015).
    """

    on: bool = True
    most: int = 1 << 20
    forget_after: int = 0


@attrs.frozen
class NameOptions:
    """How names of stores are resolved.

    Attributes:
        activity_timeout: Silence of a resolved name after which it is asked for again.
    """

    pace: PhasePace = NAMING
    activity_timeout: int = 60 * SECOND


@attrs.frozen
class RelayTimes:
    """How a context uses its relays.

    Attributes:
        keepalive: Between keepalives to a relay to which nothing else was sent.
        activity_timeout: Silence after which a relay is inactive; 0: never.
        check: Between looks at that; 0: none.
        change: About how long one active relay is used before the next one; half of that while none is active.
        force_alive: Keepalives are sent even without sources and receivers (T-217).
        only_ours: Take nothing from relays that are not configured.
    """

    keepalive: int = 500 * MILLISECOND
    activity_timeout: int = 1_000 * MILLISECOND
    check: int = 200 * MILLISECOND
    change: int = 200 * MILLISECOND
    force_alive: bool = False
    only_ours: bool = True


@attrs.frozen
class ResolutionConfig:
    """All of a context; `advertise`, `query` and `patterns` are for topics that have nothing of their own."""

    advertise: AdvertiseOptions = AdvertiseOptions()
    query: QueryOptions = QueryOptions()
    patterns: PatternOptions = PatternOptions()
    limits: ResolutionLimits = ResolutionLimits()
    cache: CacheOptions = CacheOptions()
    names: NameOptions = NameOptions()
    relays: RelayTimes = RelayTimes()
    datagrams: DatagramSizes = DatagramSizes()


SAFE = ResolutionConfig()
"""The documented phases, but sustaining never ends while something is missing: nobody goes quiet (T26)."""
