"""The lives of a source and the first number of each, as stores remember them and a source announces them.

A history is a list of (incarnation, first number), oldest first. A number belongs to the newest life that began at or
below it. A store that was away during a life may hold a *dead tail*: messages of an older life whose numbers that life
used again. The tail begins at the first number that the histories of store and source ascribe to different lives.

The source must find the right history. A store counts the lives that register with it. It keeps the history of the
newest life whose SRI it received, with the *term* of that life: the highest count of its stores. A quorum knew that
term before the life might send (`registration_set`). Two quorums share a store. That store counted the later of two
lives after it knew the term of the earlier one. So later lives have higher terms, and the history with the highest term
names every life that may have sent something stable (formal design, 7.3, 7.4).
"""

from collections.abc import Iterable, Sequence

from stablecast.core.machine import serial
from stablecast.core.protocol.messages import Incarnation, Life, Registered

FORGOTTEN: Incarnation = 0
"""The owner of the numbers of all lives that a history no longer names; no life has this incarnation."""

HISTORY_LIVES = 64
"""Lives that a store remembers of one source. Each takes 12 bytes of every SRI, which must fit into one datagram."""


def owner(history: Sequence[Life], number: int) -> Incarnation | None:
    """Return the life that `number` belongs to: None below all lives, FORGOTTEN if its life is no longer named.

    >>> owner([(7, 0), (8, 5)], 4), owner([(7, 0), (8, 5)], 5), owner([(8, 5)], 4)
    (7, 8, None)
    """
    return next((incarnation for incarnation, first in reversed(history) if first <= number), None)


def remembered(history: Sequence[Life], limit: int = HISTORY_LIVES) -> list[Life]:
    """Return the history in at most `limit` (2 or more) entries: one FORGOTTEN entry replaces the oldest lives.

    >>> remembered([(7, 0), (8, 5), (9, 10)], limit=2)
    [(0, 0), (9, 10)]
    """
    if len(history) <= limit:
        return list(history)
    return [(FORGOTTEN, history[0][1]), *history[1 - limit :]]


def divergence(ours: Sequence[Life], theirs: Sequence[Life]) -> int | None:
    """Return the first number that two histories may ascribe to different lives, None if they agree.

    A life has one history, which begins when the life does. Hence two histories agree below the newest life that both
    name, whatever they have forgotten. Above it, or without a life in common, a FORGOTTEN owner is never agreement: a
    store that missed those lives may hold messages whose numbers they used again.

    >>> divergence([(7, 0)], [(7, 0), (8, 5), (9, 10)]), divergence([(7, 0), (8, 5)], [(8, 5), (9, 10)])
    (5, 10)
    >>> divergence([(0, 0), (8, 5)], [(0, 0), (8, 5), (9, 10)]), divergence([(7, 0)], [(0, 0), (8, 5)])
    (10, 0)
    """
    common = {life for life in ours if life[0] != FORGOTTEN}.intersection(theirs)
    agreed = max((first for _, first in common), default=None)
    for number in sorted({first for _, first in (*ours, *theirs) if agreed is None or first >= agreed}):
        owners = (owner(ours, number), owner(theirs, number))
        # Below its first life a history names no owner, so it cannot contradict the other.
        if None not in owners and (owners[0] != owners[1] or owners[0] == FORGOTTEN):
            return number
    return None


def continued(history: Iterable[Life], incarnation: Incarnation, first: int) -> list[Life]:
    """Return the history with a new life. Lives that began at or above its first number own nothing any more."""
    return [*(life for life in history if life[1] < first), (incarnation, first)]


def newest_history(answers: Sequence[Registered], near: int) -> tuple[list[Life], int]:
    """Return the history with the highest term, extended near `near`, and the term of the life that continues it."""
    best = max(answers, key=lambda answer: answer.lives_term)
    return unfold(best.lives, near), max(answer.term for answer in answers)


def fold(history: Iterable[Life]) -> tuple[Life, ...]:
    """Return a history with wire numbers."""
    return tuple((incarnation, serial.wire(first)) for incarnation, first in history)


def unfold(lives: Iterable[Life], near: int) -> list[Life]:
    """Return a history with extended numbers, near `near`."""
    return [(incarnation, serial.extend(first, near)) for incarnation, first in lives]
