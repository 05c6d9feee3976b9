"""The receiver side: queries for the topics of the context's receivers, and reports of their sources.

* Known sources are reported at once (T-028). Then queries for the topic follow its phases (T-029).
* `enough` known sources stop the queries in any phase, until one is lost (T-307). With `until_resolved`, a live session
  ends the sustaining phase. A lost session resumes it (T-113).
* Queries for a pattern have one long phase (T-032). A topic that the pattern finds is treated like a topic with a
  receiver of its own. After the loss of its sources it is queried. If there is no answer, it lingers, and is abandoned.
* A source is reported once, and again after `Unresolved`.
"""

import re
from collections.abc import Iterable
from typing import assert_never

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine.timers import soonest
from stablecast.core.protocol.messages import Incarnation
from stablecast.transports.resolution import records
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.patterns import expression
from stablecast.transports.resolution.udp import inputs
from stablecast.transports.resolution.udp import settings as udp
from stablecast.transports.resolution.udp.cache import SourceCache
from stablecast.transports.resolution.udp.effects import (
    Abandoned,
    Discovered,
    QuerierEffect,
    SourceNotFound,
    Transmit,
    Withdrawn,
)
from stablecast.transports.resolution.udp.phases import Phase
from stablecast.transports.resolution.udp.record_batches import share
from stablecast.transports.resolution.udp.schedule import Limiter, TurnSchedule
from stablecast.transports.wire import lbmr

MAX_REPORTED = 1_024
"""Reported sources of one topic that are remembered; beyond them the oldest may be reported again."""

Known = tuple[str, int, int]
"""The name of a source: address, session ID, index."""


@attrs.define
class WantedTopic:
    """One wanted topic.

    Attributes:
        wanted: True if it has a receiver of its own; otherwise a pattern found it.
        since: Start of the time without live session (ns); None: it has one.
        known: The reported sources, each with its life, which routers repeat at other places.
        unanswered: Queries since the last answer.
        missed: Address of a source that was found and could not be joined; empty: none since the last live session.
        linger: Time from the last unanswered query until a pattern's topic is abandoned (ns).
    """

    options: udp.QueryOptions
    wanted: bool
    since: int | None
    known: dict[Known, Incarnation] = attrs.field(factory=dict)
    unanswered: int = 0
    missed: str = ""
    linger: int = 0

    @property
    def satisfied(self) -> bool:
        """Return whether enough sources are known, so that queries stop (T-307)."""
        return len(self.known) >= self.options.enough <= len(set(self.known.values()))


@attrs.define
class WantedPattern:
    query: lbmr.WildcardQuery
    expression: re.Pattern[str]
    options: udp.PatternOptions


