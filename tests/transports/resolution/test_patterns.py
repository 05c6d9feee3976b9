"""Own patterns and those of others."""

import pytest

from stablecast.core.errors import MisuseError
from stablecast.transports.resolution.patterns import expression, foreign
from stablecast.transports.wire.lbmr import PatternLanguage, WildcardQuery


@pytest.mark.rows("T-031")
@pytest.mark.parametrize(
    ("pattern", "kind", "topics"),
    [
        ("abc", PatternLanguage.PCRE, {"abc", "xabcx"}),
        ("^abc$", PatternLanguage.PCRE, {"abc"}),
        ("ABC*", PatternLanguage.PCRE, {"AB", "ABCC"}),
        ("^[[:upper:]]+$", PatternLanguage.REGEX, {"AB", "ABCC"}),
        ("^[[:lower:][:digit:]]{3}$", PatternLanguage.REGEX, {"abc"}),
        ("^[[:graph:]]{5,}$", PatternLanguage.REGEX, {"xabcx", "orders/1"}),
        (r"^\w+/\d", PatternLanguage.PCRE, {"orders/1"}),
    ],
)
def test_patterns_are_searched(pattern: str, kind: int, topics: set[str]) -> None:
    """C-12, C-13."""
    found = expression(pattern, kind)
    assert {topic for topic in ("abc", "xabcx", "AB", "ABCC", "orders/1") if found.search(topic)} == topics


@pytest.mark.parametrize(
    ("pattern", "kind", "text"),
    [
        ("(", PatternLanguage.PCRE, "is malformed"),
        ("[[:alpha:]", PatternLanguage.REGEX, "is malformed"),
        ("", PatternLanguage.PCRE, "1 to 254 bytes"),
        ("a\0", PatternLanguage.PCRE, "1 to 254 bytes"),
        ("ä" * 128, PatternLanguage.PCRE, "1 to 254 bytes"),
        ("\ud800", PatternLanguage.PCRE, "is malformed"),
        ("a", 3, "no language 3"),
    ],
)
def test_a_malformed_pattern_raises_misuse(pattern: str, kind: int, text: str) -> None:
    with pytest.raises(MisuseError, match=text):
        expression(pattern, kind)


def test_patterns_of_others_are_matched_in_bounded_time_only() -> None:
    found = foreign(WildcardQuery(PatternLanguage.PCRE, "^orders/.*"))
    assert found is not None
    assert found.search("orders/1")
    assert foreign(WildcardQuery(PatternLanguage.PCRE, "(a+)+$")) is None
    assert foreign(WildcardQuery(9, "a")) is None
