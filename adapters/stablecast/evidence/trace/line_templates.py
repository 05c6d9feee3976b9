"""Inputs and effects as the very text that a trace has, written by templates: what `converter` says, fast.

A record costs the core about ten microseconds, and going through JSON objects cost as much again. So each class gets a
template of its text, made once from its annotations; `reading` is the way back.
"""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, get_args, get_origin

from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import Input
from stablecast.evidence.trace.converter import TAG
from stablecast.evidence.trace.schemas import fields_of, is_union, members_of

Write = Callable[[Any], str]

_TRUTH: Final = {True: "true", False: "false"}
_text = lru_cache(maxsize=4096)(json.dumps)
"""Addresses, topics and sentences come again and again."""


class _Writers(dict[Any, Write]):
    """What writes records of a class, its name included; made when the first of them comes."""

    def __missing__(self, kind: type) -> Write:
        write = self[kind] = _record_writer(kind, f'"{TAG}":"{kind.__name__}"')
        return write


_WRITERS: Final = _Writers()


def input_text(event: Input) -> str:
    """An input as JSON."""
    return _WRITERS[type(event)](event)


def effects_text(effects: Sequence[Effect]) -> str:
    """Effects as a JSON list."""
    if len(effects) > 1:
        return f"[{','.join([_WRITERS[type(effect)](effect) for effect in effects])}]"
    return f"[{_WRITERS[type(effects[0])](effects[0])}]" if effects else "[]"


def _record_writer(kind: type, tag: str = "") -> Write:
    """What writes a record: one f-string of its fields, compiled once, as attrs compiles what makes it."""
    tools: dict[str, Any] = {"truth": _TRUTH, "text": _text}
    places = [f'"{name}":{{{_expression(schema, f"record.{name}", tools)}}}' for name, schema in fields_of(kind)]
    text = ",".join([tag, *places] if tag else places)
    write: Write = eval(f"lambda record: f'{{{{{text}}}}}'", tools)  # noqa: S307 - of the core's own annotations
    return write


def _expression(schema: Any, value: str, tools: dict[str, Any]) -> str:
    """What stands in the f-string for a value; it may use what it puts into `tools`."""
    if schema is bool:
        return f"truth[{value}]"
    if schema is str:
        return f"text({value})"
    if schema is int:
        return value
    if get_origin(schema) is None and issubclass(schema, int):
        return f"int({value})"
    tool = f"write{len(tools)}"
    if is_union(schema) and len(members := members_of(schema)) > 1:
        tools[tool] = {member: _record_writer(member, f'"{TAG}":"{member.__name__}"') for member in members}
        return f"{tool}[{value}.__class__]({value})"
    tools[tool] = _writer(schema)
    return f"{tool}({value})"


def _writer(schema: Any) -> Write:
    """What writes a value that is no field of its own."""
    if is_union(schema):
        write = _writer(members_of(schema)[0])
        return lambda value: "null" if value is None else write(value)
    if get_origin(schema) is tuple:
        return _tuple_writer(schema)
    if schema is bool:
        return _TRUTH.__getitem__
    if schema is str:
        return _text
    return _digits if issubclass(schema, int) else _record_writer(schema)


def _digits(value: int) -> str:
    return str(int(value))


def _tuple_writer(schema: Any) -> Write:
    inner = get_args(schema)
    if inner[-1] is Ellipsis:
        write = _writer(inner[0])
        return lambda values: f"[{','.join([write(value) for value in values])}]"
    writers = [_writer(one) for one in inner]
    return lambda values: f"[{','.join([write(value) for write, value in zip(writers, values, strict=True)])}]"
