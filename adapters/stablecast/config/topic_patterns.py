"""Topic patterns (P-817): exact, Perl compatible or POSIX extended, all translated to regular expressions of Python.

Python's expressions lack few constructs of Perl's (recursion, verbs, resetting the start of a match). A pattern that
uses them is refused, never misread. The named classes of POSIX are translated. A pattern may match anywhere in a topic
(C-13).
"""

import re

from stablecast.core.errors import StablecastError
from stablecast.core.protocol.settings import PatternType
from stablecast.transports.resolution.patterns import CLASS, CLASSES

TYPES = {"direct": PatternType.DIRECT, "pcre": PatternType.PCRE, "regexp": PatternType.REGEXP}
"""Kinds by their names in lower case: examples of the documentation also write `pcre`."""


class PatternError(StablecastError):
    """A pattern that cannot be used; the message has the reason."""


def expression(pattern: str, kind: PatternType) -> str:
    """Return the pattern as a regular expression of Python.

    Raises:
        PatternError: The pattern is no expression of its kind.

    >>> expression("orders[[:digit:]]+", PatternType.REGEXP)
    'orders[0-9]+'
    """
    if kind is PatternType.DIRECT:
        return pattern
    python = CLASS.sub(_named, pattern) if kind is PatternType.REGEXP else pattern
    try:
        re.compile(python)
    except re.error as error:
        raise PatternError(f"'{pattern}' is not an expression that can be used here: {error}") from None
    return python


def _named(found: "re.Match[str]") -> str:
    known = CLASSES.get(found[1])
    if known is None:
        raise PatternError(f"[:{found[1]}:] is not a character class: there are {', '.join(CLASSES)}")
    return known
