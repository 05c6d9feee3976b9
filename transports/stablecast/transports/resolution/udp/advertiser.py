"""The source side: advertises the context's sources, and answers queries for them.

* A source is advertised at its creation, then through its phases (`phases`), under the limits of the context.
* A query for its topic, or for a matching pattern, is answered at once, in a datagram of its own (T-306). In the
  initial phase this moves no turn. Later it starts a whole sustaining phase, and counts as its first turn (6.14 as
  observed). Without `at_once` the next turn is the answer (T-106).
* An answer with many sources, or to a pattern whose cost is not bounded, obeys the limits like any turn.
* A source ends in silence, unless its final advertisement is switched on. Then it is sent once, with a time to live of
  0 (ours; the documentation names no form). Routers repeat it (R-061): receivers of a proxy must not wait until their
  transport times out, because one datagram was lost.
"""

from collections import deque
from collections.abc import Iterable
from typing import assert_never

import attrs

from stablecast.core.machine.timers import soonest
from stablecast.core.machine.units import MILLISECOND
from stablecast.transports.resolution.patterns import foreign
from stablecast.transports.resolution.records import ENDED_TTL, advertisement
from stablecast.transports.resolution.udp.effects import Transmit
from stablecast.transports.resolution.udp.inputs import AddSource, AdvertiserInput, RecordsReceived, RemoveSource
from stablecast.transports.resolution.udp.phases import Phase
from stablecast.transports.resolution.udp.record_batches import share, size
from stablecast.transports.resolution.udp.schedule import Limiter, TurnSchedule
from stablecast.transports.resolution.udp.settings import MAX_SOURCES, ONE_FRAME, AdvertiseOptions, ResolutionLimits
from stablecast.transports.wire import lbmr

FIRST_TTL = 16
LATER_TTL = 60
"""The product's time-to-live fields: 16 in the very first TIR of a source, 60 in all others. Receivers ignore them."""

MOST_AT_ONCE = 256
"""Sources in an answer that does not wait for the limits."""

FINALS, FINAL_GAP = 3, 100 * MILLISECOND
"""Final advertisements of a router's source, and the time from one to the next."""

MAX_PATTERNS_REMEMBERED = 64
"""Foreign patterns whose matches are cached between queries."""


@attrs.frozen
class AdvertisedSource:
    """A source: its advertisement, the size of that in bytes, and its options."""

    tir: lbmr.Advertisement
    octets: int
    options: AdvertiseOptions


