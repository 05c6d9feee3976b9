r"""Patterns of topics: searched, not anchored (C-13), in the languages of PCRE and of POSIX extended expressions.

Python's expressions read nearly all of both. `pcre` writes a pattern of PCRE as Python does, and refuses what Python
cannot match. Classes like `\w` mean ASCII, as in PCRE.

Own patterns are searched in topics that any host may advertise, so a pattern with too many choices is refused
(`pattern_cost`).

Patterns also come from other hosts, and matching backtracks. A hostile pattern could keep a service busy forever.
So a foreign pattern is matched only if it offers few choices (`MAX_FOREIGN_BITS`). Any other pattern, and any
malformed one, matches every topic here: the context that sent it receives more records than it wants, and matches them
itself, in its own time.
"""

import re

from stablecast.core.errors import MisuseError
from stablecast.transports.resolution.pattern_cost import MAX_CHOICE_BITS, choice_bits
from stablecast.transports.resolution.pcre import CLASS, CLASSES, UnsupportedSyntaxError, python_expression
from stablecast.transports.resolution.records import MAX_TOPIC_BYTES
from stablecast.transports.wire import lbmr

MAX_PATTERN_BYTES = 254
"""Length of a pattern in bytes, without its NUL: services use one byte for it."""

TOO_DEAR = (
    "could take for ever on a topic that another host makes up: repeat less, begin with '^', "
    "or make repeats possessive ('++', '*+')"
)
"""The refusal of an own pattern with more than `MAX_CHOICE_BITS`."""

MAX_FOREIGN_BITS = 3 * MAX_TOPIC_BYTES.bit_length()
"""Choices of a matched foreign pattern, in bits: two repeats without `^` take 10 ms on the worst topic."""

_DEAR = re.compile(r"\)[*+?{]|\(\?|\(\*|\\[^\W_]|\[\[|\[:|--|&&|~~|\|\|")
"""Repeated groups, lookaround and verbs, escapes that are more than a literal, and syntax of one dialect only."""

_PLAIN_ESCAPES = re.compile(r"\\[dwsDWSbB]")

LANGUAGES = (lbmr.PatternLanguage.PCRE, lbmr.PatternLanguage.REGEX)


def expression(pattern: str, kind: int = lbmr.PatternLanguage.PCRE) -> re.Pattern[str]:
    """Return the expression of an own pattern.

    Raises:
        MisuseError: If it cannot be sent on the wire, is malformed, is in an unknown language, uses syntax that Python
            cannot match, or could take too long.
    """
    if kind not in LANGUAGES:
        raise MisuseError(f"there is no language {kind} of patterns: use PCRE (1) or REGEX (2)")
    try:
        octets = pattern.encode()
        if not 0 < len(octets) <= MAX_PATTERN_BYTES or 0 in octets:
            raise MisuseError(f"the pattern {pattern!r} must be text of 1 to {MAX_PATTERN_BYTES} bytes without NUL")
        ours = python_expression(pattern)
        if choice_bits(ours, re.ASCII) > MAX_CHOICE_BITS:
            raise MisuseError(f"the pattern {pattern!r} {TOO_DEAR}")
        return re.compile(ours, re.ASCII)
    except UnsupportedSyntaxError as error:
        raise MisuseError(f"the pattern {pattern!r} is refused: {error}") from error
    except (re.error, UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise MisuseError(f"the pattern {pattern!r} is malformed: {error}") from error


def foreign(query: lbmr.WildcardQuery) -> re.Pattern[str] | None:
    """Return the expression of a foreign pattern that is matched in bounded time; None: it may match any topic."""
    return compiled(translated(query.pattern)) if query.pattern_type in LANGUAGES else None


def translated(pattern: str) -> str:
    """Return the pattern with its POSIX classes written out.

    >>> translated("^[[:upper:]_]+$")
    '^[A-Z_]+$'
    """
    return CLASS.sub(lambda found: found[0] if found[1] else CLASSES.get(found[2], found[0]), pattern)


def compiled(pattern: str) -> re.Pattern[str] | None:
    """Return the expression to match topics with; None: the pattern matches every topic here."""
    if _DEAR.search(_PLAIN_ESCAPES.sub("", pattern)):
        return None
    try:
        # The parser knows which star is escaped. A search of the text for repeats missed the one in `\\*`.
        return re.compile(pattern) if choice_bits(pattern, 0) <= MAX_FOREIGN_BITS else None
    except (re.error, OverflowError, RecursionError):
        return None
