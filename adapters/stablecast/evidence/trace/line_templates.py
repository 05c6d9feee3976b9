"""Inputs and effects as the text of a trace, written by templates: the schema of `converter`, fast.

A record costs the core about ten microseconds, and JSON objects cost as much again. So each class gets a template of
its text, made once from its annotations. `record_reader` is the way back.
"""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, get_args, get_origin

from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import Input
from stablecast.evidence.trace.converter import TAG, fields_of, is_union, members_of

Write = Callable[[Any], str]

_TRUTH: Final = {True: "true", False: "false"}
_text = lru_cache(maxsize=4096)(json.dumps)
"""Cached, because addresses, topics and sentences repeat."""


class _Writers(dict[Any, Write]):
    """Writers of records with their class name, made on first use."""

    def __missing__(self, kind: type) -> Write:
        write = self[kind] = _record_writer(kind, f'"{TAG}":"{kind.__name__}"')
        return write


_WRITERS: Final = _Writers()


def input_text(event: Input) -> str:
    """Return an input as JSON text."""
    return _WRITERS[type(event)](event)


def effects_text(effects: Sequence[Effect]) -> str:
    """Return effects as the text of a JSON list."""
    if len(effects) > 1:
        return f"[{','.join([_WRITERS[type(effect)](effect) for effect in effects])}]"
    return f"[{_WRITERS[type(effects[0])](effects[0])}]" if effects else "[]"


def _record_writer(kind: type, tag: str = "") -> Write:
    """Return the writer of a record: one f-string of its fields, compiled once."""
    tools: dict[str, Any] = {"truth": _TRUTH, "text": _text}
    places = [f'"{name}":{{{_expression(schema, f"record.{name}", tools)}}}' for name, schema in fields_of(kind)]
    text = ",".join([tag, *places] if tag else places)
    write: Write = eval(f"lambda record: f'{{{{{text}}}}}'", tools)  # noqa: S307 - of the core's own annotations
    return write


def _expression(schema: Any, value: str, tools: dict[str, Any]) -> str:
    """Return the f-string expression of a value; add the functions that it needs to `tools`."""
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
    """Return the writer of a value inside a list, tuple or union."""
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