@attrs.define
class Advertiser:
    """Advertises the sources of one context.

    Attributes:
        instance: The 8 bytes that name the context.
        most_bytes: Bytes of a datagram that records share.
        finals: Final advertisements of a source.
        repeated: Final advertisements that are sent again, in the order of their times (ns), with how often.
        singles: Advertisements to send once, as soon as the limit permits: of new sources and of ended ones.
        meant: The sources that match recent patterns, until sources come or go; None: any source may match.
    """

    instance: bytes
    options: AdvertiseOptions = AdvertiseOptions()
    limits: ResolutionLimits = ResolutionLimits()
    most_bytes: int = ONE_FRAME
    finals: int = 1
    repeated: deque[tuple[int, int, lbmr.Advertisement, int]] = attrs.field(
        factory=lambda: deque(maxlen=MAX_SOURCES), init=False
    )
    sources: dict[int, AdvertisedSource] = attrs.field(factory=dict, init=False)
    topics: dict[str, list[int]] = attrs.field(factory=dict, init=False)
    rounds: TurnSchedule[int] = attrs.field(init=False)
    singles: deque[tuple[lbmr.Advertisement, int]] = attrs.field(factory=lambda: deque(maxlen=MAX_SOURCES), init=False)
    meant: dict[lbmr.WildcardQuery, list[int] | None] = attrs.field(factory=dict, init=False)
    outbox: list[Transmit] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        limits = self.limits
        self.rounds = TurnSchedule(Limiter(limits.initial_advertisements), Limiter(limits.sustaining_advertisements))

    def __bool__(self) -> bool:
        return bool(self.sources)

    def receive(self, event: AdvertiserInput, now: int) -> None:
        """Feed one input.

        Raises:
            MisuseError: If a source cannot be sent on the wire, exists already, or exceeds the bound.
        """
        match event:
            case AddSource():
                self._add(event, now)
            case RemoveSource():
                self._remove(event.key, now)
            case RecordsReceived(packet):
                for query in dict.fromkeys(packet.queries):
                    self._answer(query, now)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Advertise the sources whose turn it is."""
        while self.repeated and self.repeated[0][0] <= now:
            _, times, final, octets = self.repeated.popleft()
            self._end(final, octets, times, now)
        self._say_singles(now)
        self._transmit(self.rounds.take_turns(now))

    def next_timeout(self) -> int | None:
        again = self.repeated[0][0] if self.repeated else None
        return soonest(self.rounds.next(), self.rounds.initial.opens() if self.singles else None, again)

    def take_effects(self) -> list[Transmit]:
        effects, self.outbox = self.outbox, []
        return effects

    def advertised(self, query: lbmr.Query) -> tuple[lbmr.Advertisement, ...]:
        """Return the advertisements of the sources that match a query of the same context."""
        return tuple(self.sources[key].tir for key in self._meant(query) or ())

    def wake(self, now: int) -> None:
        """Advertise quiescent sources again, by request of another context (T26)."""
        for key in self.sources:
            if self.rounds.phase(key) is Phase.QUIESCENT:
                self.rounds.asked(key, now, answered=False)

    def find(self, event: RemoveSource) -> lbmr.Advertisement | None:
        source = self.sources.get(event.key)
        return None if source is None else source.tir

    def _add(self, event: AddSource, now: int) -> None:
        event.check(self.sources)
        key, tir = event.key, advertisement(event.topic, event.record(self.instance), LATER_TTL)
        source = self.sources[key] = AdvertisedSource(tir, size(tir), event.options or self.options)
        self.topics.setdefault(event.topic, []).append(key)
        self.meant.clear()
        if source.options.at_creation:
            self.singles.append((attrs.evolve(tir, ttl=FIRST_TTL), source.octets))
            self._say_singles(now)
        self.rounds.begin(key, source.options.pace, source.octets, now)

    def _remove(self, key: int, now: int) -> None:
        source = self.sources.pop(key, None)
        if source is None:
            return
        self.rounds.stop(key)
        topic = source.tir.name
        self.topics[topic].remove(key)
        if not self.topics[topic]:
            del self.topics[topic]
        self.meant.clear()
        if source.options.at_end:
            final = attrs.evolve(source.tir, ttl=ENDED_TTL)
            self._end(final, source.octets, self.finals, now)
            self._say_singles(now)

    def _end(self, final: lbmr.Advertisement, octets: int, times: int, now: int) -> None:
        """Send a final advertisement, and again until it was sent so many times."""
        self.singles.append((final, octets))
        if times > 1:
            self.repeated.append((now + FINAL_GAP, times - 1, final, octets))

    def _say_singles(self, now: int) -> None:
        limiter = self.rounds.initial
        said: list[tuple[lbmr.Advertisement, int]] = []
        while self.singles and limiter.admits(now):
            said.append(self.singles.popleft())
            limiter.spend(said[-1][1], now)
        self.outbox += (Transmit(advertisements=group) for group in share(said, self.most_bytes))

    def _answer(self, query: lbmr.Query, now: int) -> None:
        keys = self._meant(query)
        whole = keys is not None and len(keys) <= MOST_AT_ONCE
        at_once = [key for key in keys or () if self.sources[key].options.at_once] if whole else []
        self._transmit(at_once)
        answered = set(at_once)
        for key in self.sources if keys is None else keys:
            self.rounds.asked(key, now, answered=key in answered)

    def _meant(self, query: lbmr.Query) -> list[int] | None:
        """Return the sources that match a query; None: any source may match."""
        if isinstance(query, lbmr.TopicQuery):
            return self.topics.get(query.name, [])
        if query in self.meant:
            return self.meant[query]
        found = foreign(query)
        keys = None if found is None else [k for topic, ks in self.topics.items() if found.search(topic) for k in ks]
        if len(self.meant) == MAX_PATTERNS_REMEMBERED:
            del self.meant[next(iter(self.meant))]
        self.meant[query] = keys
        return keys

    def _transmit(self, keys: Iterable[int]) -> None:
        records = ((source.tir, source.octets) for source in map(self.sources.__getitem__, keys))
        self.outbox += (Transmit(advertisements=group) for group in share(records, self.most_bytes))
