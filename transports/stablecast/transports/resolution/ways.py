"""The ways to the sources of one topic: routers give a source further places, where it is joined instead.

A source is the life that its advertisement names, wherever that comes from. One place of each life is taken: the
cheapest, with the fewest routers. A source that moved with its host has left its old place. When a place goes, the next
one is taken; when a cheaper one is found, that is. Of equal places the one that was found last is taken: a router that
was killed says no more, and the stream of its proxy is known to have ended only after the transport's activity timeout.
A place whose stream ended may still be advertised: it is taken again only if there is no other.
"""

import attrs

from stablecast.core.protocol.messages import Incarnation
from stablecast.transports.resolution.records import SourceRecord

MAX_WAYS = 4_096
"""Places of one topic that are remembered; beyond them the oldest one is forgotten that is not taken."""

Name = tuple[str, int, int]
"""The name of a place: address, session ID, index."""


@attrs.define
class Ways:
    """The places of all sources of one topic, the one that is taken of each life, and those that failed.

    `since` tells in which order the known places were found first.
    """

    known: dict[Name, SourceRecord] = attrs.field(factory=dict)
    taken: dict[Incarnation, SourceRecord] = attrs.field(factory=dict)
    failed: dict[Name, None] = attrs.field(factory=dict)
    since: dict[Name, int] = attrs.field(factory=dict, init=False)
    _found: int = attrs.field(default=0, init=False)

    def found(self, record: SourceRecord) -> SourceRecord | None:
        """Note an advertised place, and return the one that is taken from now on; None: nothing changes."""
        self.known.pop(record.name, None)
        self.known[record.name] = record  # at the end, so that the oldest one is the first
        if record.name not in self.since:
            self._found += 1
            self.since[record.name] = self._found
        taken = self.taken.get(record.life)
        is_there = record.is_direct and record.name not in self.failed
        best = record if taken is None or is_there else self._best(record.life, record)
        self.taken[record.life] = best
        self._trim()
        return None if taken is not None and _what_counts(taken) == _what_counts(best) else best

    def gone(self, record: SourceRecord) -> tuple[bool, SourceRecord | None]:
        """Forget a place that a source left; return whether it may be joined, and the place that is taken instead."""
        self.known.pop(record.name, None)
        self.since.pop(record.name, None)
        taken = self.taken.get(record.life)
        if taken is None or taken.name != record.name:
            return taken is None, None
        return True, self._replace(record.life)

    def lost(self, address: str) -> tuple[list[SourceRecord], list[SourceRecord]]:
        """Forget the places at an address whose stream has ended; return them, and those that are taken instead."""
        gone = [record for record in self.known.values() if record.address == address]
        for record in gone:
            del self.known[record.name]
            del self.since[record.name]
            self.failed[record.name] = None
        while len(self.failed) > MAX_WAYS:
            del self.failed[next(iter(self.failed))]
        lives = [record.life for record in gone if self.taken.get(record.life, record).name == record.name]
        others = [self._replace(life) for life in lives if life in self.taken]
        return gone, [other for other in others if other is not None]

    def _replace(self, life: Incarnation) -> SourceRecord | None:
        lost = self.taken.pop(life)
        best = self._best(life, lost)
        if best is lost:
            return None
        self.taken[life] = best
        return best

    def _best(self, life: Incarnation, last: SourceRecord) -> SourceRecord:
        """Return the best known place of a life, `last` if there is none."""
        return min((record for record in self.known.values() if record.life == life), key=self._rank, default=last)

    def _rank(self, record: SourceRecord) -> tuple[bool, int, int, bool, int]:
        """Return what orders places, the best first: at equal cost the source itself, then what was found last."""
        failed = record.name in self.failed
        return failed, record.cost, record.hops, not record.is_direct, -self.since[record.name]

    def _trim(self) -> None:
        if len(self.known) <= MAX_WAYS:
            return
        idle = (name for name, record in self.known.items() if self.taken[record.life].name != name)
        oldest = next(idle, next(iter(self.known)))
        dropped = self.known.pop(oldest)
        del self.since[oldest]
        if self.taken[dropped.life].name == oldest:
            del self.taken[dropped.life]


def _what_counts(record: SourceRecord) -> SourceRecord:
    """Return a record without what services and older releases do not tell."""
    return attrs.evolve(record, origin=b"", cost=0, hops=0)
