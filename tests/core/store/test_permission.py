"""A refusal has the terms that would have fitted: those of the store, or of whoever holds the RegID."""

import attrs

from stablecast.core.protocol.messages import Pace, Refusal, Refused, Role, Wishes
from stablecast.core.protocol.settings import RepositoryConfig
from stablecast.core.store.permission import with_terms
from tests.core.samples import register

REFUSED = Refused(Role.SOURCE, 0, 1, 7, 9, Refusal.INCOMPATIBLE)
KEPT = RepositoryConfig(allow_rpp=True, size_threshold=100, size_limit=200)


def test_a_refusal_has_what_the_store_allows() -> None:
    asked = register(pace=Pace.RECEIVERS, wishes=Wishes(101, 201))
    answer = with_terms(REFUSED, asked, None, None, KEPT)
    assert answer.permitted is not None
    assert (answer.pace, answer.permitted.size_threshold, answer.permitted.size_limit) == (Pace.RECEIVERS, 100, 200)
    assert with_terms(REFUSED, asked, None, None, attrs.evolve(KEPT, allow_rpp=False)).pace is Pace.SOURCE


def test_a_topic_that_the_store_does_not_keep_has_no_terms() -> None:
    assert with_terms(REFUSED, register(), None, None, None) == REFUSED


def test_a_receiver_gets_the_pace_of_the_source() -> None:
    answer = with_terms(REFUSED, register(role=Role.RECEIVER), None, None, KEPT)
    assert (answer.pace, answer.permitted) == (Pace.SOURCE, Wishes())
