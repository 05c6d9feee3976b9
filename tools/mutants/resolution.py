"""Faults in topic resolution: the phases over UDP, and lifetimes at an SRS and at its contexts."""

from typing import Final

from tools.mutants.mutant import Graph, Mutant, Test

PHASES: Final = Graph("ResolutionPhases/graph_safe")
WIDE: Final = Graph("ResolutionPhases/graph_wide")
SRS: Final = Graph("SrsLifetime/graph_small")


def fault(name: str, module: str, before: str, after: str, killer: Graph | Test) -> Mutant:
    """Return a fault in the module `transports/resolution/MODULE`."""
    return Mutant(name, f"transports/resolution/{module}", before, after, killer)


RESOLUTION: Final = (
    fault(
        "the-last-turn-of-a-phase-is-skipped",
        "udp/phases",
        "self.planned >= self.ends",
        "self.planned + self.interval >= self.ends",
        PHASES,
    ),
    fault("intervals-triple", "udp/phases", "min(2 * self.interval, longest)", "min(3 * self.interval, longest)", WIDE),
    fault(
        "an-answer-does-not-count-as-a-sustaining-turn",
        "udp/phases",
        "        if answered:\n            self.planned += self.interval\n",
        "        if False:\n            self.planned += self.interval\n",
        PHASES,
    ),
    fault(
        "a-requested-turn-keeps-the-longest-interval",
        "udp/phases",
        "if self.gap and self.planned - now > self.gap // 2:",
        "if self.gap and self.planned - now < self.gap // 2:",
        WIDE,
    ),
    fault(
        "only-answers-wake-a-waiting-topic",
        "udp/schedule",
        "if topic.seen != NEVER and not answered:",
        "if not answered:",
        PHASES,
    ),
    fault(
        "answers-do-not-count-as-turns",
        "udp/advertiser",
        "answered=key in answered",
        "answered=False",
        PHASES,
    ),
    fault(
        "a-receiver-without-a-session-stops-asking",
        "udp/querier",
        "resolved = interest.options.until_resolved and interest.since is None",
        "resolved = interest.options.until_resolved",
        PHASES,
    ),
    fault(
        "a-pattern-does-not-search-the-cache",
        "udp/querier",
        "for topic in self.cache.matching(found):",
        "for topic in ():",
        Test("transports/resolution/udp/test_querier.py::test_a_pattern_is_asked_for_and_finds_topics"),
    ),
    fault(
        "one-more-source-is-needed",
        "udp/querier",
        "return len(self.known) >= self.options.enough",
        "return len(self.known) > self.options.enough",
        Graph("ResolutionPhases/graph_enough"),
    ),
    fault(
        "a-lifetime-ends-when-it-begins",
        "srs/client",
        "return span > 0 and lost_at is not None and now >= lost_at + span",
        "return span > 0 and lost_at is not None",
        SRS,
    ),
    fault(
        "records-of-old-connections-are-kept",
        "srs/client",
        "return self._drop(lambda mark: mark != self.connection, lambda mark: mark != self.connection)",
        "return Dropped()",
        SRS,
    ),
    fault(
        "a-repeated-hello-is-accepted",
        "srs/client",
        "0 < counter <= self.counter",
        "False",
        Graph("SrsLifetime/graph_late"),
    ),
    fault(
        "the-removal-of-a-source-is-not-sent",
        "srs/service",
        "        self._tell(source, srs.ended(source.octets))\n",
        "",
        SRS,
    ),
    fault(
        "a-taken-over-session-keeps-its-old-client",
        "srs/service",
        "            before.client = None\n",
        "",
        Graph("SrsLifetime/graph_silence"),
    ),
    fault(
        "a-lost-transport-ends-any-source",
        "srs/service",
        "if owner is None or not owner.is_down(otid):",
        "if owner is None:",
        Graph("SrsLifetime/graph_loss"),
    ),
    fault(
        "a-context-gets-its-own-sources",
        "srs/directory",
        "        told.pop(source.owner, None)\n",
        "",
        Graph("SrsLifetime/graph_both"),
    ),
    fault(
        "unchanged-records-are-sent-again",
        "srs/directory",
        "            return False\n",
        "            return True\n",
        SRS,
    ),
    fault(
        "silence-may-last-twice-the-lifetime",
        "srs/session",
        "max(setup.lifetime_ms * MILLISECOND, MIN_LIFETIME)",
        "max(2 * setup.lifetime_ms * MILLISECOND, MIN_LIFETIME)",
        Graph("SrsLifetime/graph_silence"),
    ),
    fault(
        "an-earlier-deadline-is-ignored",
        "deadlines",
        "if present is None or due < present:",
        "if present is None:",
        Graph("SrsLifetime/graph_silence"),
    ),
    fault(
        "any-life-of-a-service-settles-a-link",
        "srs/service_link",
        "self.settled = self.settled or self.epoch",
        "self.settled = self.epoch",
        Graph("SrsLifetime/graph_restart"),
    ),
    fault(
        "withdrawals-are-not-counted",
        "srs/service_link",
        "self.unanswered[interest] = self.unanswered.get(interest, 0) + 1",
        "self.unanswered[interest] = 0",
        Graph("SrsLifetime/graph_interest"),
    ),
    fault(
        "a-renamed-source-keeps-its-old-connection",
        "srs/known_sources",
        "present.holders[holder] = connection",
        "present.holders.setdefault(holder, connection)",
        SRS,
    ),
    fault(
        "records-from-before-an-answer-count",
        "srs/context",
        "if exact in self.topics and exact not in late:",
        "if exact in self.topics:",
        Graph("SrsLifetime/graph_interest"),
    ),
    fault(
        "a-topic-ends-with-its-first-source",
        "udp/cache",
        "        if not sources:\n",
        "        if True:\n",
        Test("transports/resolution/udp/test_cache.py::test_sources_by_topic"),
    ),
    fault(
        "a-doubtful-topic-makes-all-topics-doubtful",
        "udp/cache",
        "for key in list(self.topics.get(topic, ())):",
        "for key in list(self.heard_at):",
        Test("transports/resolution/udp/test_cache.py"),
    ),
    fault(
        "a-limit-is-exceeded-by-one-record",
        "udp/schedule",
        "PER_SECOND * self.records >= records",
        "PER_SECOND * self.records > records",
        Test("transports/resolution/udp/test_limiter.py::test_the_number_of_records_is_limited"),
    ),
    fault(
        "a-pattern-gets-no-new-source",
        "srs/directory",
        "            if watched.matches(source.topic, steps):\n",
        "            if False:\n",
        Test("transports/resolution/srs/test_directory.py::test_it_does_what_plain_lists_do"),
    ),
    fault(
        "searches-have-no-limit-together",
        "srs/directory",
        "self.expression is None or steps > MAX_STEPS_AT_ONCE or",
        "self.expression is None or",
        Test("transports/resolution/srs/test_directory.py::test_searches_that_together_cost_too_much_match_everything"),
    ),
    fault(
        "one-service-changes-a-source-for-all",
        "srs/known_sources",
        "            entry.holders = present.holders\n",
        "",
        Test("transports/resolution/srs/test_known_sources.py::test_a_changed_record_is_news_and_stays_held"),
    ),
)
