"""Topic patterns of the three kinds."""

import re

import attrs
import pytest

from stablecast.config.topic_patterns import TYPES, PatternError, expression
from stablecast.core.protocol.settings import PatternType, RepositoryConfig, StoreConfig, TopicPattern, repository_for


@pytest.mark.rows("P-817")
@pytest.mark.parametrize(
    ("kind", "pattern", "topic", "matches"),
    [
        ("direct", "test*", "test*", True),
        ("direct", "test*", "test", False),
        ("pcre", "test*", "my tes", True),
        ("pcre", "^test$", "tests", False),
        ("pcre", r"^a(?=b)\w++$", "abc", True),
        ("regexp", "^a[[:digit:]]+$", "a12", True),
        ("regexp", "^a[[:digit:]]+$", "ab", False),
        ("regexp", "[[:alpha:]_]{3}", "ab_", True),
        ("regexp", "[[:punct:]]", "a-b", True),
        ("regexp", "(one|two)", "number two", True),
    ],
)
def test_a_pattern_matches_its_topics(kind: str, pattern: str, topic: str, matches: bool) -> None:
    """C-13: anywhere in the topic."""
    rule = TopicPattern(expression(pattern, TYPES[kind]), RepositoryConfig(), TYPES[kind])
    config = attrs.evolve(StoreConfig("", 0), repository=None, topics=(rule,))
    assert (repository_for(config, topic) is not None) is matches


@pytest.mark.parametrize(
    ("kind", "pattern", "told"),
    [
        (PatternType.PCRE, "a(", "'a(' is not an expression that can be used here"),
        (PatternType.PCRE, r"(?R)", "is not an expression that can be used here"),
        (PatternType.REGEXP, "[[:vowel:]]", "[:vowel:] is not a character class"),
    ],
)
def test_a_malformed_pattern_is_refused(kind: PatternType, pattern: str, told: str) -> None:
    with pytest.raises(PatternError, match=re.escape(told)):
        expression(pattern, kind)
