"""Inputs and effects as the very text that a trace has, written and read by templates: what `converter` says, fast.

A record costs the core about ten microseconds, and going through JSON objects cost twice as much again. So each class
gets a template of its text and a reader of its values, made once from its annotations. A reader takes only what the
writer writes: every field, in order, of the very type. Whoever meets anything else goes to the converter, which knows
what is wrong with it; so the schema has one authority.
"""

import json
import types
from collections.abc import Callable, Sequence
from enum import IntEnum, IntFlag
from functools import cache, lru_cache
from typing import Any, Final, Union, get_args, get_origin

import attrs

from stablecast.core.effects import Effect
from stablecast.core.inputs import Input
from stablecast.trace.converter import TAG
from stablecast.trace.errors import SchemaError

Write = Callable[[Any], str]
Read = Callable[[Any], Any]

_UNIONS: Final = (types.UnionType, Union)
_TRUTH: Final = {True: "true", False: "false"}
_text = lru_cache(maxsize=4096)(json.dumps)
"""Addresses, topics and sentences come again and again."""


class _UnreadableError(SchemaError):
    """It is not as the writer would have written it."""


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


@cache
def input_readers(union: Any) -> dict[str, Read]:
    """What reads the members of a union, by name; a reader raises SchemaError unless it is as the writer writes it."""
    return {member.__name__: _record_reader(member, TAG) for member in get_args(union)}


def _fields(kind: Any) -> tuple[list[str], list[Any]]:
    fields = attrs.fields(attrs.resolve_types(kind))
    return [field.name for field in fields], [field.type for field in fields]


def _record_writer(kind: type, tag: str = "") -> Write:
    """What writes a record: one f-string of its fields, compiled once, as attrs compiles what makes it."""
    names, schemas = _fields(kind)
    tools: dict[str, Any] = {"truth": _TRUTH, "text": _text}
    places = [
        f'"{name}":{{{_expression(schema, f"record.{name}", tools)}}}'
        for name, schema in zip(names, schemas, strict=True)
    ]
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
    members = [member for member in get_args(schema) if member is not type(None)]
    if get_origin(schema) in _UNIONS and len(members) > 1:
        tools[tool] = {member: _record_writer(member, f'"{TAG}":"{member.__name__}"') for member in members}
        return f"{tool}[{value}.__class__]({value})"
    tools[tool] = _writer(schema)
    return f"{tool}({value})"


def _writer(schema: Any) -> Write:
    """What writes a value that is no field of its own."""
    if get_origin(schema) in _UNIONS:
        members = [member for member in get_args(schema) if member is not type(None)]
        write = _writer(members[0])
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


_PLAIN: Final = (int, bool, str)


def _record_reader(kind: type, *tag: str) -> Read:
    names, schemas = _fields(kind)
    keys, skipped = [*tag, *names], len(tag)
    known = [str] * skipped + schemas

    def read_plain(value: Any) -> Any:
        row = [*value.values()]
        if [*value] != keys or [*map(type, row)] != known:
            raise _UnreadableError(kind.__name__)
        return kind(*row[skipped:])

    if all(schema in _PLAIN for schema in schemas):
        return read_plain
    odd = [(at, _reader(schema)) for at, schema in enumerate(schemas, skipped) if schema not in _PLAIN]
    plain = [(at, schema) for at, schema in enumerate(schemas, skipped) if schema in _PLAIN]

    def read_record(value: Any) -> Any:
        row = [*value.values()]
        if [*value] != keys:
            raise _UnreadableError(kind.__name__)
        for at, schema in plain:
            if type(row[at]) is not schema:
                raise _UnreadableError(kind.__name__)
        for at, read in odd:
            row[at] = read(row[at])
        return kind(*row[skipped:])

    return read_record


def _reader(schema: Any) -> Read:
    if get_origin(schema) in _UNIONS:
        return _union_reader(schema)
    if get_origin(schema) is tuple:
        return _tuple_reader(schema)
    if schema in _PLAIN:
        return lambda value: _same(value, schema)
    if issubclass(schema, IntEnum | IntFlag):
        return lambda value: schema(_same(value, int))
    return _record_reader(schema)


def _union_reader(schema: Any) -> Read:
    members = [member for member in get_args(schema) if member is not type(None)]
    if len(members) == 1:
        read = _reader(members[0])
        return lambda value: None if value is None else read(value)
    readers = {member.__name__: _record_reader(member, TAG) for member in members}
    return lambda value: readers[value[TAG]](value)


def _tuple_reader(schema: Any) -> Read:
    inner = get_args(schema)
    if inner[-1] is Ellipsis:
        read = _reader(inner[0])
        return lambda values: tuple([read(value) for value in _same(values, list)])
    readers = [_reader(one) for one in inner]
    return lambda values: tuple([read(value) for read, value in zip(readers, _same(values, list), strict=True)])


def _same(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise _UnreadableError(kind.__name__)
    return value
