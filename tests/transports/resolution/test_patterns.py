"""Own patterns and those of others."""

import pytest

from stablecast.core.errors import MisuseError
from stablecast.transports.resolution.patterns import expression, foreign
from stablecast.transports.wire.lbmr import PatternType, WildcardQuery


@pytest.mark.parametrize(
    ("pattern", "kind", "topics"),
    [
        ("abc", PatternType.PCRE, {"abc", "xabcx"}),
        ("^abc$", PatternType.PCRE, {"abc"}),
        ("ABC*", PatternType.PCRE, {"AB", "ABCC"}),
        ("^[[:upper:]]+$", PatternType.REGEX, {"AB", "ABCC"}),
        ("^[[:lower:][:digit:]]{3}$", PatternType.REGEX, {"abc"}),
        (r"^\w+/\d", PatternType.PCRE, {"orders/1"}),
    ],
)
def test_patterns_are_searched(pattern: str, kind: int, topics: set[str]) -> None:
    """C-12, C-13, T-031."""
    found = expression(pattern, kind)
    assert {topic for topic in ("abc", "xabcx", "AB", "ABCC", "orders/1") if found.search(topic)} == topics


@pytest.mark.parametrize(
    ("pattern", "kind", "text"),
    [
        ("(", PatternType.PCRE, "is malformed"),
        ("[[:alpha:]", PatternType.REGEX, "is malformed"),
        ("", PatternType.PCRE, "1 to 254 bytes"),
        ("a\0", PatternType.PCRE, "1 to 254 bytes"),
        ("ä" * 128, PatternType.PCRE, "1 to 254 bytes"),
        ("\ud800", PatternType.PCRE, "is malformed"),
        ("a", 3, "no language 3"),
    ],
)
def test_a_malformed_pattern_raises_misuse(pattern: str, kind: int, text: str) -> None:
    with pytest.raises(MisuseError, match=text):
        expression(pattern, kind)


def test_patterns_of_others_are_matched_in_bounded_time_only() -> None:
    found = foreign(WildcardQuery(PatternType.PCRE, "^orders/.*"))
    assert found is not None
    assert found.search("orders/1")
    assert foreign(WildcardQuery(PatternType.PCRE, "(a+)+$")) is None
    assert foreign(WildcardQuery(9, "a")) is None
