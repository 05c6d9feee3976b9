"""Topic patterns (P-817): exact, Perl compatible or POSIX extended, all translated to regular expressions of Python.

Python's expressions lack few constructs of Perl's (recursion, verbs, resetting the start of a match). A pattern that
uses them is refused, never misread (`pcre`). A pattern may match anywhere in a topic (C-13).
"""

import re

from stablecast.core.errors import StablecastError
from stablecast.core.protocol.settings import PatternType
from stablecast.transports.resolution.pcre import UnsupportedSyntaxError, python_expression

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
    try:
        python = python_expression(pattern)
        re.compile(python)
    except (re.error, UnsupportedSyntaxError) as error:
        raise PatternError(f"'{pattern}' is not an expression that can be used here: {error}") from None
    return python
