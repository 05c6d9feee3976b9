"""The cost of a search for a pattern: how many ways through a topic the search may have to try.

Expressions backtrack. Any host may advertise a topic, so a topic may be made to let a search take for ever. Therefore
the choices of a pattern are counted before it is used, in bits: n bits are up to 2^n ways through the longest topic.
A repeat whose set ends where the next element begins (`[^.]*[.]`) is no choice, and neither are alternatives that begin
differently. A repeated group that has choices inside has as many bits as all its rounds together.
"""

import re
from collections.abc import Iterable, Sequence
from re import _constants as code  # type: ignore[attr-defined]  # the parse tree of the standard library
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from stablecast.transports.resolution.records import MAX_TOPIC_BYTES

MAX_CHOICE_BITS = 26
"""Choices of a usable pattern: three repeats of any length after `^`, or two without it, and four alternatives.

A search then takes half a second at worst, on a topic that is made for the pattern.
"""

TOPIC_BITS = MAX_TOPIC_BYTES.bit_length()
"""Choices of a repeat that may end anywhere in a topic."""

_OTHERS = 1 << 128
_EVERY = (1 << 129) - 1
"""Sets of characters are numbers: one bit for each ASCII character, and one for all others."""

_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT)
_FINAL = tuple(getattr(code, name) for name in ("ATOMIC_GROUP", "POSSESSIVE_REPEAT") if hasattr(code, name))
_ANCHORS = (code.AT_BEGINNING, code.AT_BEGINNING_STRING)
_ENDS = (code.AT_END, code.AT_END_STRING)
_NEWLINE = 10

Element = tuple[Any, Any]


def choice_bits(pattern: str, flags: int) -> int:
    """Return the choices of a search for `pattern`, in bits. Raises re.error for a malformed pattern."""
    tree = list(parser.parse(pattern, flags))
    anchored = bool(tree) and tree[0][0] is code.AT and tree[0][1] in _ANCHORS
    return _of_sequence(tree, 0) + (0 if anchored else TOPIC_BITS)  # Nothing is tried after the last element.


def _of_sequence(elements: Sequence[Element], after: int) -> int:
    """Return the bits of elements in a row, if the character after them is one of the set `after`."""
    return sum(_of_element(element, _first(elements[place + 1 :], after)) for place, element in enumerate(elements))


def _of_element(element: Element, after: int) -> int:
    kind, value = element
    if kind in _REPEATS:
        least, most, body = value
        return _of_repeat(least, most, body, after)
    if kind is code.BRANCH:
        ways = list(value[1])
        inner = max(_of_sequence(list(way), after) for way in ways)
        return inner + (len(ways) - 1).bit_length() if _overlap(_first(list(way), after) for way in ways) else inner
    if kind is code.SUBPATTERN:
        return _of_sequence(list(value[-1]), after)
    if kind in (code.ASSERT, code.ASSERT_NOT):
        return _of_sequence(list(value[1]), 0)
    if kind is code.GROUPREF_EXISTS:
        return max(_of_sequence(list(way), after) for way in value[1:] if way is not None)
    if kind in _FINAL:
        return _of_sequence(list(value[2] if isinstance(value, tuple) else value), 0)
    return 0


def _of_repeat(least: int, most: int, body: Iterable[Element], after: int) -> int:
    """Return the bits of a repeat: where it ends, and what each round chooses."""
    elements = list(body)
    rounds = min(int(most), MAX_TOPIC_BYTES)
    begins = _first(elements, 0)
    inside = _of_sequence(elements, begins | after)
    ends = (rounds - least).bit_length() if rounds > least and begins & after else 0
    return ends + inside * rounds


def _overlap(sets: Iterable[int]) -> bool:
    seen = 0
    for characters in sets:
        if characters & seen:
            return True
        seen |= characters
    return False


def _first(elements: Sequence[Element], after: int) -> int:
    """Return the characters with which elements in a row may begin; `after` follows them."""
    found = 0
    for kind, value in elements:
        begins, empty = _begin(kind, value)
        found |= begins
        if not empty:
            return found
    return found | after


def _begin(kind: Any, value: Any) -> tuple[int, bool]:
    """Return the characters with which an element may begin, and whether it may match nothing."""
    if kind is code.LITERAL:
        return _character(value), False
    if kind is code.NOT_LITERAL:
        return _EVERY & ~(1 << value if value < 128 else 0), False
    if kind is code.IN:
        return _members(value), False
    if kind in _REPEATS:
        body = list(value[2])
        return _first(body, 0), value[0] == 0 or _may_be_empty(body)
    if kind is code.SUBPATTERN:
        body = list(value[-1])
        # With a flag that ignores case, a letter stands for both.
        return (_EVERY if value[1] else _first(body, 0)), _may_be_empty(body)
    if kind is code.BRANCH:
        ways = [list(way) for way in value[1]]
        begins = 0
        for way in ways:
            begins |= _first(way, 0)
        return begins, any(map(_may_be_empty, ways))
    if kind is code.AT and value in _ENDS:
        return _character(_NEWLINE), False
    if kind in (code.AT, code.ASSERT, code.ASSERT_NOT):
        return 0, True
    return _EVERY, kind is not code.ANY


def _may_be_empty(elements: Sequence[Element]) -> bool:
    return all(_begin(kind, value)[1] for kind, value in elements)


def _character(value: int) -> int:
    """Return the set of a character, in both cases."""
    if value >= 128:
        return _OTHERS
    letter = chr(value)
    return 1 << ord(letter.lower()) | 1 << ord(letter.upper())


def _members(items: Iterable[Element]) -> int:
    """Return a set at least as large as that of a class in brackets."""
    found, negated = 0, False
    for kind, value in items:
        if kind is code.NEGATE:
            negated = True
        elif kind is code.LITERAL:
            found |= 1 << value if value < 128 else _OTHERS
        elif kind is code.RANGE:
            low, high = value
            found |= sum(1 << each for each in range(low, min(high, 127) + 1)) | (_OTHERS if high > 127 else 0)
        elif kind is code.CATEGORY:
            found |= _category(value)
    if negated:
        # Characters beyond ASCII may be in the class and outside it.
        return _EVERY & ~found | _OTHERS
    return _union(found)


def _union(found: int) -> int:
    """Return a set with its letters in both cases."""
    for each in range(128):
        if found >> each & 1:
            found |= _character(each)
    return found


def _category(value: Any) -> int:
    known = {
        code.CATEGORY_DIGIT: r"\d", code.CATEGORY_SPACE: r"\s", code.CATEGORY_WORD: r"\w",
        code.CATEGORY_NOT_DIGIT: r"\D", code.CATEGORY_NOT_SPACE: r"\S", code.CATEGORY_NOT_WORD: r"\W",
    }  # fmt: skip
    member = re.compile(known[value], re.ASCII)
    return sum(1 << each for each in range(128) if member.match(chr(each))) | _OTHERS