@attrs.define
class Querier:
    """Queries the topics and patterns of a context's receivers; `most_bytes` limits a datagram of queries.

    Attributes:
        leaving: The topics of patterns that linger without a source, until they are abandoned.
    """

    options: udp.QueryOptions = udp.QueryOptions()
    pattern_options: udp.PatternOptions = udp.PatternOptions()
    limits: udp.ResolutionLimits = udp.ResolutionLimits()
    cache_options: udp.CacheOptions = udp.CacheOptions()
    most_bytes: int = udp.ONE_FRAME
    interests: dict[str, WantedTopic] = attrs.field(factory=dict, init=False)
    patterns: dict[str, WantedPattern] = attrs.field(factory=dict, init=False)
    leaving: KeyedDeadlines[str] = attrs.field(factory=KeyedDeadlines, init=False)
    cache: SourceCache = attrs.field(init=False)
    rounds: TurnSchedule[str] = attrs.field(init=False)
    pattern_rounds: TurnSchedule[str] = attrs.field(init=False)
    outbox: list[QuerierEffect] = attrs.field(factory=list, init=False)
    unusable: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        limits = self.limits
        self.cache = SourceCache(self.cache_options)
        self.rounds = TurnSchedule(Limiter(limits.initial_queries), Limiter(limits.sustaining_queries))
        patterns = Limiter(limits.pattern_queries)
        self.pattern_rounds = TurnSchedule(patterns, patterns)

    def __bool__(self) -> bool:
        return bool(self.interests or self.patterns)

    def receive(self, event: inputs.QuerierInput, now: int) -> None:
        """Feed one input.

        Raises:
            MisuseError: If a topic or pattern cannot be sent on the wire, is malformed, or exceeds a bound.
        """
        match event:
            case inputs.AddReceiver():
                self._add(event, now)
            case inputs.RemoveReceiver(topic):
                self._remove(topic, now)
            case inputs.AddPattern():
                self._add_pattern(event, now)
            case inputs.RemovePattern(pattern):
                self._remove_pattern(pattern)
            case inputs.Resolved(topic):
                self._on_resolved(topic)
            case inputs.Unresolved(topic):
                self._on_unresolved(topic, now)
            case inputs.SourceLost():
                self._on_lost(event, now)
            case inputs.RecordsReceived(packet):
                for tir in packet.advertisements:
                    self._on_advertisement(tir, packet, now)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Query the topics and patterns whose turn it is, and abandon topics of patterns without sources."""
        topics = self.rounds.take_turns(now)
        self._ask((lbmr.TopicQuery(topic), len(records.topic_bytes(topic)) + 1) for topic in topics)
        for topic in topics:
            self._asked(topic, now)
        self._ask(
            (self.patterns[name].query, len(records.topic_bytes(name)) + 2)
            for name in self.pattern_rounds.take_turns(now)
        )
        while (left := self.leaving.pop(now)) is not None:
            self._drop(left)
            self.outbox.append(Abandoned(left))
        self.cache.expire(now)

    def next_timeout(self) -> int | None:
        return soonest(self.rounds.next(), self.pattern_rounds.next(), self.cache.next(), self.leaving.next())

    def take_effects(self) -> list[QuerierEffect]:
        effects, self.outbox = self.outbox, []
        return effects

    def wants(self, query: lbmr.Query) -> bool:
        """Return whether a receiver of this context wants the topic, or the pattern, that another asks for."""
        if isinstance(query, lbmr.WildcardQuery):
            found = self.patterns.get(query.pattern)
            return found is not None and found.query == query
        interest = self.interests.get(query.name)
        return interest is not None and interest.wanted

    def wake(self, now: int, *, topics: bool, patterns: bool) -> None:
        """Query quiescent topics or patterns again, by request of another context (T26)."""
        if topics:
            for topic, interest in self.interests.items():
                if self.rounds.phase(topic) is Phase.QUIESCENT and not interest.satisfied:
                    self.rounds.asked(topic, now, answered=False)
        if patterns:
            for name, pattern in self.patterns.items():
                if self.pattern_rounds.phase(name) is Phase.QUIESCENT:
                    self.pattern_rounds.begin(name, pattern.options.pace, len(records.topic_bytes(name)) + 2, now)

    # Wanted topics and patterns.

    def _add(self, event: inputs.AddReceiver, now: int) -> None:
        topic = event.topic
        records.check_topic(topic)
        if topic not in self.interests and len(self.interests) == udp.MAX_TOPICS:
            raise MisuseError(f"a context receives at most {udp.MAX_TOPICS} topics: remove one or use another context")
        self.leaving.stop(topic)
        interest = self.interests[topic] = WantedTopic(event.options or self.options, wanted=True, since=now)
        self.rounds.begin(topic, interest.options.pace, len(records.topic_bytes(topic)) + 1, now)
        self._report_known(topic, interest)

    def _remove(self, topic: str, now: int) -> None:
        if topic in self.interests:
            self._drop(topic)
            if self.cache.of(topic) and self._is_matched(topic):
                self._report_known(topic, self._adopt(topic, now))

    def _add_pattern(self, event: inputs.AddPattern, now: int) -> None:
        found = expression(event.pattern, event.kind)
        if event.pattern not in self.patterns and len(self.patterns) == udp.MAX_PATTERNS:
            raise MisuseError(
                f"a context receives at most {udp.MAX_PATTERNS} patterns: remove one or use another context"
            )
        query = lbmr.WildcardQuery(event.kind, event.pattern)
        options = event.options or self.pattern_options
        self.patterns[event.pattern] = WantedPattern(query, found, options)
        self.pattern_rounds.begin(event.pattern, options.pace, len(records.topic_bytes(event.pattern)) + 2, now)
        for topic in self.cache.matching(found):
            interest = self.interests.get(topic) or self._adopt(topic, now)
            interest.known.clear()
            self._report_known(topic, interest)

    def _remove_pattern(self, name: str) -> None:
        if self.patterns.pop(name, None) is not None:
            self.pattern_rounds.stop(name)
            for topic in [topic for topic, interest in self.interests.items() if not interest.wanted]:
                if not self._is_matched(topic):
                    self._drop(topic)

    def _adopt(self, topic: str, now: int) -> WantedTopic:
        """Add a topic that a pattern matches. It is not queried as long as it has sources."""
        options = next(pattern.options for pattern in self.patterns.values() if pattern.expression.search(topic))
        query = attrs.evolve(self.options, report_after=options.report_after, enough=1)
        interest = self.interests[topic] = WantedTopic(query, wanted=False, since=now, linger=options.linger)
        self.rounds.begin(topic, query.pace, len(records.topic_bytes(topic)) + 1, now)
        self.rounds.enough(topic)
        return interest

    def _drop(self, topic: str) -> None:
        del self.interests[topic]
        self.leaving.stop(topic)
        self.rounds.stop(topic)

    def _is_matched(self, topic: str) -> bool:
        return any(pattern.expression.search(topic) for pattern in self.patterns.values())

    # Sessions of receivers.

    def _on_resolved(self, topic: str) -> None:
        interest = self.interests.get(topic)
        if interest is not None:
            interest.since, interest.missed = None, ""
            self._rest(topic, interest)

    def _on_unresolved(self, topic: str, now: int) -> None:
        interest = self.interests.get(topic)
        if interest is None and self._is_matched(topic) and len(self.interests) < udp.MAX_TOPICS:
            interest = self._adopt(topic, now)  # A service found its source, or it was abandoned meanwhile.
        if interest is not None:
            if interest.since is not None and interest.known:
                # Without a live session nothing was lost: the source that was found did not let the receiver in.
                interest.missed = next(reversed(interest.known))[0]
            interest.since = now
            interest.known.clear()
            self.cache.forget_topic(topic)
            self.rounds.asked(topic, now, answered=False)

    def _on_lost(self, event: inputs.SourceLost, now: int) -> None:
        interest = self.interests.get(event.topic)
        if interest is None:
            return
        for address, session_id, index in list(interest.known):
            if (session_id, index) == (event.session_id, event.index):
                self._lose(event.topic, interest, records.SourceRecord(address, session_id, index), now)

    def _lose(self, topic: str, interest: WantedTopic, record: records.SourceRecord, now: int) -> None:
        """Forget a source, and query for others unless enough are left (T-307)."""
        del interest.known[record.address, record.session_id, record.index]
        self.cache.forget(topic, record)
        if not interest.satisfied:
            self.rounds.asked(topic, now, answered=False)

    def _asked(self, topic: str, now: int) -> None:
        interest = self.interests[topic]
        interest.unanswered += 1
        if interest.unanswered == interest.options.report_after:
            self.outbox.append(SourceNotFound(topic, interest.unanswered, left=not interest.wanted))
            if not interest.wanted and interest.since is not None:
                self.leaving.arm(topic, now + interest.linger)
        self._rest(topic, interest)

    def _rest(self, topic: str, interest: WantedTopic) -> None:
        """Stop the queries for a topic that is resolved."""
        resolved = interest.options.until_resolved and interest.since is None
        if resolved and self.rounds.phase(topic) is Phase.SUSTAINING:
            self.rounds.enough(topic)

    def _ask(self, queries: Iterable[tuple[lbmr.Query, int]]) -> None:
        self.outbox += (Transmit(queries=group) for group in share(queries, self.most_bytes))

    # Input from the resolution domain.

    def _on_advertisement(self, tir: lbmr.Advertisement, packet: lbmr.Packet, now: int) -> None:
        topic = tir.name
        interest = self.interests.get(topic)
        record = records.source_record(tir, packet.options)
        if record is None:
            self.unusable += interest is not None or self._is_matched(topic)
            return
        if tir.ttl == records.ENDED_TTL:
            self._on_ended(topic, record, now)
            return
        self.cache.heard(topic, record, now)
        if interest is None and self._is_matched(topic) and len(self.interests) < udp.MAX_TOPICS:
            interest = self._adopt(topic, now)
        if interest is not None:
            interest.unanswered = 0
            self.leaving.stop(topic)
            self._report(topic, interest, record)

    def _on_ended(self, topic: str, record: records.SourceRecord, now: int) -> None:
        """Handle the final advertisement of a source."""
        self.cache.forget(topic, record)
        interest = self.interests.get(topic)
        if interest is not None and (record.address, record.session_id, record.index) in interest.known:
            self._lose(topic, interest, record, now)
            self.outbox.append(Withdrawn(topic, record))

    def _report_known(self, topic: str, interest: WantedTopic) -> None:
        for record in self.cache.of(topic):
            self._report(topic, interest, record)

    def _report(self, topic: str, interest: WantedTopic, record: records.SourceRecord) -> None:
        known = (record.address, record.session_id, record.index)
        if known in interest.known:
            return
        if len(interest.known) == MAX_REPORTED:
            del interest.known[next(iter(interest.known))]
        interest.known[known] = record.life
        self.outbox.append(Discovered(topic, record))
        if interest.satisfied:
            self.rounds.enough(topic)
