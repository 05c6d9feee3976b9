"""Patterns of other hosts: matched if that is cheap, and never for long."""

import re

import pytest

from stablecast.transports.resolution.patterns import compiled


@pytest.mark.rows("T-405")
@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("abc", "xabcx", "ab"),
        ("^orders/.*", "orders/1", "my/orders/1"),
        (r"^fx\.(eur|usd)$", "fx.eur", "fx.gbp"),
        (r"^\w+-\d+$", "a-1", "a-b"),
        (r"a\*\+\?\{b", "a*+?{b", "ab"),
    ],
)
def test_a_cheap_pattern_is_matched_unanchored(pattern: str, yes: str, no: str) -> None:
    expression = compiled(pattern)
    assert expression is not None
    assert expression.search(yes)
    assert not expression.search(no)


@pytest.mark.rows("T-405")
@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*b",
        ".*a.*b.*c",
        "a?" * 20 + "a" * 20,
        "|".join("a" * n for n in range(1, 40)) + "|.*.*b",
        r"\\\\*" * 12 + "x",
        r"(a)\1",
        "(?i)orders",
        "(*UTF8)a",
        "[[:alpha:]]",
        r"\Qa.b\E",
        "(",
        "a{99999999999}",
    ],
)
def test_a_dear_or_foreign_pattern_matches_everything(pattern: str) -> None:
    """The context receives more than it wants and chooses; the service stays responsive."""
    assert compiled(pattern) is None


def test_the_dearest_pattern_that_is_matched_is_quick() -> None:
    """Measured on a small scale: the cost is polynomial in the topic's length, not exponential."""
    assert compiled(".*.*b") == re.compile(".*.*b")
    assert not re.search(".*.*b", "a" * 40)
