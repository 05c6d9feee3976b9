"""The topics and patterns that one domain wants: a set, never a count.

A symbol is wanted by *holders*, the contexts that asked for it or answered that they use it, and by what a service
tells. The last holder that takes leave ends the interest at once. A holder that died takes no leave. So over UDP
each symbol has a lease: after a while without a sign of it, the domain is asked, and without an answer to several
questions the interest has ended (R-031, R-032).

Holders are a set, so a question that is heard twice changes nothing. A context that asked and is not remembered here,
because there are too many, makes the symbol *crowded*: then leaves end nothing, and only a question does.
"""

import re
from collections import deque
from collections.abc import Iterator

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine.timers import soonest
from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.patterns import expression
from stablecast.transports.resolution.records import check_topic, topic_bytes
from stablecast.transports.resolution.udp.schedule import Limiter
from stablecast.transports.resolution.udp.settings import MAX_PATTERNS, MAX_TOPICS, RateLimit
from stablecast.transports.wire.lbmr import Query, TopicQuery, WildcardQuery

MAX_HOLDERS = 64
"""Contexts that are remembered for one symbol."""

_RECORD_BYTES = 5
"""Bytes of a record of topic management besides its name."""


@attrs.frozen
class UseTimes:
    """The questions whether a symbol is still used; times in nanoseconds.

    Attributes:
        interval: Time after the last sign of interest until the first question.
        timeout: Time after which an unanswered question is repeated.
        tries: Questions after which the interest has ended.
    """

    interval: int = 300 * SECOND
    timeout: int = 3 * SECOND
    tries: int = 5


@attrs.define
class WantedSymbol:
    """One symbol.

    Attributes:
        due: The time of the next question.
        holders: The contexts that want it.
        crowded: Whether others want it, too.
        told: Whether a service tells of it, so that it needs no questions.
        asked: The questions since the last sign of it.
        waits: Whether the next question waits for the limit.
    """

    due: int
    holders: dict[bytes, None] = attrs.field(factory=dict)
    crowded: bool = False
    told: bool = False
    asked: int = 0
    waits: bool = False


@attrs.define
class DomainInterest:
    """The interest of one domain.

    Attributes:
        patterns: The expressions of the wanted patterns.
        refused: Patterns and topics that cannot be matched or sent, and those beyond the bounds.
    """

    topics: UseTimes = UseTimes()
    pattern_times: UseTimes = UseTimes()
    rate: RateLimit = RateLimit(records=500, bits=500_000)
    wanted: dict[Query, WantedSymbol] = attrs.field(factory=dict, init=False)
    patterns: dict[WildcardQuery, re.Pattern[str]] = attrs.field(factory=dict, init=False)
    agenda: KeyedDeadlines[Query] = attrs.field(factory=KeyedDeadlines, init=False)
    waiting: deque[Query] = attrs.field(factory=deque, init=False)
    limiter: Limiter = attrs.field(init=False)
    refused: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.limiter = Limiter(self.rate)

    def heard(self, query: Query, holder: bytes, now: int) -> bool:
        """Note a sign that a context wants a symbol, and return whether this is new. An empty holder is unknown."""
        new = query not in self.wanted
        if new and not self._admit(query):
            self.refused += 1
            return False
        found = self.wanted.setdefault(query, WantedSymbol(0))
        if not holder or (holder not in found.holders and len(found.holders) == MAX_HOLDERS):
            found.crowded = True
        else:
            found.holders[holder] = None
        found.asked, found.due = 0, now + self._times(query).interval
        self.agenda.arm(query, found.due)
        return new

    def tell(self, query: Query) -> bool:
        """Note that a service tells of interest in a symbol, and return whether it is new."""
        new = query not in self.wanted
        if new and not self._admit(query):
            self.refused += 1
            return False
        self.wanted.setdefault(query, WantedSymbol(0)).told = True
        return new

    def left(self, query: Query, holder: bytes, now: int) -> bool:
        """Note that a context took leave, and return whether nobody wants the symbol any more."""
        found = self.wanted.get(query)
        if found is None:
            return False
        known = found.holders.pop(holder, holder) is None
        if known and not found.holders and not found.crowded and not found.told:
            self._forget(query)
            return True
        if not found.asked:  # Those that are left may have died.
            found.due = now
            self.agenda.arm(query, now)
        return False

    def ends(self, query: Query) -> bool:
        """Note that no service tells of a symbol any more, and return whether nobody wants it."""
        found = self.wanted.get(query)
        if found is None:
            return False
        found.told = False
        if found.holders or found.crowded:
            return False
        self._forget(query)
        return True

    def handle_timeout(self, now: int) -> tuple[list[Query], list[Query]]:
        """Return the symbols to ask for now, and those that have ended."""
        ended: list[Query] = []
        while (query := self.agenda.pop(now)) is not None:
            found = self.wanted[query]
            if now < found.due:
                self.agenda.arm(query, found.due)
            elif found.told:
                found.holders.clear()  # Whoever wants it over UDP, too, asks again.
                found.crowded = False
            elif found.asked == self._times(query).tries:
                self._forget(query)
                ended.append(query)
            else:
                found.waits = True
                self.waiting.append(query)
        return list(self._ask(now)), ended

    def next_timeout(self) -> int | None:
        return soonest(self.agenda.next(), self.limiter.opens() if self.waiting else None)

    def matches(self, topic: str) -> bool:
        """Return whether the domain wants a topic, by its name or by a pattern."""
        return TopicQuery(topic) in self.wanted or any(found.search(topic) for found in self.patterns.values())

    def means(self, query: Query, topic: str) -> bool:
        return query.name == topic if isinstance(query, TopicQuery) else bool(self.patterns[query].search(topic))

    def _times(self, query: Query) -> UseTimes:
        return self.topics if isinstance(query, TopicQuery) else self.pattern_times

    def _admit(self, query: Query) -> bool:
        """Prepare a new symbol, and return whether it can be wanted here."""
        try:
            if isinstance(query, WildcardQuery):
                if len(self.patterns) < MAX_PATTERNS:
                    self.patterns[query] = expression(query.pattern, query.pattern_type)
                return query in self.patterns
            check_topic(query.name)
        except MisuseError:
            return False
        return len(self.wanted) - len(self.patterns) < MAX_TOPICS

    def _ask(self, now: int) -> Iterator[Query]:
        while self.waiting and self.limiter.admits(now):
            query = self.waiting.popleft()
            found = self.wanted.get(query)
            if found is None or not found.waits:
                continue  # It ended, or ended and began anew.
            found.waits = False
            if now < found.due:
                self.agenda.arm(query, found.due)  # Somebody asked for it while the question waited.
                continue
            name = query.name if isinstance(query, TopicQuery) else query.pattern
            self.limiter.spend(_RECORD_BYTES + len(topic_bytes(name)), now)
            found.asked += 1
            found.due = now + self._times(query).timeout
            self.agenda.arm(query, found.due)
            yield query

    def _forget(self, query: Query) -> None:
        del self.wanted[query]
        self.agenda.stop(query)
        if isinstance(query, WildcardQuery):
            del self.patterns[query]
