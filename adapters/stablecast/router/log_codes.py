"""The codes of a router's log lines whose documented counterpart has a published number.

Operators have rules for these numbers, so a line with such a code ends with its number.
"""

from typing import Final

PUBLISHED: Final = {
    "queueing": "6945-1",
    "dropping": "6945-2",
    "flushed": "6945-3",
    "interest-walk": "6361-9",
    "source-without-options": "6361-29",
    "source-without-identity": "6361-33",
    "message-too-large": "6361-42",
    "not-ready": "6361-124",
    "hops": "6259-51",
    "hop-limit": "6259-55",
    "no-route": "6259-13",
    "direct-address": "6259-27",
    "route": "6259-1",
    "route-changed": "6259-2",
    "same-domain": "7097-2",
}
"""The published number of each code."""


def numbered(code: str, text: str) -> str:
    """Return the text of a line, with the published number of its code at the end.

    >>> numbered("queueing", "portal left queues 80 bytes")
    'portal left queues 80 bytes [6945-1]'
    """
    return f"{text} [{PUBLISHED[code]}]" if code in PUBLISHED else text
