"""The lives of a source and where each began, as stores remember them and a source tells them.

A history is a list of (incarnation, first number), oldest first; a number belongs to the newest life that began at or
below it. A store that was away during a life may hold a *dead tail*: messages of an older life whose numbers that life
used again. The history of the source tells where: at the first number that the two ascribe to different lives.

Which history is right? A store counts the lives that register with it, and keeps the history of the newest life whose
SRI it saw with the *term* of that life: the highest count of its stores, which each of a quorum knew before it might
send (`enrollment`). Two quorums share a store, at which the later of two lives was counted after the term of the
earlier one was known: so later lives have higher terms, and of the histories a source is told the one with the highest
term knows every life that may have sent something stable (formal design, 7.3, 7.4).
"""

from collections.abc import Iterable, Sequence

from stablecast.core import serial
from stablecast.core.messages import Incarnation, Life, Registered


def owner(history: Sequence[Life], number: int) -> Incarnation | None:
    """The life that `number` belongs to; None if it began before what is remembered.

    >>> owner([(7, 0), (8, 5)], 4), owner([(7, 0), (8, 5)], 5), owner([(8, 5)], 4)
    (7, 8, None)
    """
    return next((incarnation for incarnation, first in reversed(history) if first <= number), None)


def divergence(ours: Sequence[Life], theirs: Sequence[Life]) -> int | None:
    """The first number that two histories ascribe to different lives, None if they agree as far as both remember.

    >>> divergence([(7, 0)], [(7, 0), (8, 5), (9, 10)]), divergence([(7, 0), (8, 5)], [(8, 5), (9, 10)])
    (5, 10)
    """
    for number in sorted({first for _, first in (*ours, *theirs)}):
        owners = (owner(ours, number), owner(theirs, number))
        if None not in owners and owners[0] != owners[1]:
            return number
    return None


def continued(history: Iterable[Life], incarnation: Incarnation, first: int) -> list[Life]:
    """The history with a new life: what began at or above its first number owns nothing any more."""
    return [*(life for life in history if life[1] < first), (incarnation, first)]


def newest_history(answers: Sequence[Registered], near: int) -> tuple[list[Life], int]:
    """What a source continues: the history with the highest term, extended near `near`; and its own term."""
    best = max(answers, key=lambda answer: answer.lives_term)
    return unfold(best.lives, near), max(answer.term for answer in answers)


def fold(history: Iterable[Life]) -> tuple[Life, ...]:
    """A history with wire numbers."""
    return tuple((incarnation, serial.wire(first)) for incarnation, first in history)


def unfold(lives: Iterable[Life], near: int) -> list[Life]:
    """A history with extended numbers."""
    return [(incarnation, serial.extend(first, near)) for incarnation, first in lives]
