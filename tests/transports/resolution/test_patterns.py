"""Own patterns and those of others."""

import re

import pytest

from stablecast.core.errors import MisuseError
from stablecast.transports.resolution.pattern_cost import MAX_CHOICE_BITS, choice_bits
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


@pytest.mark.parametrize(
    ("pattern", "matched", "other"),
    [
        (r"^(?<desk>[a-z]+)/(?P=desk)$", "fx/fx", "fx/eq"),
        (r"\Qa.b+\E$", "xa.b+", "aab+"),
        (r"^\x{41}\h\z", "A ", "A\n"),
        (r"^a\Z", "a\n", "a\n\n"),
        (r"^[[:^alpha:]]+$", "1-2", "1a2"),
        (r"^[]a]+$", "]a", "b"),
        (r"^[[]$", "[", "a"),
        (r"^\w$", "a", "é"),
        (r"^(?!test[.])[^.]+[.]eq$", "prod.eq", "test.eq"),
        (r"(?i)^x$", "X", "y"),
    ],
)
def test_pcre_that_python_writes_differently(pattern: str, matched: str, other: str) -> None:
    found = expression(pattern)
    assert found.search(matched)
    assert not found.search(other)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\Kx", "a reset of the match"),
        (r"(?R)", "recursion, a verb"),
        (r"(*UTF8)a", "recursion, a verb"),
        (r"\p{L}", "properties of characters"),
        (r"[[.a.]]", "collating elements"),
        (r"[[:nope:]]", "is not a character class"),
        (r"\x{110000}", "is no character"),
    ],
)
def test_pcre_that_python_cannot_match_is_refused_by_name(pattern: str, text: str) -> None:
    with pytest.raises(MisuseError, match=text):
        expression(pattern)


CHEAP = [
    "orders",
    r"^[^.]+[.][^.]+[.][^.]+[.][^.]+[.]x$",
    r"^.*[.]EQ[.].*[.]US[.].*[.]X$",
    r"([a-z]+[.])+x",
    r"(EQ|FX|BOND)[.]",
    r"(?:[a-z]++)+$",
    r"(?>a+)+$",
    r"(a|b)+$",
    r"(?!a.*b)^c",
]


@pytest.mark.parametrize("pattern", CHEAP)
def test_a_usable_pattern_is_fast_on_any_topic(pattern: str) -> None:
    """The longest topics that repeat what the pattern repeats cost less than the steps that the bound permits."""
    found = expression(pattern)
    for topic in ("a" * 245 + "!", "ab" * 123, "a." * 123, ".EQ..US." * 30):
        found.search(topic)
    assert choice_bits(found.pattern, re.ASCII) <= MAX_CHOICE_BITS


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)+$", "(a*)*", "^.*a.*b.*c.*d$", "x*x*x*xy", "((a|b)?)*c", "(a?){40}a", "(?=(a+)+$)"]
)
def test_a_pattern_with_too_many_choices_is_refused(pattern: str) -> None:
    """A topic that another host makes up could keep this host busy for ever."""
    with pytest.raises(MisuseError, match="could take for ever on a topic that another host makes up"):
        expression(pattern)
