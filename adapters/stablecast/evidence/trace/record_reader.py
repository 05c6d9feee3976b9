"""Records of a frame read by their schema: `converter`, fast, because no JSON object is made on the way.

A decoder that knows the expected type makes the value while it reads. It cannot read unions of the core's own classes.
So each class gets a twin that the decoder knows, with the same fields and types, and a function that makes the record
of its twin. Types are as strict as the converter's: a number is no boolean, 1.0 is no int, and no field is missing or
unknown. Effects stay text.
"""

import types
from collections.abc import Callable
from functools import cache, reduce
from operator import or_
from typing import Any, get_args, get_origin

import attrs
import msgspec

from stablecast.core.protocol.inputs import Input
from stablecast.evidence.trace.converter import TAG, fields_of, is_union, members_of

Read = Callable[[Any], Any]
"""Make a record of its twin."""


class RecordReader:
    """Reader of the records of a machine with this union of inputs."""

    def __init__(self, union: Any) -> None:
        """Make the twins; use one `reader` for each union."""
        self.inputs: dict[type, Callable[[Any], Input]] = {
            _twin(member, TAG): _maker(member) for member in get_args(union)
        }
        """Functions that make an input of a record's `event`, by the class of the event."""
        fields = [("n", int), ("t", int), ("event", reduce(or_, self.inputs)), ("out", msgspec.Raw)]
        record = msgspec.defstruct("Record", fields, rename={"event": "in"}, forbid_unknown_fields=True, gc=False)
        self._decode: Read = msgspec.json.Decoder(record).decode

    def records(self, lines: bytes) -> list[Any]:
        """Decode lines, a record each: `n`, `t`, `event`, and `out` as text. Raise MsgspecError."""
        # Not `decode_lines`: that takes a record that is broken over lines, and two in one.
        return list(map(self._decode, lines.removesuffix(b"\n").split(b"\n")))


@cache
def reader(union: Any) -> RecordReader:
    """Return the cached reader of a union of inputs."""
    return RecordReader(union)


@cache
def _twin(kind: type, tag: str | None = None) -> type:
    fields = [(name, _expected(schema)) for name, schema in fields_of(kind)]
    name = kind.__name__
    return msgspec.defstruct(name, fields, tag_field=tag, tag=tag and name, forbid_unknown_fields=True, gc=False)


def _expected(schema: Any) -> Any:
    if is_union(schema):
        members = members_of(schema)
        many = [_twin(member, TAG) if len(members) > 1 else _expected(member) for member in members]
        return reduce(or_, [None] * (types.NoneType in get_args(schema)), reduce(or_, many))
    if get_origin(schema) is tuple:
        return tuple[tuple(one if one is ... else _expected(one) for one in get_args(schema))]  # type: ignore[misc]
    return _twin(schema) if attrs.has(schema) else schema


def _maker(kind: type) -> Read:
    """Return the function that makes a record of its twin: one call, compiled once."""
    tools: dict[str, Any] = {"kind": kind}
    values = [_expression(schema, f"twin.{name}", tools) for name, schema in fields_of(kind)]
    make: Read = eval(f"lambda twin: kind({', '.join(values)})", tools)  # noqa: S307 - of the core's own annotations
    return make


def _expression(schema: Any, value: str, tools: dict[str, Any]) -> str:
    """Return the expression that makes a value; add the functions that it needs to `tools`."""
    tool = f"make{len(tools)}"
    if is_union(schema):
        members = members_of(schema)
        if len(members) == 1:
            return f"None if {value} is None else {_expression(members[0], value, tools)}"
        tools[tool] = {_twin(member, TAG): _maker(member) for member in members}
        return f"{tool}[{value}.__class__]({value})"
    if get_origin(schema) is tuple:
        inner = [one for one in get_args(schema) if one is not ...]
        if not any(attrs.has(one) for one in inner):
            return value
        tools[tool] = _maker(inner[0])
        return f"tuple([{tool}(one) for one in {value}])"
    if attrs.has(schema):
        tools[tool] = _maker(schema)
        return f"{tool}({value})"
    return value
