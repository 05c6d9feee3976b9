"""One connection to another router, from its hello to its end: all that either side has told on it.

Nothing outlives the connection: the next one begins with everything. So what a side has told and what the other has
heard are the same at each point of the stream, and the digest of a sign of life shows it.
"""

from hashlib import blake2b

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.routing.link_messages import SourceTold
from stablecast.transports.wire.lbmc import Message
from stablecast.transports.wire.lbmr import Query

BACKOFF_NS, MOST_BACKOFF_NS = 200 * MILLISECOND, 5 * SECOND
"""Time for which a link that broke soon after its beginning is left out of the map, and the most that it grows to."""

STEADY_NS = 10 * SECOND
"""Time after which a link counts as steady, and its next break as its first."""


@attrs.define
class RoundTrips:
    """Times from a question for a sign of life to its answer, in nanoseconds."""

    count: int = 0
    total: int = 0
    shortest: int = 0
    longest: int = 0
    last: int = 0

    def add(self, span: int) -> None:
        self.shortest = min(self.shortest, span) if self.count else span
        self.count += 1
        self.total += span
        self.longest, self.last = max(self.longest, span), span


@attrs.define
class Link:
    """A link.

    Attributes:
        node, name: Who is at the other end.
        since, heard_at: When it began, and when the newest message came, in nanoseconds.
        paths, told_paths: The name of the path from each domain that the other side has, and that it was told.
        interest, told: What the other side wants, by domain, and the domains that were told, by symbol.
        symbols: The number of all symbols of `interest`.
        sources: The sources that the other side repeats here.
        indexes: Their identities, by index.
        topics: Their identities, by topic.
        info: Their newest announcements, which come once, perhaps before the source is wanted.
        offered: Those of them whose path agrees, so that this router may repeat them.
        next_index: The index of the next source that is repeated to the other side.
        asked: The number of the last question for a sign of life.
        heard_interest, told_interest, heard_sources, told_sources: Sums for digests.
        differs_since: Since when the maps of both sides differ; None: they do not.
    """

    node: int
    name: str
    since: int
    heard_at: int
    paths: dict[int, int] = attrs.field(factory=dict)
    told_paths: dict[int, int] = attrs.field(factory=dict)
    interest: dict[int, dict[Query, None]] = attrs.field(factory=dict)
    told: dict[Query, dict[int, None]] = attrs.field(factory=dict)
    symbols: int = 0
    sources: dict[bytes, SourceTold] = attrs.field(factory=dict)
    indexes: dict[int, bytes] = attrs.field(factory=dict)
    topics: dict[str, dict[bytes, None]] = attrs.field(factory=dict)
    info: dict[bytes, Message] = attrs.field(factory=dict)
    offered: dict[bytes, None] = attrs.field(factory=dict)
    next_index: int = 1
    asked: int = 0
    heard_interest: int = 0
    told_interest: int = 0
    heard_sources: int = 0
    told_sources: int = 0
    differs_since: int | None = None


def sum_of(octets: bytes) -> int:
    """Return the part of one message in a digest, 64 bits; what is told and untold adds up to 0."""
    return int.from_bytes(blake2b(octets, digest_size=8).digest())
