"""Annotations of the core's own classes, as `line_templates` and `record_reader` need them."""

import types
from typing import Any, Final, Union, get_args, get_origin

import attrs

_UNIONS: Final = (types.UnionType, Union)


def fields_of(kind: Any) -> list[tuple[str, Any]]:
    """Return name and type of each field of a record."""
    return [(field.name, field.type) for field in attrs.fields(attrs.resolve_types(kind))]


def is_union(schema: Any) -> bool:
    """Return whether it is one of several types, None among them."""
    return get_origin(schema) in _UNIONS


def members_of(schema: Any) -> list[Any]:
    """Return the types of a union, without None."""
    return [member for member in get_args(schema) if member is not types.NoneType]
