r"""Patterns of PCRE in the syntax of Python's expressions.

Most syntax is common. Some is written differently (`\Q...\E`, `(?<name>...)`, `\z`, `\h`, `[[:^alpha:]]`), and some has
no equal in Python (recursion, `\K`, verbs, properties): it raises `UnsupportedSyntaxError`. Everything else is left to
the compiler of the expression, which refuses what it does not know.
"""

import re

from stablecast.core.errors import StablecastError

CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "ascii": r"\x00-\x7f",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "word": "a-zA-Z0-9_",
    "xdigit": "0-9A-Fa-f",
}
"""The classes of POSIX expressions, as Python writes them."""

CLASS = re.compile(r"\[:(\^?)(\w+):\]")

_ESCAPES = {"z": r"\Z", "Z": r"(?=\n?\Z)", "h": r"[ \t]", "H": r"[^ \t]", "e": r"\x1b", "N": "[^\n]"}
"""Escapes that Python writes differently."""

_ESCAPES_IN_SETS = {"h": r" \t", "e": r"\x1b"}

_UNSUPPORTED = {
    "C": "single bytes",
    "G": "the start of the search",
    "K": "a reset of the match",
    "P": "properties of characters",
    "R": "line endings",
    "X": "grapheme clusters",
    "c": "control characters by letter",
    "g": "references by \\g",
    "k": "references by \\k",
    "p": "properties of characters",
}

_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_HEXADECIMAL = re.compile(r"\\x\{([0-9A-Fa-f]{1,6})\}")
_NAMED = re.compile(r"\(\?<(?=[A-Za-z_])")
_STRANGE_GROUP = re.compile(r"\(\*|\(\?(?:[R|&C'0-9+]|-[0-9]|P>)|\(\?\(DEFINE\)")
_SET_WORDS = "[&~|"
"""Characters that are plain in a set of PCRE, and which Python may read as more."""


class UnsupportedSyntaxError(StablecastError):
    """A pattern uses syntax that cannot be matched here; the message names it."""


def python_expression(pattern: str) -> str:
    r"""Return a pattern of PCRE as Python writes it. Raises UnsupportedSyntaxError.

    >>> python_expression(r"^(?<desk>[[:upper:]]+)\Q.*\E\z")
    '^(?P<desk>[A-Z]+)\\.\\*\\Z'
    """
    written: list[str] = []
    at, opened = 0, -1
    while at < len(pattern):
        in_set = opened >= 0
        text, stop = (_set_part if in_set else _plain_part)(pattern, at)
        if not in_set and text == "[":
            # `]` directly after `[` or `[^` is a member of the set.
            stop += pattern.startswith("^", stop)
            stop += pattern.startswith("]", stop)
            text, opened = pattern[at:stop], at
        elif in_set and text == "]":
            opened = -1
        written.append(text)
        at = stop
    return "".join(written)


def _plain_part(pattern: str, at: int) -> tuple[str, int]:
    """Return the next part outside a set as Python writes it, and the place after it."""
    if pattern[at] == "\\":
        return _escape(pattern, at, _ESCAPES)
    if found := _STRANGE_GROUP.match(pattern, at):
        raise UnsupportedSyntaxError(f"'{found[0]}' begins recursion, a verb or another group that Python cannot match")
    if _NAMED.match(pattern, at):
        return "(?P<", at + 3
    return pattern[at], at + 1


def _set_part(pattern: str, at: int) -> tuple[str, int]:
    """Return the next part of a set as Python writes it, and the place after it."""
    if pattern[at] == "\\":
        return _escape(pattern, at, _ESCAPES_IN_SETS)
    if found := CLASS.match(pattern, at):
        return _class(found[2], negated=bool(found[1])), found.end()
    if pattern.startswith(("[.", "[="), at):
        raise UnsupportedSyntaxError("collating elements like [.a.] and [=a=] cannot be matched: write the characters")
    letter = pattern[at]
    return ("\\" + letter if letter in _SET_WORDS else letter), at + 1


def _escape(pattern: str, at: int, written: dict[str, str]) -> tuple[str, int]:
    if found := _QUOTED.match(pattern, at):
        return re.escape(found[1]), found.end()
    if found := _HEXADECIMAL.match(pattern, at):
        code = int(found[1], 16)
        if code > 0x10FFFF:
            raise UnsupportedSyntaxError(f"'{found[0]}' is no character")
        return re.escape(chr(code)), found.end()
    letter = pattern[at + 1 : at + 2]
    if letter in _UNSUPPORTED and letter:
        raise UnsupportedSyntaxError(f"'\\{letter}' ({_UNSUPPORTED[letter]}) cannot be matched: write it without")
    return written.get(letter, "\\" + letter), at + 2


def _class(name: str, *, negated: bool) -> str:
    known = CLASSES.get(name)
    if known is None:
        raise UnsupportedSyntaxError(f"[:{name}:] is not a character class: there are {', '.join(CLASSES)}")
    if not negated:
        return known
    members = re.compile(f"[{known}]", re.ASCII)
    others = "".join(f"\\x{each:02x}" for each in range(128) if not members.match(chr(each)))
    return others + "\\x80-\\U0010ffff"
