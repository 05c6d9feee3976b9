"""Write each value of a model as one canonical text.

The core's abstract states and the checker's are compared as texts, so each value has exactly one. The text is JSON
without spaces. A set is `["set",...]` with its members' texts in order, a sequence is `["seq",...]`. A function or
record is `["fn",[key,value],...]` in the order of the keys' texts. In Python these are a frozenset, a tuple and a `Fn`.

A function over 1..n is a sequence, as in TLA+.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from stablecast.core.errors import StablecastError


class ModelError(StablecastError):
    """Report that a model, a configuration, the record of graphs or a checker's output cannot be used."""


class ForgetfulError(ModelError):
    """Report two worlds with equal abstract states and different behaviour: the abstraction drops a fact."""


class Fn(dict[Any, Any]):
    """Hold a function or record. Nobody changes one, so it is hashable and can be in a set."""

    __slots__ = ("_hash",)

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none
        try:
            return self._hash
        except AttributeError:
            self._hash: int = hash(frozenset(self.items()))
            return self._hash


Value: TypeAlias = bool | int | str | tuple["Value", ...] | frozenset["Value"] | Fn
"""A value of a model."""


def record(**fields: Value) -> Fn:
    """Return a record.

    >>> text(record(up=True, age=3))
    '["fn",["age",3],["up",true]]'
    """
    return Fn(fields)


def text(value: Value) -> str:
    """Return the value's canonical text.

    >>> text((1, "a", frozenset({2, 1})))
    '["seq",1,"a",["set",1,2]]'
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return f'"{value}"'
        case tuple():
            return _listed("seq", map(text, value))
        case frozenset():
            return _listed("set", sorted(map(text, value)))
        case _:
            pairs = sorted((text(key), text(of)) for key, of in value.items())
            return _listed("fn", (f"[{key},{of}]" for key, of in pairs))


def _listed(kind: str, texts: Iterable[str]) -> str:
    return "[" + ",".join((f'"{kind}"', *texts)) + "]"


def plain(canonical: str) -> Any:
    """Return the value of a text: functions and records as `Fn`, sequences as tuples, sets as frozensets.

    >>> plain('["fn",["age",3],["of",["seq",["set",1,2]]]]')
    {'age': 3, 'of': (frozenset({1, 2}),)}
    >>> plain('["set",["fn",["age",3]]]')
    frozenset({{'age': 3}})
    """
    return _plain(json.loads(canonical))


def _plain(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    match value:
        case ["fn", *pairs]:
            return Fn((_plain(key), _plain(of)) for key, of in pairs)
        case ["set", *members]:
            return frozenset(map(_plain, members))
        case _:
            return tuple(map(_plain, value[1:]))


def compact(value: Any) -> str:
    """Return the JSON of a file that people compare: indented, but with the innermost lists in a line each."""
    text_of = json.dumps(value, indent=1)
    return (
        re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: "[" + re.sub(r"\s*\n\s*", " ", found[1]) + "]", text_of) + "\n"
    )


def digest(lines: Iterable[str]) -> str:
    """Return the SHA-256 of the distinct lines in order, each ended by a newline."""
    summed = hashlib.sha256()
    for line in sorted(set(lines)):
        summed.update(line.encode())
        summed.update(b"\n")
    return summed.hexdigest()


_TOKEN = re.compile(r'\s*(<<|>>|\|->|:>|@@|[\[\]{}(),]|"[^"]*"|-?\d+|\w+)')


def parse(source: str) -> Value:
    """Return a value from the checker's notation. Raises ModelError if it is malformed.

    >>> text(parse('[k |-> "a", seq |-> <<1, TRUE>>, of |-> (0 :> {} @@ 2 :> {3})]'))
    '["fn",["k","a"],["of",["fn",[0,["set"]],[2,["set",3]]]],["seq",["seq",1,true]]]'
    """
    tokens = _tokens(source)
    value = _value(next(tokens, ""), tokens, source)
    if next(tokens, None) is not None:
        raise ModelError(f"more than one value in {source!r}")
    return value


def _tokens(source: str) -> Iterator[str]:
    at, end = 0, len(source.rstrip())
    while at < end:
        found = _TOKEN.match(source, at)
        if found is None:
            raise ModelError(f"not a value of a model: {source[at : at + 40]!r}")
        yield found[1]
        at = found.end()


def _value(head: str, tokens: Iterator[str], source: str) -> Value:
    match head:
        case "TRUE" | "FALSE":
            return head == "TRUE"
        case "<<":
            return tuple(_items(tokens, ">>", source))
        case "{":
            return frozenset(_items(tokens, "}", source))
        case "[":
            return Fn(_pairs(tokens, "|->", ",", "]", source))
        case "(":
            return Fn(_pairs(tokens, ":>", "@@", ")", source))
    if head.startswith('"'):
        return head[1:-1]
    if head.lstrip("-").isdigit():
        return int(head)
    raise ModelError(f"not a value of a model: {head!r} in {source!r}")


def _items(tokens: Iterator[str], close: str, source: str) -> Iterator[Value]:
    for head in tokens:
        if head == close:
            return
        if head != ",":
            yield _value(head, tokens, source)
    raise ModelError(f"no {close} in {source!r}")


def _pairs(tokens: Iterator[str], arrow: str, comma: str, close: str, source: str) -> Iterator[tuple[Value, Value]]:
    for head in tokens:
        if head == close:
            return
        if head == comma:
            continue
        key = head if arrow == "|->" else _value(head, tokens, source)
        if next(tokens, "") != arrow:
            raise ModelError(f"no {arrow} after {key!r} in {source!r}")
        yield key, _value(next(tokens, ""), tokens, source)
    raise ModelError(f"no {close} in {source!r}")
