"""Faults in resolution: the phases over UDP, and lifetimes at a service and at its contexts."""

from typing import Final

from tests.mutants.mutant import Graph, Mutant, Test

PHASES: Final = Graph("ResolutionPhases/graph_safe")
WIDE: Final = Graph("ResolutionPhases/graph_wide")
SRS: Final = Graph("SrsLifetime/graph_small")


def fault(name: str, module: str, before: str, after: str, killer: Graph | Test) -> Mutant:
    """A fault in a module of resolution."""
    return Mutant(name, f"transports/resolution/{module}", before, after, killer)


RESOLUTION: Final = (
    fault(
        "the-planned-turn-at-the-end-of-a-phase-does-not-come",
        "udp/phases",
        "self.planned >= self.ends",
        "self.planned + self.interval >= self.ends",
        PHASES,
    ),
    fault("intervals-treble", "udp/phases", "min(2 * self.interval, longest)", "min(3 * self.interval, longest)", WIDE),
    fault(
        "an-answer-is-no-turn-of-the-sustaining-phase",
        "udp/phases",
        "        if answered:\n            self.planned += self.interval\n",
        "        if False:\n            self.planned += self.interval\n",
        PHASES,
    ),
    fault(
        "a-turn-that-is-asked-for-goes-on-from-the-longest-interval",
        "udp/phases",
        "if self.gap and self.planned - now > self.gap // 2:",
        "if self.gap and self.planned - now < self.gap // 2:",
        WIDE,
    ),
    fault(
        "who-waits-is-woken-by-answers-only",
        "udp/schedule",
        "if topic.seen != NEVER and not answered:",
        "if not answered:",
        PHASES,
    ),
    fault(
        "answers-are-no-turns",
        "udp/advertiser",
        "answered=key in answered",
        "answered=False",
        PHASES,
    ),
    fault(
        "who-has-no-session-rests",
        "udp/querier",
        "resolved = interest.options.until_resolved and interest.since is None",
        "resolved = interest.options.until_resolved",
        PHASES,
    ),
    fault(
        "one-source-more-is-needed",
        "udp/querier",
        "if len(interest.known) >= interest.options.enough:",
        "if len(interest.known) > interest.options.enough:",
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
        "every-record-is-of-this-connection",
        "srs/client",
        "return self._drop(lambda mark: mark != self.connection, lambda mark: mark != self.connection)",
        "return Dropped()",
        SRS,
    ),
    fault(
        "the-same-hello-again-is-not-late",
        "srs/client",
        "0 < counter <= self.counter",
        "False",
        Graph("SrsLifetime/graph_late"),
    ),
    fault(
        "a-removed-source-is-not-told",
        "srs/service",
        "        self._tell(source, srs.ended(source.octets))\n",
        "",
        SRS,
    ),
    fault(
        "who-took-over-shares-with-who-was-before",
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
        "a-context-hears-of-its-own-sources",
        "srs/directory",
        "        told.pop(source.owner, None)\n",
        "",
        Graph("SrsLifetime/graph_both"),
    ),
    fault("what-is-no-news-is-told", "srs/directory", "            return False\n", "            return True\n", SRS),
    fault(
        "silence-may-be-longer-than-agreed",
        "srs/session",
        "max(setup.lifetime_ms * MILLISECOND, MIN_LIFETIME)",
        "max(2 * setup.lifetime_ms * MILLISECOND, MIN_LIFETIME)",
        Graph("SrsLifetime/graph_silence"),
    ),
    fault(
        "what-is-put-forward-stays-where-it-was",
        "deadlines",
        "if present is None or due < present:",
        "if present is None:",
        Graph("SrsLifetime/graph_silence"),
    ),
    fault(
        "every-life-of-a-service-is-believed",
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
        "what-is-named-again-keeps-its-connection",
        "srs/known_sources",
        "present.holders[holder] = connection",
        "present.holders.setdefault(holder, connection)",
        SRS,
    ),
    fault(
        "words-from-before-an-answer-count",
        "srs/context",
        "if exact in self.topics and exact not in late:",
        "if exact in self.topics:",
        Graph("SrsLifetime/graph_interest"),
    ),
    fault(
        "a-topic-goes-with-the-first-of-its-sources",
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
        "udp/limiter",
        "PER_SECOND * self.records >= records",
        "PER_SECOND * self.records > records",
        Test("transports/resolution/udp/test_limiter.py::test_the_number_of_records_is_limited"),
    ),
    fault(
        "a-pattern-hears-of-no-new-source",
        "srs/directory",
        "            if watched.matches(source.topic):\n",
        "            if False:\n",
        Test("transports/resolution/srs/test_directory.py::test_it_does_what_plain_lists_do"),
    ),
    fault(
        "one-service-changes-a-source-for-all",
        "srs/known_sources",
        "            entry.holders = present.holders\n",
        "",
        Test("transports/resolution/srs/test_known_sources.py::test_a_changed_record_is_news_and_stays_held"),
    ),
)
