"""Which topics a pattern means, in bounded time.

Patterns come from other hosts and matching backtracks, so a hostile one could stop a service for ever. A pattern that
offers few choices is matched; any other one, and one that is none, matches every topic here: the context that asked for
it gets more than it wants and matches by itself, with its own time. Patterns are PCRE and unanchored; what Python's
expressions read otherwise is among those not matched here.
"""

import re

MAX_REPEATS = 2
"""Repetitions (`*`, `+`, `?`, `{`) in a pattern that is matched: with two, cost grows with the cube of the topic."""

MAX_BRANCHES = 8
"""Alternatives (`|`) in a pattern that is matched: each may double the cost."""

_REPEAT = re.compile(r"(?<!\\)[*+?{]")
_DEAR = re.compile(r"\)[*+?{]|\(\?|\(\*|\\[^\W_]|\[\[|\[:|--|&&|~~|\|\|")
"""Repeated groups, lookaround and verbs, escapes that are more than a literal, and what only one dialect knows."""

_PLAIN_ESCAPES = re.compile(r"\\[dwsDWSbB]")


def compiled(pattern: str) -> re.Pattern[str] | None:
    """The expression to match topics with; None: it matches every topic here."""
    reduced = _PLAIN_ESCAPES.sub("", pattern)
    repeats, branches = len(_REPEAT.findall(pattern)), pattern.count("|")
    if repeats > MAX_REPEATS or branches > MAX_BRANCHES or _DEAR.search(reduced):
        return None
    try:
        return re.compile(pattern)
    except (re.error, OverflowError):
        return None
